/* SPDX-License-Identifier: MIT */
/* Owns the check of standard output at the end of a program. Never changes what is printed. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/output.h"

static struct {
	const char *program;
	int status;
	bool is_reported;
} output;

/* Negative errno, or 0. A write that failed earlier left no errno: writing one more byte fails for the same reason. */
static int output_flush(void)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	if (!errno)
		(void)!write(STDOUT_FILENO, "\n", 1);
	return errno ? -errno : -EIO;
}

static void output_end(void)
{
	int r = output.is_reported ? 0 : output_flush();

	if (!r)
		return;
	fprintf(stderr, "%s: cannot write to standard output: %s\n", output.program, strerror(-r));
	_exit(output.status);
}

void gp_output_reserve(void)
{
	/* Opened in the wrong direction: reading and writing still fail with EBADF, as on a closed descriptor. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

void gp_output_start(const char *program, int status)
{
	gp_output_reserve();
	output.program = program;
	output.status = status;
	(void)atexit(output_end);
}

int gp_output_refuse(struct gp_error *error)
{
	int r = output_flush();

	output.is_reported = true;
	r = r ? r : -EIO;
	return gp_error_set(error, r, "cannot write to standard output: %s", strerror(-r));
}

void gp_output_reported(void)
{
	output.is_reported = true;
}
