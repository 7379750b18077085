/* SPDX-License-Identifier: MIT */
/* Owns the reading of kernel sequences from CSV. Refuses a row it does not understand rather than guessing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "lib/csv.h"
#include "lib/file.h"
#include "lib/utf8.h"
#include "sim/kernels.h"

#define KERNELS_VGPR_MAX 512u
#define KERNELS_LDS_MAX  (1u << 20)

enum kernels_column {
	KERNELS_KIND,
	KERNELS_NAME,
	KERNELS_START,
	KERNELS_END,
	KERNELS_DURATION,
	KERNELS_QUEUE,
	KERNELS_VGPR,
	KERNELS_ACCUM_VGPR,
	KERNELS_LDS,
	KERNELS_WORKGROUP_X,
	KERNELS_WORKGROUP_Y,
	KERNELS_WORKGROUP_Z,
	KERNELS_GRID_X,
	KERNELS_GRID_Y,
	KERNELS_GRID_Z,
	KERNELS_BLOCKS,
	KERNELS_COLUMN_COUNT
};

/* Names as rocprofv3 writes them; the second is the older or Orion's one. */
static const char *const kernels_names[KERNELS_COLUMN_COUNT][2] = {
	[KERNELS_KIND] = { "Kind" },
	[KERNELS_NAME] = { "Kernel_Name", "Name" },
	[KERNELS_START] = { "Start_Timestamp" },
	[KERNELS_END] = { "End_Timestamp" },
	[KERNELS_DURATION] = { "Duration_Ns", "Duration" },
	[KERNELS_QUEUE] = { "Queue_Id" },
	[KERNELS_VGPR] = { "VGPR_Count" },
	[KERNELS_ACCUM_VGPR] = { "Accum_VGPR_Count" },
	[KERNELS_LDS] = { "LDS_Block_Size", "Group_Segment_Size" },
	[KERNELS_WORKGROUP_X] = { "Workgroup_Size_X" },
	[KERNELS_WORKGROUP_Y] = { "Workgroup_Size_Y" },
	[KERNELS_WORKGROUP_Z] = { "Workgroup_Size_Z" },
	[KERNELS_GRID_X] = { "Grid_Size_X" },
	[KERNELS_GRID_Y] = { "Grid_Size_Y" },
	[KERNELS_GRID_Z] = { "Grid_Size_Z" },
	[KERNELS_BLOCKS] = { "SM_usage" },
};

struct kernels_reader {
	struct gp_csv csv;
	uint32_t header_count;
	int columns[KERNELS_COLUMN_COUNT]; /* -1: not in this file */
	struct gp_trace_kernel *kernels;
	uint32_t count, room;
};

static int kernels_refuse(const struct kernels_reader *reader, struct gp_error *error, const char *what)
{
	return gp_error_set(error, -EINVAL, "%s:%u: %s", reader->csv.file_name, reader->csv.line, what);
}

void gp_trace_name_copy(char *name, size_t name_size, const char *from)
{
	size_t left = strlen(from), used = 0;

	while (left) {
		size_t size = gp_utf8_decode(from, left, NULL);

		if (used + (size ? size : 1) >= name_size)
			break;
		/* What is not UTF-8 becomes a question mark, so that no view has to care. */
		if (size)
			memcpy(name + used, from, size);
		else
			name[used] = '?';
		size = size ? size : 1;
		used += size;
		from += size;
		left -= size;
	}
	name[used] = '\0';
}

static bool kernels_has(const struct kernels_reader *reader, enum kernels_column column)
{
	return reader->columns[column] >= 0;
}

static int kernels_header(struct kernels_reader *reader, struct gp_error *error)
{
	int r = gp_csv_next(&reader->csv, error);

	if (r < 0)
		return r;
	if (r == 0)
		return gp_error_set(error, -EINVAL, "%s:1: the file is empty", reader->csv.file_name);
	for (int i = 0; i < KERNELS_COLUMN_COUNT; i++)
		for (int j = 1; j >= 0; j--) {
			int found = kernels_names[i][j] ? gp_csv_column(&reader->csv, kernels_names[i][j]) : -1;

			reader->columns[i] = found >= 0 || j == 1 ? found : reader->columns[i];
		}
	reader->header_count = reader->csv.field_count;
	if (!kernels_has(reader, KERNELS_NAME))
		return kernels_refuse(
			reader, error,
			"not a list of kernels: there is no column Kernel_Name (rocprofv3) or Name (Orion)");
	if (!kernels_has(reader, KERNELS_DURATION) &&
	    !(kernels_has(reader, KERNELS_START) && kernels_has(reader, KERNELS_END)))
		return kernels_refuse(
			reader, error,
			"not a list of kernels: there is neither Start_Timestamp and End_Timestamp nor Duration_Ns");
	return 0;
}

