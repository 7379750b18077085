/* SPDX-License-Identifier: MIT */
/* Hardware queue slots as KFD's debugfs shows them (/sys/kernel/debug/kfd/hqds): which pipe and slot holds a queue now.
 */
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
struct gp_hqd {
	uint32_t slot_count;
	struct gp_hqd_slot *slots;
};

/* Both spellings (Linux 6.1: no instance; newer and DKMS: with). What is not a compute slot is passed over. -EINVAL:
 * not such a text; -ENOMEM. */
int gp_hqd_parse(struct gp_hqd *hqd, const char *text, size_t size, struct gp_error *error);
int gp_hqd_load(struct gp_hqd *hqd, struct gp_error *error); /* from the file; root only */
void gp_hqd_fini(struct gp_hqd *hqd);
/* Slots in use and slots in all of one GPU's instance 0: a queue is on every instance of its partition. */
void gp_hqd_count(const struct gp_hqd *hqd, uint32_t gpu_id, uint32_t *ret_active, uint32_t *ret_all);

#endif
