/* SPDX-License-Identifier: MIT */
/*
 * Requests of the FUSE protocol with arbitrary contents. A socket stands in for /dev/fuse (linked with --wrap for open,
 * mount, umount2 and ioctl). Each request that wants an answer gets exactly one, well formed, at the latest when its
 * process is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/frontend/fuse.h"
#include "vgpu/node/process.h"

#define FUZZ_STEPS        100u
#define FUZZ_TURN_NS      20000u
#define FUZZ_PAYLOAD_MAX  4600u
#define FUZZ_OPCODE_BATCH 42u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int __wrap_umount2(const char *target, int flags);
int __wrap_ioctl(int fd, unsigned long request, ...);

static int fuzz_device = -1; /* the node's end */

int __wrap_open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	if (!strcmp(path, "/dev/fuse"))
		return fuzz_device;
	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return __real_open64(path, flags, mode);
}

int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
	return 0;
}

int __wrap_umount2(const char *target, int flags)
{
	return 0;
}

/* The only one the front end makes: a backing file is registered. */
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	return fd == fuzz_device ? 1 : -1;
}

struct fuzz_fuse {
	struct fuzz_node *node;
	struct fuzz_input input;
	struct gp_fuse *fuse;
	int kernel; /* the kernel's end */
	uint64_t unique;
	uint8_t answers[FUZZ_STEPS + 2u]; /* still outstanding, by unique */
};

static void fuzz_answers(struct fuzz_fuse *fuzz)
{
	_Alignas(8) uint8_t buffer[1u << 16];
	struct fuse_out_header header;
	ssize_t size;

	while ((size = recv(fuzz->kernel, buffer, sizeof(buffer), 0)) > 0) {
		if ((size_t)size < sizeof(header))
			abort();
		memcpy(&header, buffer, sizeof(header));
		if (header.len != (size_t)size || header.error > 0 || header.error <= -512 ||
		    header.unique > fuzz->unique || !fuzz->answers[header.unique])
			abort();
		fuzz->answers[header.unique]--;
	}
}

/* Descriptors are small numbers and commands come from a list half the time, so that calls reach the node. */
static size_t fuzz_ioctl(struct fuzz_fuse *fuzz, uint8_t *payload)
{
	static const uint32_t commands[] = {
		AMDKFD_IOC_GET_VERSION,
		AMDKFD_IOC_CREATE_EVENT,
		AMDKFD_IOC_WAIT_EVENTS,
		AMDKFD_IOC_ALLOC_MEMORY_OF_GPU,
		AMDKFD_IOC_CREATE_QUEUE,
		AMDKFD_IOC_UPDATE_QUEUE,
		AMDKFD_IOC_GET_PROCESS_APERTURES_NEW,
	};
	uint8_t which = (uint8_t)fuzz_take(&fuzz->input, 1);
	struct fuse_ioctl_in in = { .fh = fuzz_take(&fuzz->input, 1) % 8u };

	in.cmd = which & 1u ? (uint32_t)fuzz_take(&fuzz->input, 4) :
			      commands[which / 2u % (sizeof(commands) / sizeof(commands[0]))];
	in.in_size = which & 128u ? (uint32_t)fuzz_take(&fuzz->input, 4) : _IOC_SIZE(in.cmd);
	in.out_size = _IOC_SIZE(in.cmd);
	memcpy(payload, &in, sizeof(in));
	return sizeof(in);
}