/* The value of an optional column, or `absent`, at most UINT32_MAX. */
static int kernels_u32(const struct kernels_reader *reader, enum kernels_column column, uint32_t absent,
		       uint32_t *ret_value, struct gp_error *error)
{
	uint64_t value = absent;
	int r = kernels_has(reader, column) ? gp_csv_u64(&reader->csv, reader->columns[column], &value, error) : 0;

	if (r < 0)
		return r;
	if (value > UINT32_MAX)
		return gp_error_set(error, -ERANGE, "%s:%u: column %s is above 4294967295", reader->csv.file_name,
				    reader->csv.line, kernels_names[column][0]);
	*ret_value = (uint32_t)value;
	return 0;
}

static int kernels_times(const struct kernels_reader *reader, struct gp_trace_kernel *kernel, struct gp_error *error)
{
	int r;

	if (kernels_has(reader, KERNELS_DURATION)) {
		r = gp_csv_u64(&reader->csv, reader->columns[KERNELS_DURATION], &kernel->duration_ns, error);
		if (r < 0)
			return r;
		if (!kernel->duration_ns)
			return kernels_refuse(reader, error, "the duration is 0; a kernel takes at least 1 ns");
	} else {
		r = gp_csv_u64(&reader->csv, reader->columns[KERNELS_START], &kernel->start_ns, error);
		if (r < 0)
			return r;
		r = gp_csv_u64(&reader->csv, reader->columns[KERNELS_END], &kernel->end_ns, error);
		if (r < 0)
			return r;
		if (kernel->end_ns <= kernel->start_ns)
			return kernels_refuse(reader, error, "End_Timestamp is not after Start_Timestamp");
		kernel->duration_ns = kernel->end_ns - kernel->start_ns;
	}
	if (kernel->duration_ns > GP_TRACE_DURATION_NS_MAX)
		return kernels_refuse(reader, error, "the kernel is longer than an hour");
	return 0;
}

/* Workgroups of the grid, which rocprofv3 gives in work-items; a last partial workgroup counts as one. */
static int kernels_grid(const struct kernels_reader *reader, struct gp_trace_kernel *kernel, struct gp_error *error)
{
	uint64_t workgroups = 1, size = 1;
	int r;

	if (kernels_has(reader, KERNELS_BLOCKS))
		return kernels_u32(reader, KERNELS_BLOCKS, 0, &kernel->workgroups, error);
	if (!kernels_has(reader, KERNELS_WORKGROUP_X) || !kernels_has(reader, KERNELS_GRID_X))
		return 0;
	for (int i = 0; i < 3; i++) {
		uint32_t side = 0, grid = 0;

		r = kernels_u32(reader, (enum kernels_column)(KERNELS_WORKGROUP_X + i), 1, &side, error);
		if (r < 0)
			return r;
		r = kernels_u32(reader, (enum kernels_column)(KERNELS_GRID_X + i), 1, &grid, error);
		if (r < 0)
			return r;
		if (!side || !grid)
			return kernels_refuse(reader, error, "a workgroup or grid size is 0");
		size *= side;
		workgroups *= ((uint64_t)grid + side - 1) / side;
		if (size > UINT32_MAX || workgroups > UINT32_MAX)
			return kernels_refuse(reader, error,
					      "the grid has more than 4294967295 workgroups or work-items in one");
	}
	kernel->workgroups = (uint32_t)workgroups;
	kernel->workgroup_size = (uint32_t)size;
	return 0;
}

