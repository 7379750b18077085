/* SPDX-License-Identifier: MIT */
/*
 * Device descriptions: data files (share/devices/NAME.ini) in which each value carries its unit, its kind and its
 * source. A value without a source is refused. What is not public is a range with a default, or a named alternative.
 *
 *   [device]
 *   cu_count   = 304 count | specified | sysfs simd_count / 4 (MI300X dump)
 *   gate_fixed = 60..500 us default 105 | assumed | nobody has published one; range from ioctl + HIQ + fence + map
 *   blocked_head = hold | assumed | alternatives: hold, rotate; not public
 */
#ifndef GP_MODEL_DESC_H
#define GP_MODEL_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

enum gp_desc_kind { GP_DESC_SPECIFIED, GP_DESC_MEASURED, GP_DESC_FITTED, GP_DESC_ASSUMED };
enum gp_desc_unit { GP_DESC_COUNT, GP_DESC_BYTES, GP_DESC_NS, GP_DESC_BYTES_PER_S, GP_DESC_HZ, GP_DESC_CHOICE };

enum gp_scheduler { GP_SCHEDULER_CPSCH, GP_SCHEDULER_MES, GP_SCHEDULER_TSG };

/* Every key of a description. The table in desc.c gives each its name, unit and limits. Add at the end. */
enum gp_desc_key {
	GP_DESC_SCHEDULER, /* choice: cpsch, mes, tsg */
	GP_DESC_XCC_COUNT,
	GP_DESC_SE_COUNT /* per XCC */,
	GP_DESC_CU_COUNT /* whole device */,
	GP_DESC_WAVES_PER_CU,
	GP_DESC_VGPR_SIZE /* bytes per CU */,
	GP_DESC_LDS_SIZE /* bytes per CU */,
	GP_DESC_SGPR_SIZE,
	GP_DESC_HWREG_SIZE,
	GP_DESC_CLOCK,
	GP_DESC_MEMORY_SIZE,
	GP_DESC_MEMORY_BANDWIDTH,
	GP_DESC_SAVE_BANDWIDTH,
	GP_DESC_PIPE_COUNT,
	GP_DESC_SLOT_COUNT /* KFD compute HQDs */,
	GP_DESC_PROCESS_COUNT /* VMIDs */,
	GP_DESC_QUEUE_QUANTUM,
	GP_DESC_PROCESS_QUANTUM,
	GP_DESC_COPY_ENGINE_COUNT,
	GP_DESC_COPY_QUEUE_COUNT /* per engine */,
	GP_DESC_COPY_BANDWIDTH /* per engine */,
	GP_DESC_COPY_LATENCY,
	GP_DESC_PACKET_NS,      /* command processor time per packet */
	GP_DESC_DOORBELL_NS,    /* doorbell store to the packet being seen */
	GP_DESC_SIGNAL_NS,      /* last workgroup to the completion being visible */
	GP_DESC_GATE_FIXED_NS,  /* transaction: everything but moving the bytes, range */
	GP_DESC_SLICE_LOSS_NS,  /* lost per process slice when oversubscribed */
	GP_DESC_PIPE_SWITCH_NS, /* a pipe changes queues */
	GP_DESC_BLOCKED_HEAD,   /* choice: hold, rotate */
	GP_DESC_SLICE_PACKING,  /* choice: process, slots */
	GP_DESC_EMPTY_PROCESS,  /* choice: skip, hold: does a process without active queues take a place in a slice */
	GP_DESC_TIMESLICE_NS,   /* tsg: default time slice */
	GP_DESC_SWITCH_OUT_NS,
	GP_DESC_SWITCH_IN_NS, /* tsg: context save, context restore */
	GP_DESC_DISABLE_NS,
	GP_DESC_ENABLE_NS,       /* tsg: hold-out calls */
	GP_DESC_DISABLE_STOP_NS, /* tsg: into the disabling call, the context stops making progress */
	GP_DESC_KEY_COUNT
};

struct gp_desc_value {
	int64_t value, min, max; /* min = max = value where no range is given; choices: index */
	bool present;
	enum gp_desc_kind kind;
	char source[200];
};

struct gp_desc {
	char name[32], title[96];
	struct gp_desc_value values[GP_DESC_KEY_COUNT];
};

int gp_desc_load(const char *path, struct gp_desc *ret_desc, struct gp_error *error);
int gp_desc_parse(const char *text, size_t text_size, const char *file_name, struct gp_desc *ret_desc,
		  struct gp_error *error);
/* "key=value" as on the command line, e.g. "blocked_head=rotate" or "gate_fixed=60us": within the key's limits and
 * range. */
int gp_desc_override(struct gp_desc *desc, const char *assignment, struct gp_error *error);
int64_t gp_desc_get(const struct gp_desc *desc, enum gp_desc_key key);
const char *gp_desc_key_name(enum gp_desc_key key);
/* One line per value: key, value with unit, range, kind, source. */
int gp_desc_line(const struct gp_desc *desc, enum gp_desc_key key, char *ret_line, size_t line_size);

#endif