static void fuzz_request(struct fuzz_fuse *fuzz)
{
	static const uint8_t opcodes[] = { FUSE_INIT,    FUSE_LOOKUP, FUSE_GETATTR,   FUSE_SETATTR, FUSE_OPEN,
					   FUSE_RELEASE, FUSE_IOCTL,  FUSE_INTERRUPT, FUSE_FORGET,  FUSE_OPENDIR,
					   FUSE_IOCTL,   FUSE_OPEN,   FUSE_READDIR,   FUSE_WRITE };
	_Alignas(8) uint8_t request[sizeof(struct fuse_in_header) + FUZZ_PAYLOAD_MAX];
	uint8_t *payload = request + sizeof(struct fuse_in_header), kind = (uint8_t)fuzz_take(&fuzz->input, 1);
	size_t size = 0, more;
	struct fuse_in_header header = {
		.opcode = kind & 128u ? (uint32_t)fuzz_take(&fuzz->input, 1) : opcodes[kind % sizeof(opcodes)],
		.unique = ++fuzz->unique,
		.nodeid = fuzz_take(&fuzz->input, 1) % 16u,
		/* Never another process's: the node, as root, would write into it. */
		.pid = (uint32_t)fuzz_node_pid(kind / 64u % FUZZ_CLIENT_COUNT),
	};

	memset(payload, 0, FUZZ_PAYLOAD_MAX);
	if (header.opcode == FUSE_IOCTL)
		size = fuzz_ioctl(fuzz, payload);
	more = (size_t)fuzz_take(&fuzz->input, 1);
	for (size_t i = 0; i < more; i++)
		payload[size++] = (uint8_t)fuzz_take(&fuzz->input, 1);
	/* Short arguments are padded: the kernel sends whole structures. */
	if (size < 128u)
		size = 128u;
	header.len = (uint32_t)(sizeof(header) + size);
	memcpy(request, &header, sizeof(header));
	fuzz->answers[header.unique] =
		header.opcode != FUSE_FORGET && header.opcode != FUZZ_OPCODE_BATCH && header.opcode != FUSE_INTERRUPT;
	if (send(fuzz->kernel, request, header.len, 0) != (ssize_t)header.len || gp_fuse_serve(fuzz->fuse) < 0)
		abort();
	fuzz_answers(fuzz);
}

/* The kernel's first request is there when the mount returns. */
static void fuzz_begin(struct fuzz_fuse *fuzz)
{
	_Alignas(8) uint8_t request[sizeof(struct fuse_in_header) + 128u] = { 0 };
	struct fuse_in_header header = { .len = sizeof(request), .opcode = FUSE_INIT, .unique = ++fuzz->unique };
	struct gp_error error;

	memcpy(request, &header, sizeof(header));
	fuzz->answers[header.unique] = 1;
	if (send(fuzz->kernel, request, sizeof(request), 0) != (ssize_t)sizeof(request) ||
	    gp_fuse_create(&fuzz->node->node, "/fuzz", &fuzz->fuse, &error) < 0)
		abort();
	fuzz_answers(fuzz);
}

static void fuzz_end(struct fuzz_fuse *fuzz)
{
	struct gp_vnode *node = &fuzz->node->node;

	for (uint32_t i = 0; i < FUZZ_CLIENT_COUNT; i++) {
		struct gp_vproc *process = gp_vproc_find(node, fuzz_node_pid(i));

		if (process)
			gp_vproc_destroy(process);
		fuzz->node->clients[i] = NULL;
	}
	fuzz_node_close(fuzz->node);
	fuzz_answers(fuzz);
	for (uint64_t i = 0; i <= fuzz->unique; i++)
		if (fuzz->answers[i])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_fuse fuzz = { .input = { data, data + size } };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	fuzz.kernel = pair[0];
	fuzz_device = pair[1];
	fuzz.node = fuzz_node_open(NULL);
	fuzz_begin(&fuzz);
	for (uint32_t i = 0; i < FUZZ_STEPS && fuzz.input.at < fuzz.input.end; i++) {
		if (fuzz_take(&fuzz.input, 1) % 4u == 3u)
			fuzz_node_turn(fuzz.node, FUZZ_TURN_NS);
		else
			fuzz_request(&fuzz);
	}
	fuzz_end(&fuzz);
	gp_fuse_destroy(fuzz.fuse);
	fuzz_device = -1;
	close(fuzz.kernel);
	return 0;
}
