/* SPDX-License-Identifier: MIT */
/* System calls, and reads of memory that may have gone. */
#include <errno.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "agent/fds.h"
#include "agent/sys.h"

long gp_sys_call(long number, const long args[6])
{
	int saved = errno;
	long r = syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);

	if (r < 0)
		r = -errno;
	errno = saved;
	return r;
}

uint64_t gp_sys_now_ns(void)
{
	struct timespec now = { 0 };
	int saved = errno;

	clock_gettime(CLOCK_MONOTONIC, &now);
	errno = saved;
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int gp_sys_close(int fd)
{
	return fd < 0 ? 0 : (int)gp_sys(SYS_close, fd);
}

void gp_sys_wake(int eventfd)
{
	uint64_t one = 1;

	if (eventfd >= 0)
		gp_sys(SYS_write, eventfd, (long)&one, sizeof(one));
}

void gp_sys_drain(int eventfd)
{
	uint64_t count;

	if (eventfd >= 0)
		gp_sys(SYS_read, eventfd, (long)&count, sizeof(count));
}

uint32_t gp_sys_digits(char *at, uint64_t value)
{
	char digits[20];
	uint32_t count = 0;

	do
		digits[count++] = (char)('0' + value % 10u);
	while (value /= 10u);
	for (uint32_t i = 0; i < count; i++)
		at[i] = digits[count - 1u - i];
	return count;
}

long gp_sys_self(void)
{
	return gp_sys(SYS_gettid, 0);
}

/* A pipe copies with the kernel's own fault handling. It also reads mappings of devices, which process_vm_readv
 * refuses, and works where a seccomp filter forbids that call. The caller holds the agent's lock, so the pipe is empty
 * before and after. */
static bool sys_read_by_pipe(struct gp_sys_range *range)
{
	int in = gp_fd_verified(GP_FD_READ_IN), out = gp_fd_verified(GP_FD_READ_OUT);

	if (in < 0 || out < 0 || gp_sys(SYS_write, in, (long)range->address, range->size) != (long)range->size)
		return false;
	return gp_sys(SYS_read, out, (long)range->into, range->size) == (long)range->size;
}

void gp_sys_read(struct gp_sys_range *ranges, uint32_t count)
{
	struct iovec local[GP_SYS_RANGE_MAX], remote[GP_SYS_RANGE_MAX];
	long self = gp_sys_self();

	for (uint32_t first = 0; first < count;) {
		uint32_t n = 0;
		long got;

		for (; n < GP_SYS_RANGE_MAX && first + n < count; n++) {
			struct gp_sys_range *range = &ranges[first + n];

			local[n] = (struct iovec){ range->into, range->size };
			remote[n] = (struct iovec){ (void *)(uintptr_t)range->address, range->size };
		}
		got = gp_sys(SYS_process_vm_readv, self, (long)local, n, (long)remote, n, 0);
		for (; n && got >= (long)ranges[first].size; n--) {
			ranges[first].ok = true;
			got -= (long)ranges[first++].size;
		}
		if (!n)
			continue;
		/* The range where process_vm_readv stopped: through the pipe, or not at all. */
		ranges[first].ok = sys_read_by_pipe(&ranges[first]);
		first++;
	}
}
