/* SPDX-License-Identifier: MIT */
/* Owns the thread that waits for resets. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "device/kfd/reset.h"
#include "lib/klog.h"

#define RESET_TEXT_SIZE 8192u /* largest record of the log (CONSOLE_EXT_LOG_MAX) */
#define RESET_LOG       "/dev/kmsg"

struct gp_kfd_reset {
	struct gp_device_host host;
	struct pollfd fds[GP_DEVICE_MAX + 2]; /* events of each GPU; then RESET_END, the log */
	uint32_t gpu_ids[GP_DEVICE_MAX], count;
	char bdfs[GP_DEVICE_MAX][16];
	pthread_t thread;
};

#define RESET_END(reset)    (&(reset)->fds[(reset)->count]) /* readable: the thread must end */
#define RESET_KERNEL(reset) (&(reset)->fds[(reset)->count + 1])

bool gp_kfd_reset_is_reported(const char *text, size_t size)
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

bool gp_kfd_reset_is_logged(const char *record, size_t size, const char *bdf)
{
	const char *end = memchr(record, '\n', size), *text;
	const struct gp_klog_pattern *pattern;
	char line[RESET_TEXT_SIZE];
	uint32_t facility = 0;
	size_t i = 0;

	/* "priority,sequence,time,flags;text\n": a priority below 8 is the kernel's own; records that users write have
	 * another facility. */
	size = end ? (size_t)(end - record) : size;
	for (; i < size && i < 4 && record[i] >= '0' && record[i] <= '9'; i++)
		facility = facility * 10 + (uint32_t)(record[i] - '0');
	text = memchr(record, ';', size);
	if (!i || facility > 7 || !text)
		return false;
	(void)snprintf(line, sizeof(line), "%.*s", (int)(size - (size_t)(text - record)), text);
	pattern = strstr(line, bdf) ? gp_klog_find(line) : NULL;
	return pattern && pattern->stops;
}

/* One record per read. EPIPE: the kernel overwrote records before the thread read them. */
static void reset_read_log(struct gp_kfd_reset *reset, char *text)
{
	ssize_t size = read(RESET_KERNEL(reset)->fd, text, RESET_TEXT_SIZE);

	if (size == 0 || (size < 0 && errno != EPIPE && errno != EAGAIN && errno != EINTR)) {
		RESET_KERNEL(reset)->fd = -1 - RESET_KERNEL(reset)->fd;
		return;
	}
	for (uint32_t i = 0; size > 0 && i < reset->count; i++)
		if (gp_kfd_reset_is_logged(text, (size_t)size, reset->bdfs[i]))
			reset->host.failed(
				reset->host.daemon, reset->gpu_ids[i],
				"the driver could not preempt a queue (kernel log); its process must be started again");
}

static void *reset_thread(void *context)
{
	struct gp_kfd_reset *reset = context;
	char text[RESET_TEXT_SIZE];
	ssize_t size;

	for (;;) {
		if (poll(reset->fds, reset->count + 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (RESET_END(reset)->revents)
			return NULL;
		if (RESET_KERNEL(reset)->revents)
			reset_read_log(reset, text);
		for (uint32_t i = 0; i < reset->count; i++) {
			if (!reset->fds[i].revents)
				continue;
			size = read(reset->fds[i].fd, text, sizeof(text));
			if (size <= 0)
				reset->fds[i].fd = -1 - reset->fds[i].fd; /* poll skips negative ones */
			else if (gp_kfd_reset_is_reported(text, (size_t)size))
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
	int r = gp_kfd_call(backend->fd, AMDKFD_IOC_SMI_EVENTS, &args);

	if (r < 0)
		return r;
	if (write((int)args.anon_fd, &mask, sizeof(mask)) != sizeof(mask)) {
		r = -errno;
		close((int)args.anon_fd);
		return r;
	}
	return (int)args.anon_fd;
}

static void reset_close(struct gp_kfd_reset *reset)
{
	for (uint32_t i = 0; i < reset->count + 2; i++) {
		int fd = reset->fds[i].fd;

		if (fd != INT32_MIN)
			close(fd < 0 ? -1 - fd : fd); /* negative: reset_thread() has given up on it */
	}
	free(reset);
}

int gp_kfd_reset_create(struct gp_backend *backend, struct gp_device_info *infos, uint32_t count,
			struct gp_kfd_reset **ret_reset)
{
	struct gp_kfd_reset *reset = calloc(1, sizeof(*reset));
	int r, events = 0, log;

	if (!reset)
		return -ENOMEM;
	reset->host = backend->host;
	reset->count = count;
	for (uint32_t i = 0; i < count; i++) {
		/* Without events the thread still reads the log, and the other way round. */
		r = reset_open(backend, infos[i].gpu_id);
		events = r < 0 ? r : events;
		reset->fds[i] = (struct pollfd){ .fd = r < 0 ? INT32_MIN : r, .events = POLLIN };
		reset->gpu_ids[i] = infos[i].gpu_id;
		snprintf(reset->bdfs[i], sizeof(reset->bdfs[i]), "%s", infos[i].bdf);
	}
	log = open(RESET_LOG, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	r = log < 0 ? -errno : 0;
	if (log >= 0)
		(void)lseek(log, 0, SEEK_END); /* older records are for doctor */
	*RESET_KERNEL(reset) = (struct pollfd){ .fd = log < 0 ? INT32_MIN : log, .events = POLLIN };
	*RESET_END(reset) = (struct pollfd){ .fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN };
	for (uint32_t i = 0; i < count; i++) {
		if (events < 0)
			gp_device_say(&infos[i], GP_MECHANISM_NONE, false,
				      "the daemon cannot detect resets of the GPU: %s", strerror(-events));
		if (r < 0)
			gp_device_say(&infos[i], GP_MECHANISM_NONE, false,
				      "the daemon cannot detect resets of single queues: " RESET_LOG ": %s",
				      strerror(-r));
	}
	r = -pthread_create(&reset->thread, NULL, reset_thread, reset);
	if (r) {
		reset_close(reset);
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
	if (write(RESET_END(reset)->fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(reset->thread, NULL);
	reset_close(reset);
}
