/* SPDX-License-Identifier: MIT */
/* What the kernel says about files. */
#include <fcntl.h>
#include <string.h>
#include "agent/file.h"
#include "agent/sys.h"

#define FILE_KCMP_FILE 0 /* KCMP_FILE */

long gp_sys_file_read(const char *path, char *ret_text, size_t size)
{
	long fd = gp_sys(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC);
	long length = fd < 0 ? fd : gp_sys(SYS_read, fd, (long)ret_text, (long)size - 1);

	gp_sys_close((int)fd);
	ret_text[length > 0 ? length : 0] = 0;
	return length;
}

void gp_sys_file_path(int fd, char *ret_path, size_t size)
{
	/* Not /proc/self: that is the process's first thread, which may have ended. */
	char link[44] = "/proc/thread-self/fd/";
	long length;

	gp_sys_digits(link + strlen(link), (uint32_t)fd);
	length = gp_sys(SYS_readlinkat, AT_FDCWD, (long)link, (long)ret_path, (long)size - 1);
	ret_path[length > 0 ? length : 0] = 0;
}

long gp_sys_file_compare(int a, int b)
{
	long self = gp_sys_self();

	return gp_sys(SYS_kcmp, self, self, FILE_KCMP_FILE, a, b);
}
