/* SPDX-License-Identifier: MIT */
/* Owns the questions that ld.so(8) would answer too late. Any file may be given: every offset is checked. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "cli/run_target.h"

#define TARGET_SCRIPT_DEPTH 4u /* interpreters of interpreters, as binfmt_script allows */
#define TARGET_PHDR_MAX     512u

/* Of this program: what the agent was built for. */
#if defined(__x86_64__)
#define TARGET_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define TARGET_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define TARGET_MACHINE EM_PPC64
#else
#define TARGET_MACHINE EM_NONE
#endif

static bool target_is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

int gp_run_target_find(const char *command, char *ret_path, size_t size)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(command, '/')) {
		if ((size_t)snprintf(ret_path, size, "%s", command) >= size)
			return -ENOENT;
		return target_is_program(ret_path) ? 0 : -ENOENT;
	}
	for (path = path ? path : "/bin:/usr/bin"; *command; path = end + 1) {
		end = strchrnul(path, ':');
		if ((size_t)snprintf(ret_path, size, "%.*s%s%s", (int)(end - path), path, end > path ? "/" : "",
				     command) < size &&
		    target_is_program(ret_path))
			return 0;
		if (!*end)
			break;
	}
	return -ENOENT;
}

/* "#!INTERPRETER [ARGUMENT]": the interpreter; false if it is no script. */
static bool target_interpreter(int fd, char *ret_path, size_t size)
{
	char line[256];
	ssize_t length = pread(fd, line, sizeof(line) - 1, 0);
	char *start, *end;

	if (length < 4 || line[0] != '#' || line[1] != '!')
		return false;
	line[length] = '\0';
	start = line + 2 + strspn(line + 2, " \t");
	end = start + strcspn(start, " \t\n");
	*end = '\0';
	return (size_t)snprintf(ret_path, size, "%s", start) < size && *ret_path == '/';
}

static int target_check_elf(int fd, const char *path, struct gp_error *error)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	if (TARGET_MACHINE != EM_NONE && (head.e_machine != TARGET_MACHINE ||
					  head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)))
		return gp_error_set(error, -ENOEXEC,
				    "%s is a program of another architecture: the agent cannot be loaded into it",
				    path);
	if (head.e_phentsize != sizeof(part) || head.e_phnum > TARGET_PHDR_MAX)
		return 0;
	for (uint32_t i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof(part));

		if (pread(fd, &part, sizeof(part), at) != (ssize_t)sizeof(part) || part.p_type == PT_INTERP)
			return 0;
	}
	return gp_error_set(error, -ENOEXEC, "%s is statically linked: the agent cannot be loaded into it", path);
}

/* In "secure execution" the loader ignores LD_PRELOAD. */
static int target_check_user(const struct stat *st, const char *path, struct gp_error *error)
{
	if (((st->st_mode & S_ISUID) && st->st_uid != geteuid()) ||
	    ((st->st_mode & S_ISGID) && st->st_gid != getegid()))
		return gp_error_set(error, -ENOEXEC,
				    "%s changes its user or group (set-id): the loader will not load the agent", path);
	if (geteuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0)
		return gp_error_set(error, -ENOEXEC, "%s has file capabilities: the loader will not load the agent",
				    path);
	return 0;
}

int gp_run_target_check(const char *path, struct gp_error *error)
{
	char now[PATH_MAX];

	if (snprintf(now, sizeof(now), "%s", path) >= (int)sizeof(now))
		return 0;
	for (unsigned int depth = 0; depth < TARGET_SCRIPT_DEPTH; depth++) {
		int fd = open(now, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), r = 0;
		bool is_script;
		struct stat st;

		if (fd < 0)
			return 0; /* executable but not readable: nothing is known */
		if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
			close(fd);
			return 0;
		}
		is_script = target_interpreter(fd, now, sizeof(now));
		if (!is_script) {
			r = target_check_user(&st, now, error);
			r = r ? r : target_check_elf(fd, now, error);
		}
		close(fd);
		if (!is_script)
			return r;
	}
	return 0;
}
