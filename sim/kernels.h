/* SPDX-License-Identifier: MIT */
/*
 * Sequences of kernels from files, as what runs one after the other. Three formats, told apart by the header line:
 *  - rocprofv3's kernel_trace.csv, columns found by name. Needed: Kernel_Name, Start_Timestamp, End_Timestamp. Used
 *    where there: Queue_Id, Workgroup_Size_X/Y/Z, Grid_Size_X/Y/Z (work-items), VGPR_Count, Accum_VGPR_Count,
 *    LDS_Block_Size (also under its older name Group_Segment_Size). Rows come in any order and are sorted by start.
 *  - a kernel sequence of one's own: the same column names, with Duration_Ns in the place of the two timestamps.
 *    Rows keep their order.
 *  - the V100 lists of Orion: Name,Profile,Memory_footprint,SM_usage,Duration (ns; SM_usage is the number of
 *    blocks).
 */
#ifndef GP_SIM_KERNELS_H
#define GP_SIM_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_TRACE_KERNELS_MAX     (1u << 20) /* rows of one file */
#define GP_TRACE_FILE_SIZE_MAX   (256u << 20)
#define GP_TRACE_DURATION_NS_MAX 3600000000000ull /* of one kernel: an hour */
#define GP_TRACE_NAME_SIZE       64u

struct gp_trace_kernel {
	char name[GP_TRACE_NAME_SIZE]; /* cut to fit at a character's end */
	uint64_t start_ns, end_ns;     /* as in the file; both 0 where has_times is false */
	uint64_t duration_ns;          /* at least 1 */
	uint64_t queue;                /* 0: unknown */
	uint32_t workgroups;           /* of the whole grid; 0: unknown */
	uint32_t workgroup_size;       /* work-items of one; 0: unknown */
	uint32_t vgprs;                /* per work-item, accumulation registers included; 0: unknown */
	uint32_t lds_size;             /* bytes per workgroup */
	uint32_t per_cu_max;           /* workgroups that fit a compute unit, measured; 0: unknown */
};

struct gp_trace_kernels {
	uint32_t count;
	bool has_times; /* start_ns and end_ns are set */
	struct gp_trace_kernel *kernels;
};

/* 0, or a negative errno with "file:line: …" and nothing returned. A file without a kernel is refused. */
int gp_trace_kernels_load(const char *path, struct gp_trace_kernels *ret_kernels, struct gp_error *error);
int gp_trace_kernels_parse(const char *text, size_t text_size, const char *file_name,
			   struct gp_trace_kernels *ret_kernels, struct gp_error *error);
void gp_trace_kernels_fini(struct gp_trace_kernels *kernels); /* safe on zeroes, and twice */

/* Copies a name into at most name_size bytes without splitting a character. */
void gp_trace_name_copy(char *name, size_t name_size, const char *from);

#endif
