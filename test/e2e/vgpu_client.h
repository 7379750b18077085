/* SPDX-License-Identifier: MIT */
/* A client that speaks the KFD ABI itself, for the tests of the virtual node: memory, queues, packets, signals. It
 * exits with a sentence when something that must work does not. */
#ifndef GP_TEST_E2E_VGPU_CLIENT_H
#define GP_TEST_E2E_VGPU_CLIENT_H

#include <linux/kfd_ioctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_KERNEL_COUNT 7u /* s_nop N, as in vgpu_kernels.ini */
#define CLIENT_KERNEL_SLOW  8u
#define CLIENT_KERNEL_FAST  9u
#define CLIENT_KERNEL_HEAVY 10u
#define CLIENT_WAIT_MS      20000u

struct client_signal {
	int64_t kind;
	volatile int64_t value;
	uint64_t mailbox;
	uint32_t event_id, pad;
	volatile uint64_t start, end;
	uint64_t queue, more;
};
struct client_packet {
	uint16_t header, setup, workgroup_size[3], pad;
	uint32_t grid_size[3], private_size, group_size;
	uint64_t kernel, kernarg, reserved, signal;
};
struct client_barrier {
	uint16_t header, pad;
	uint32_t pad2;
	uint64_t deps[5], reserved, signal;
};
struct client_kernarg {
	uint64_t counts;
	uint32_t groups, pad;
};

struct client {
	int kfd, render;
	uint32_t gpu_id, gpu_count, gpu_ids[8];
	uint32_t percent; /* of queues to be created */
	uint64_t handle;  /* of the memory last allocated */
};
/* A context-save area. */
struct client_save {
	void *address;
	uint32_t size, stack_size;
};
struct client_queue {
	struct client *client;
	uint32_t id, packets, ring_size;
	uint8_t *ring;
	uint8_t *control; /* an amd_queue_t: write index at 56, read index at 128, inactive signal at 192 */
	volatile uint64_t *doorbell;
	struct client_signal *inactive;
};

void client_open(struct client *client);
int client_ioctl(const struct client *client, unsigned long request, void *arg); /* 0 or more, or -errno */
void *client_alloc(struct client *client, size_t size, uint32_t flags);          /* mapped on the GPU and here */
int client_try_alloc(struct client *client, size_t size, uint32_t flags, uint64_t va, __u64 *ret_handle,
		     __u64 *ret_offset);
int client_queue_try_create(struct client *client, struct client_queue *queue, uint32_t packets); /* 0 or -errno */
int client_queue_try_create_with(struct client *client, struct client_queue *queue, uint32_t packets,
				 const struct client_save *save);
void client_queue_create(struct client *client, struct client_queue *queue, uint32_t packets);
int client_queue_update(struct client_queue *queue, uint32_t percent);
int client_queue_destroy(struct client_queue *queue);
struct client_signal *client_signal(struct client *client, int64_t value);
uint64_t client_kernel(struct client *client, uint32_t number);
void client_submit(struct client_queue *queue, const void *packet);
struct client_packet client_dispatch(uint64_t kernel, struct client_kernarg *kernarg, struct client_signal *signal);
bool client_wait(struct client_signal *signal); /* until it is 0 */
uint64_t client_read_index(const struct client_queue *queue);
uint64_t client_sum(const uint32_t *counts, uint32_t count);
void client_sleep_ms(uint32_t ms);
long client_halts(const char *vgpu);             /* of the first GPU so far, by the node's own count */
void client_result(const char *name, bool good); /* one TAP line */
int client_done(void);                           /* exit status */

#define CLIENT_CHECK(condition)                                          \
	do {                                                             \
		if (!(condition)) {                                      \
			client_complain(__FILE__, __LINE__, #condition); \
		}                                                        \
	} while (0)
void client_complain(const char *file, int line, const char *what);

#endif
