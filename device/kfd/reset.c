/* SPDX-License-Identifier: MIT */
/* Owns the thread that waits for resets. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "device/kfd/reset.h"

#define RESET_TEXT_SIZE 4096u

struct gp_kfd_reset {
	struct gp_device_host host;
	struct pollfd fds[GP_DEVICE_MAX + 1]; /* the last: we are to end */
	uint32_t gpu_ids[GP_DEVICE_MAX], count;
	pthread_t thread;
};

bool gp_kfd_reset_is_told(const char *text, size_t size)
{
	uint64_t number = 0;
	bool in_number = true, any = false;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

		if (c == '\n') {
			in_number = true;
			any = false;
			number = 0;
		} else if (in_number && digit >= 0) {
			number = number << 4 | (uint64_t)digit;
			any = true;
		} else {
			if (in_number && any &&
			    (number == KFD_SMI_EVENT_GPU_PRE_RESET || number == KFD_SMI_EVENT_GPU_POST_RESET))
				return true;
			in_number = false;
		}
	}
	return false;
}

static void *reset_thread(void *context)
{
	struct gp_kfd_reset *reset = context;
	char text[RESET_TEXT_SIZE];
	ssize_t size;

	for (;;) {
		if (poll(reset->fds, reset->count + 1, -1) < 0 && errno != EINTR)
			return NULL;
		if (reset->fds[reset->count].revents)
			return NULL;
		for (uint32_t i = 0; i < reset->count; i++) {
			if (!reset->fds[i].revents)
				continue;
			size = read(reset->fds[i].fd, text, sizeof(text));
			if (size <= 0)
				reset->fds[i].fd = -1 - reset->fds[i].fd; /* poll passes negative ones over */
			else if (gp_kfd_reset_is_told(text, (size_t)size))
				reset->host.failed(reset->host.daemon, reset->gpu_ids[i],
						   "the GPU was reset; processes that used it must be started again");
		}
	}
}

static int reset_open(struct gp_backend *backend, uint32_t gpu_id)
{
	struct kfd_ioctl_smi_events_args args = { .gpuid = gpu_id };
	uint64_t mask = KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_GPU_PRE_RESET) |
			KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_GPU_POST_RESET);
	int r = gp_kfd_ioctl(backend->fd, AMDKFD_IOC_SMI_EVENTS, &args);

	if (r < 0)
		return r;
	if (write((int)args.anon_fd, &mask, sizeof(mask)) != sizeof(mask)) {
		r = -errno;
		close((int)args.anon_fd);
		return r;
	}
	return (int)args.anon_fd;
}

int gp_kfd_reset_create(struct gp_backend *backend, const struct gp_device_info *infos, uint32_t count,
			struct gp_kfd_reset **ret_reset)
{
	struct gp_kfd_reset *reset = calloc(1, sizeof(*reset));
	int r = reset ? 0 : -ENOMEM, fd;

	for (uint32_t i = 0; !r && i < count; i++) {
		fd = reset_open(backend, infos[i].gpu_id);
		if (fd < 0)
			r = fd;
		else
			reset->fds[reset->count] = (struct pollfd){ .fd = fd, .events = POLLIN };
		reset->gpu_ids[reset->count] = infos[i].gpu_id;
		reset->count += !r;
	}
	if (!r) {
		reset->host = backend->host;
		reset->fds[reset->count] = (struct pollfd){ .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
		r = -pthread_create(&reset->thread, NULL, reset_thread, reset);
	}
	if (r) {
		for (uint32_t i = 0; reset && i < reset->count; i++)
			close(reset->fds[i].fd);
		free(reset);
		return r;
	}
	*ret_reset = reset;
	return 0;
}

void gp_kfd_reset_destroy(struct gp_kfd_reset *reset)
{
	uint64_t one = 1;

	if (!reset)
		return;
	if (write(reset->fds[reset->count].fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(reset->thread, NULL);
	for (uint32_t i = 0; i <= reset->count; i++)
		close(reset->fds[i].fd < 0 ? -1 - reset->fds[i].fd : reset->fds[i].fd);
	free(reset);
}