static int kernels_row(const struct kernels_reader *reader, struct gp_trace_kernel *ret_kernel, struct gp_error *error)
{
	struct gp_trace_kernel kernel = { 0 };
	uint32_t accum = 0;
	int r;

	if (reader->csv.field_count != reader->header_count)
		return gp_error_set(error, -EINVAL,
				    "%s:%u: the row has %u columns and the header %u: the file is truncated or damaged",
				    reader->csv.file_name, reader->csv.line, reader->csv.field_count,
				    reader->header_count);
	if (kernels_has(reader, KERNELS_KIND) &&
	    strcmp(reader->csv.fields[reader->columns[KERNELS_KIND]], "KERNEL_DISPATCH"))
		return kernels_refuse(reader, error, "the row is not a KERNEL_DISPATCH");
	gp_trace_name_copy(kernel.name, sizeof(kernel.name), reader->csv.fields[reader->columns[KERNELS_NAME]]);
	if (!kernel.name[0])
		return kernels_refuse(reader, error, "the kernel has no name");
	r = kernels_times(reader, &kernel, error);
	if (r < 0)
		return r;
	r = kernels_grid(reader, &kernel, error);
	if (r < 0)
		return r;
	if (kernels_has(reader, KERNELS_QUEUE))
		r = gp_csv_u64(&reader->csv, reader->columns[KERNELS_QUEUE], &kernel.queue, error);
	if (r < 0)
		return r;
	r = kernels_u32(reader, KERNELS_VGPR, 0, &kernel.vgprs, error);
	if (r < 0)
		return r;
	r = kernels_u32(reader, KERNELS_ACCUM_VGPR, 0, &accum, error);
	if (r < 0)
		return r;
	/* rocprofv3 counts registers per lane, in both files together; twice that is more than any device has. */
	if (kernel.vgprs > KERNELS_VGPR_MAX || accum > KERNELS_VGPR_MAX)
		return kernels_refuse(reader, error, "a register count is above 512");
	kernel.vgprs += accum;
	r = kernels_u32(reader, KERNELS_LDS, 0, &kernel.lds_size, error);
	if (r < 0)
		return r;
	if (kernel.lds_size > KERNELS_LDS_MAX)
		return kernels_refuse(reader, error, "LDS_Block_Size is above 1 MiB");
	*ret_kernel = kernel;
	return 0;
}

static int kernels_add(struct kernels_reader *reader, const struct gp_trace_kernel *kernel, struct gp_error *error)
{
	if (reader->count == GP_TRACE_KERNELS_MAX)
		return kernels_refuse(reader, error, "the file has more than 1048576 kernels");
	if (reader->count == reader->room) {
		uint32_t larger = reader->room ? reader->room * 2 : 256;
		struct gp_trace_kernel *moved = realloc(reader->kernels, larger * sizeof(*moved));

		if (!moved)
			return kernels_refuse(reader, error, "not enough memory");
		reader->kernels = moved;
		reader->room = larger;
	}
	reader->kernels[reader->count++] = *kernel;
	return 0;
}

static int kernels_rows(struct kernels_reader *reader, struct gp_error *error)
{
	struct gp_trace_kernel kernel;
	int r;

	while ((r = gp_csv_next(&reader->csv, error)) > 0) {
		r = kernels_row(reader, &kernel, error);
		if (r < 0)
			return r;
		r = kernels_add(reader, &kernel, error);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	return reader->count ? 0 : kernels_refuse(reader, error, "there is no kernel behind the header");
}

/* By start; rows that start together keep the order of the file. The row's number waits in per_cu_max, which CSV
 * never sets. */
static int kernels_compare(const void *a, const void *b)
{
	const struct gp_trace_kernel *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->per_cu_max < y->per_cu_max ? -1 : x->per_cu_max > y->per_cu_max;
}

static void kernels_sort(struct gp_trace_kernel *kernels, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		kernels[i].per_cu_max = i;
	qsort(kernels, count, sizeof(*kernels), kernels_compare);
	for (uint32_t i = 0; i < count; i++)
		kernels[i].per_cu_max = 0;
}

int gp_trace_kernels_parse(const char *text, size_t text_size, const char *file_name,
			   struct gp_trace_kernels *ret_kernels, struct gp_error *error)
{
	GP_AUTO_FREE struct kernels_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", file_name);
	gp_csv_init(&reader->csv, text, text_size, file_name);
	r = kernels_header(reader, error);
	if (r == 0)
		r = kernels_rows(reader, error);
	if (r < 0) {
		free(reader->kernels);
		return r;
	}
	ret_kernels->has_times = !kernels_has(reader, KERNELS_DURATION);
	if (ret_kernels->has_times)
		kernels_sort(reader->kernels, reader->count);
	ret_kernels->count = reader->count;
	ret_kernels->kernels = reader->kernels;
	return 0;
}

int gp_trace_kernels_load(const char *path, struct gp_trace_kernels *ret_kernels, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	size_t text_size = 0;
	int r = gp_file_read(path, GP_TRACE_FILE_SIZE_MAX, &text, &text_size, error);

	return r < 0 ? r : gp_trace_kernels_parse(text, text_size, path, ret_kernels, error);
}

void gp_trace_kernels_fini(struct gp_trace_kernels *kernels)
{
	free(kernels->kernels);
	memset(kernels, 0, sizeof(*kernels));
}
