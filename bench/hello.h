/* SPDX-License-Identifier: MIT */
/* An agent of a bench's own greets the daemon: HELLO, the page and the doorbell of WELCOME, one queue on the null
 * device. */
#ifndef GP_BENCH_HELLO_H
#define GP_BENCH_HELLO_H

#include "test/unit/welcome.h"

#define GP_BENCH_GPU 1u /* the null device's first */

/* On a connected socket. NULL, or what failed. */
static inline const char *gp_bench_hello(int fd, int32_t priority, struct gp_page **ret_page, int *ret_doorbell_fd)
{
	struct gp_wire_hello hello = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_HELLO, sizeof(hello), 0 },
		.version_min = GP_WIRE_VERSION_MIN,
		.version_max = GP_WIRE_VERSION,
		.flags = GP_HELLO_DOORBELLS | GP_HELLO_RUNTIME,
		.mechanisms = GP_MECHANISM_BIT(GP_MECHANISM_SELF),
		.pid = getpid(),
		.attr = { .valid = GP_ATTR_PRIORITY, .priority = priority },
		.name = "bench",
	};
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.generation = 1,
		.flags = GP_QUEUE_SEEN,
		.gpu_id = GP_BENCH_GPU,
		.hw_priority = 7,
		.ring_size = 4096,
	};
	struct gp_wire_welcome welcome;
	struct gp_page *page;
	const char *wrong;
	int doorbell_fd;

	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		return "HELLO";
	wrong = gp_test_welcome(fd, 0, &welcome, &page, &doorbell_fd);
	if (wrong)
		return wrong;
	page->queues[0].generation = 1;
	if (send(fd, &queue, sizeof(queue), MSG_NOSIGNAL) != sizeof(queue))
		return "QUEUE_ADD";
	*ret_page = page;
	*ret_doorbell_fd = doorbell_fd;
	return NULL;
}

#endif
