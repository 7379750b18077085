/* SPDX-License-Identifier: MIT */
/* The agent's log: one write(2) a line, no libc stream, no allocation. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/sys.h"

#define LOG_LINE_SIZE 256u

void gp_log_open(const char *path)
{
	struct rlimit limit = { 0 };
	struct stat st;
	long fd = gp_sys(SYS_openat, AT_FDCWD, (long)path,
			 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0)
		return;
	/* Regular files only: a write to a pipe may block, and raises a signal in the application when the reader has
	 * gone; so does a limit on the size of files. */
	if (gp_sys(SYS_fstat, fd, (long)&st) < 0 || !S_ISREG(st.st_mode) ||
	    gp_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) < 0 || limit.rlim_cur != RLIM_INFINITY)
		gp_sys_close((int)fd);
	else
		gp_fd_take(GP_FD_LOG, (int)fd);
}

static uint32_t log_number(char *line, uint32_t at, int64_t value)
{
	uint64_t rest = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;

	if (at)
		line[at++] = ' ';
	if (value < 0)
		line[at++] = '-';
	return at + gp_sys_digits(line + at, rest);
}

void gp_log_line(const char *text, int64_t a, int64_t b, int64_t c)
{
	const int64_t values[3] = { a, b, c };
	char line[LOG_LINE_SIZE];
	size_t length;
	uint32_t at;

	/* A guard that opens by the numbers alone makes no calls but the driver's. */
	if (gp_fd(GP_FD_LOG) < 0 || gp_fds_are_trusted())
		return;
	at = log_number(line, 0, (int64_t)(gp_sys_now_ns() / 1000u));
	at = log_number(line, at, gp_sys(SYS_gettid, 0));
	line[at++] = ' ';
	length = strlen(text);
	if (length > LOG_LINE_SIZE / 2u)
		length = LOG_LINE_SIZE / 2u;
	memcpy(line + at, text, length);
	at += (uint32_t)length;
	for (uint32_t i = 0; i < 3u; i++)
		if (values[i] != GP_LOG_NONE)
			at = log_number(line, at, values[i]);
	line[at++] = '\n';
	gp_sys(SYS_write, gp_fd_verified(GP_FD_LOG), (long)line, at);
}
