/* SPDX-License-Identifier: MIT */
/*
 * The filter: everything is allowed, except that vgpud is asked about the calls of the table (a filter cannot read a
 * path) and about ioctls whose type is KFD's or DRM's. Calls of another architecture of this processor (32 bits, x32)
 * are none of ours: there is no such ROCm.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "vgpu/command/control.h"
#include "vgpu/frontend/seccomp_calls.h"

#if defined(__x86_64__)
#define FILTER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture is this for seccomp?"
#endif

#define FILTER_SIZE_MAX 192u
#define FILTER_NONE     GP_SECCOMP_NONE

const struct gp_seccomp_call gp_seccomp_calls[] = {
	{ SYS_openat, GP_SECCOMP_OPEN, 0, 1, 2, FILTER_NONE },
	{ SYS_newfstatat, GP_SECCOMP_STAT, 0, 1, 2, 3 },
	{ SYS_statx, GP_SECCOMP_STATX, 0, 1, 4, 2 },
	{ SYS_faccessat, GP_SECCOMP_ACCESS, 0, 1, 2, FILTER_NONE },
	{ SYS_faccessat2, GP_SECCOMP_ACCESS, 0, 1, 2, 3 },
	{ SYS_readlinkat, GP_SECCOMP_READLINK, 0, 1, 2, FILTER_NONE },
	{ SYS_openat2, GP_SECCOMP_OPEN, 0, 1, 2, FILTER_NONE },
	{ SYS_getxattr, GP_SECCOMP_XATTR, FILTER_NONE, 0, FILTER_NONE, FILTER_NONE },
	{ SYS_lgetxattr, GP_SECCOMP_XATTR, FILTER_NONE, 0, FILTER_NONE, FILTER_NONE },
	{ SYS_listxattr, GP_SECCOMP_XATTR, FILTER_NONE, 0, FILTER_NONE, FILTER_NONE },
	{ SYS_llistxattr, GP_SECCOMP_XATTR, FILTER_NONE, 0, FILTER_NONE, FILTER_NONE },
#ifdef SYS_open /* newer architectures have the …at calls only */
	{ SYS_open, GP_SECCOMP_OPEN, FILTER_NONE, 0, 1, FILTER_NONE },
	{ SYS_stat, GP_SECCOMP_STAT, FILTER_NONE, 0, 1, FILTER_NONE },
	{ SYS_lstat, GP_SECCOMP_STAT, FILTER_NONE, 0, 1, FILTER_NONE },
	{ SYS_access, GP_SECCOMP_ACCESS, FILTER_NONE, 0, 1, FILTER_NONE },
	{ SYS_readlink, GP_SECCOMP_READLINK, FILTER_NONE, 0, 1, FILTER_NONE },
#endif
};
const size_t gp_seccomp_call_count = sizeof(gp_seccomp_calls) / sizeof(gp_seccomp_calls[0]);

struct filter {
	struct sock_filter code[FILTER_SIZE_MAX];
	uint16_t size;
};

static void filter_put(struct filter *filter, uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false)
{
	/* The table is ours: the room was counted for it. */
	filter->code[filter->size++] = (struct sock_filter){ code, if_true, if_false, value };
}

static void filter_load(struct filter *filter, size_t offset)
{
	filter_put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The low half of an argument, which is all that flags and commands have. */
static size_t filter_argument(uint32_t number)
{
	return offsetof(struct seccomp_data, args) + number * sizeof(uint64_t);
}

static void filter_return(struct filter *filter, uint32_t action)
{
	filter_put(filter, BPF_RET | BPF_K, action, 0, 0);
}

static void filter_call(struct filter *filter, const struct gp_seccomp_call *call)
{
	bool tested = call->at_flags != FILTER_NONE;

	filter_put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->nr, 0, tested ? 4 : 1);
	if (tested) {
		filter_load(filter, filter_argument(call->at_flags));
		filter_put(filter, BPF_JMP | BPF_JSET | BPF_K, AT_EMPTY_PATH, 0, 1);
		filter_return(filter, SECCOMP_RET_ALLOW);
	}
	filter_return(filter, SECCOMP_RET_USER_NOTIF);
}

