/* SPDX-License-Identifier: MIT */
/* A small KFD client of our own, for `gpreempt bench device`: memory, AQL queues, barrier packets and one kernel, gates
 * by UPDATE_QUEUE and by DBG_TRAP on itself. No runtime, no compiler. Every wait has an end. */
#ifndef GP_CLI_BENCH_KFD_H
#define GP_CLI_BENCH_KFD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_BENCH_QUEUE_MAX 64u
#define GP_BENCH_RING      256u /* packets */

/* As the command processor writes it (amd_signal_t). */
struct gp_bench_signal {
	int64_t kind;
	volatile int64_t value;
	uint64_t mailbox;
	uint32_t event_id, pad;
	uint64_t start, end, queue, more;
};

struct gp_bench_queue {
	uint32_t id;
	uint8_t *ring, *control; /* control: an amd_queue_t */
	void *eop, *save;
	void *doorbell_page;
	volatile uint64_t *doorbell;
};

struct gp_bench_kfd {
	int kfd, render;
	uint32_t gpu_id, xcc_count, cu_count, gfx_version, slot_count, node;
	uint32_t kfd_major, kfd_minor;
	uint64_t dilation;                                /* real time per device time: 1 on hardware */
	size_t save_size, control_stack_size, save_total; /* of one queue */
	uint8_t *page;                                    /* signals, kernel */
	uint32_t signal_count;
	uint64_t kernel; /* address of its descriptor */
	uint32_t queue_count;
	struct gp_bench_queue queues[GP_BENCH_QUEUE_MAX];
	bool has_runtime, is_debugged;
	char name[64];
};

/* gpu_id 0: the first. Each failure is a sentence. */
int gp_bench_kfd_open(struct gp_bench_kfd *kfd, uint32_t gpu_id, struct gp_error *error);
void gp_bench_kfd_close(struct gp_bench_kfd *kfd); /* gates open, queues gone */

int gp_bench_kfd_queue(struct gp_bench_kfd *kfd);                 /* one more; -errno */
void gp_bench_kfd_drop(struct gp_bench_kfd *kfd, uint32_t count); /* all but the first `count` */
struct gp_bench_signal *gp_bench_kfd_signal(struct gp_bench_kfd *kfd, int64_t value);
/* A barrier that waits for dependency (NULL: for nothing) and then counts done down. */
void gp_bench_kfd_barrier(struct gp_bench_queue *queue, struct gp_bench_signal *dependency,
			  struct gp_bench_signal *done);
void gp_bench_kfd_kernel(struct gp_bench_kfd *kfd, struct gp_bench_queue *queue, uint32_t groups,
			 struct gp_bench_signal *done);
bool gp_bench_kfd_wait(const struct gp_bench_signal *signal, uint64_t timeout_ns); /* until it is 0; spins */
uint64_t gp_bench_kfd_read_index(const struct gp_bench_queue *queue);

int gp_bench_kfd_update(struct gp_bench_kfd *kfd, struct gp_bench_queue *queue, bool open);
/* DBG_TRAP on oneself. enable: -errno where the kernel cannot. */
int gp_bench_kfd_debug(struct gp_bench_kfd *kfd, bool enable);
int gp_bench_kfd_suspend(struct gp_bench_kfd *kfd, uint32_t count); /* the first `count` queues, in one call */
int gp_bench_kfd_resume(struct gp_bench_kfd *kfd, uint32_t count);

uint64_t gp_bench_now_ns(void);

#endif
