/* SPDX-License-Identifier: MIT */
/* Hardware queues as KFD's debugfs shows them (/sys/kernel/debug/kfd): hqds, which pipe and slot holds a queue now;
 * mqds, the queues of each process with their priorities; rls, the run lists. */
#ifndef GP_CLI_HQD_H
#define GP_CLI_HQD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_HQD_PATH     "/sys/kernel/debug/kfd/hqds"
#define GP_HQD_PATH_ENV "GPREEMPT_HQDS" /* a file instead, e.g. from another machine */
#define GP_HQD_SLOT_MAX 65536u

struct gp_hqd_slot {
	uint32_t gpu_id, instance, pipe, queue; /* instance: the XCC */
	uint32_t vmid;
	bool is_active, is_known; /* is_known: the registers were in the text */
};
/* Of mqds: a queue of a process. On a GPU with several XCCs each queue is there once for each of them. */
struct gp_hqd_queue {
	uint32_t pid, gpu_id;
	bool is_compute, is_known; /* is_known: it is a compute queue of gfx9 and its words were in the text */
	bool is_active;
	uint32_t pipe_priority, queue_priority;
};
/* Of rls: what the firmware was told to run. */
struct gp_hqd_list {
	uint32_t gpu_id, process_count, queue_count;
};
struct gp_hqd {
	uint32_t slot_count, queue_count, list_count;
	struct gp_hqd_slot *slots;
	struct gp_hqd_queue *queues;
	struct gp_hqd_list *lists;
};

/* Any of the three, by content. Both spellings of hqds (Linux 6.1: no instance; newer and DKMS: with). What is not a
 * compute slot is passed over. -EINVAL:
 * not such a text; -ENOMEM. */
int gp_hqd_parse(struct gp_hqd *hqd, const char *text, size_t size, struct gp_error *error);
/* From a file; NULL: debugfs' hqds, which only root may read. */
int gp_hqd_load(struct gp_hqd *hqd, const char *path, struct gp_error *error);
void gp_hqd_fini(struct gp_hqd *hqd);
/* Slots in use and slots in all of one GPU's instance 0: a queue is on every instance of its partition. */
void gp_hqd_count(const struct gp_hqd *hqd, uint32_t gpu_id, uint32_t *ret_active, uint32_t *ret_all);

#endif