static void filter_make(struct filter *filter)
{
	filter->size = 0;
	filter_load(filter, offsetof(struct seccomp_data, arch));
	filter_put(filter, BPF_JMP | BPF_JEQ | BPF_K, FILTER_ARCH, 1, 0);
	filter_return(filter, SECCOMP_RET_ALLOW);
	filter_load(filter, offsetof(struct seccomp_data, nr));
	filter_put(filter, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 6);
	filter_load(filter, filter_argument(1));
	filter_put(filter, BPF_ALU | BPF_AND | BPF_K, 0xff00, 0, 0);
	filter_put(filter, BPF_JMP | BPF_JEQ | BPF_K, 'K' << 8, 1, 0);
	filter_put(filter, BPF_JMP | BPF_JEQ | BPF_K, 'd' << 8, 0, 1);
	filter_return(filter, SECCOMP_RET_USER_NOTIF);
	filter_return(filter, SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < gp_seccomp_call_count; i++)
		filter_call(filter, &gp_seccomp_calls[i]);
	filter_return(filter, SECCOMP_RET_ALLOW);
}

_Static_assert(12u + sizeof(gp_seccomp_calls) / sizeof(gp_seccomp_calls[0]) * 5u <= FILTER_SIZE_MAX, "room");

static int filter_install(struct gp_error *error)
{
	struct filter filter;
	struct sock_fprog program = { .filter = filter.code };
	int fd;

	filter_make(&filter);
	program.len = filter.size;
	/* Killable: a call that vgpud has begun is not begun again because a signal came; who waits long is watched for
	 * signals by vgpud. */
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
	if (fd >= 0)
		return fd;
	if (errno == EBUSY)
		return gp_error_set(
			error, -EBUSY,
			"this process is under a seccomp listener already (inside a `vgpu run`?): there can "
			"be one only");
	if (errno == EINVAL)
		return gp_error_set(error, -EINVAL, "the seccomp front end needs Linux 5.19 or newer");
	return gp_error_set(error, -errno, "cannot install the seccomp filter: %s", strerror(errno));
}

int gp_seccomp_enter(int connection, int vgpud, struct gp_error *error)
{
	char text[GP_CONTROL_TEXT_SIZE];
	int listener, r, other = -1;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return gp_error_set(error, -errno, "cannot give up new privileges: %s", strerror(errno));
	/* Where Yama restricts tracing, for this process if not for those it forks; elsewhere refused, and not needed.
	 */
	prctl(PR_SET_PTRACER, (unsigned long)vgpud, 0, 0, 0);
	listener = filter_install(error);
	if (listener < 0)
		return listener;
	r = gp_vgpu_control_send(connection, "listen\n", listener);
	close(listener);
	if (r == 0)
		r = gp_control_receive(connection, text, sizeof(text), &other);
	if (r < 0)
		return gp_error_set(error, r, "vgpud does not take the listener: %s", strerror(-r));
	if (strncmp(text, "ok ", 3) != 0)
		return gp_error_set(error, -EPERM, "vgpud does not take the listener: %.400s", text);
	return 0;
}

int gp_seccomp_lend(int connection)
{
	char text[GP_CONTROL_TEXT_SIZE], path[64];
	int other = -1, memory = -1, pid, r = gp_control_receive(connection, text, sizeof(text), &other);

	if (other >= 0)
		close(other);
	if (r < 0)
		return r;
	if (sscanf(text, "memory %d", &pid) != 1)
		return -EPROTO;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	snprintf(text, sizeof(text), "memory %d\n", pid);
	r = gp_vgpu_control_send(connection, text, memory);
	if (memory >= 0)
		close(memory);
	return r;
}
