/* SPDX-License-Identifier: MIT */
/*
 * libtap.so: notes which channel groups a CUDA program makes, so that the runner can ask the driver, independently of
 * gpreempt, for their time slices and context switch counts. Preloaded; forwards every ioctl as it is. Writes one line
 * for each object of interest to the file NVBENCH_TAP names: kind, file descriptor, client, object, parent. Which group
 * computes is known from what is made below its channels. Never fails a call of the program.
 *
 * Numbers and layouts: NVIDIA open-gpu-kernel-modules 580 (nv_escape.h, nvos.h).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	NR_ALLOC = 0x2b,
	NR_XFER = 211,
	CLASS_GROUP = 0xa06c,
	CLASS_SUBDEVICE = 0x2080,
	ALLOC_SHORT = 32,
	ALLOC_LONG = 48
};

/* Common beginning of both forms; the status is the last word of the short one, the last but one of the long one. */
struct alloc {
	uint32_t client, parent, object, class_;
	uint64_t params;
	uint32_t rest[6];
};

struct xfer {
	uint32_t number, size;
	uint64_t data;
};

static void note(const char *kind, int fd, const struct alloc *alloc)
{
	const char *path = getenv("NVBENCH_TAP");
	const int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
	char line[96];
	int length;

	if (file < 0)
		return;
	length =
		snprintf(line, sizeof(line), "%s %d %u %u %u\n", kind, fd, alloc->client, alloc->object, alloc->parent);
	if (write(file, line, (size_t)length) != length)
		(void)!ftruncate(file, 0);
	close(file);
}

/* Channels end in 6f and compute objects in c0, whatever the generation. */
static void look(int fd, const struct alloc *alloc, uint32_t size)
{
	const uint32_t status = size == ALLOC_SHORT ? alloc->rest[1] : alloc->rest[4];

	if (status)
		return;
	if (alloc->class_ == CLASS_GROUP)
		note("group", fd, alloc);
	else if (alloc->class_ == CLASS_SUBDEVICE)
		note("subdevice", fd, alloc);
	else if (alloc->class_ > CLASS_GROUP && alloc->class_ < 0x10000 && (alloc->class_ & 0xff) == 0x6f)
		note("channel", fd, alloc);
	else if (alloc->class_ > CLASS_GROUP && alloc->class_ < 0x10000 && (alloc->class_ & 0xff) == 0xc0)
		note("compute", fd, alloc);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	uint32_t number = _IOC_NR(request), size = _IOC_SIZE(request);
	const struct alloc *alloc = NULL;
	va_list list;
	void *data;
	int r, saved;

	va_start(list, request);
	data = va_arg(list, void *);
	va_end(list);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	if (_IOC_TYPE(request) == 'F' && data) {
		alloc = data;
		if (number == NR_XFER && size == sizeof(struct xfer)) {
			const struct xfer *xfer = data;

			number = xfer->number;
			size = xfer->size;
			alloc = (const struct alloc *)(uintptr_t)xfer->data;
		}
		if (number != NR_ALLOC || (size != ALLOC_SHORT && size != ALLOC_LONG))
			alloc = NULL;
	}
	r = next(fd, request, data);
	saved = errno;
	if (!r && alloc)
		look(fd, alloc, size);
	errno = saved;
	return r;
}
