/* SPDX-License-Identifier: MIT */
/* Programs of the guest speak to /dev/kfd directly: what ROCr would do, in a few lines. */
#ifndef GUEST_KFD_H
#define GUEST_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/kfd_ioctl.h>

#define RING 256u /* packets */

struct aql_packet {
	uint16_t header, setup, workgroup[3], reserved0;
	uint32_t grid[3], private_size, group_size;
	uint64_t kernel, kernarg, workgroup_ns /* reserved: the software GPU reads the time of a workgroup here */,
		signal;
};

struct signal { /* amd_signal_t */
	int64_t kind;
	volatile int64_t value;
	uint64_t mailbox;
	uint32_t event, reserved1;
	uint64_t start, end, reserved2, reserved3;
} __attribute__((aligned(64)));

struct queue {
	struct kfd_ioctl_create_queue_args args;
	struct aql_packet *ring;
	volatile uint64_t *read_index, *write_index, *doorbell;
	uint64_t written;
};

extern int kfd;
extern uint32_t gpu_id;

double now_ms(void);
void die(const char *what) __attribute__((noreturn));
void kfd_open(void);
void *kfd_memory(size_t size);
struct signal *kfd_signals(unsigned count);
void queue_prepare(struct queue *queue, unsigned priority); /* all but the call */
int queue_create(struct queue *queue, unsigned priority);   /* 0, or a negative errno */
void queue_must(struct queue *queue, unsigned priority);
void queue_update(struct queue *queue, unsigned percent, unsigned priority);
void queue_destroy(struct queue *queue);
void queue_dispatch(struct queue *queue, unsigned workgroups, uint64_t workgroup_ns, struct signal *signal);
int copy_queue_create(struct queue *queue); /* of a copy engine; 0, or a negative errno */
void copy_submit(struct queue *queue, void *to, const void *from, uint32_t size, volatile uint32_t *fence,
		 uint32_t value);
int sched_stats(struct kfd_sched_stats *stats); /* 0, or a negative errno: the kernel does not schedule */
bool wait_below(struct signal *signal, int64_t value, double limit_ms);

#endif
