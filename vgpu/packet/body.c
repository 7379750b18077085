/* SPDX-License-Identifier: MIT */
/*
 * Bodies: what known kernels compute, workgroup by workgroup, in C. Arguments and buffers are the client's: every
 * access is bounded by what is mapped. ROCr's blit kernels move the slice of the whole range that belongs to a
 * workgroup.
 */
#include <errno.h>
#include <string.h>
#include "vgpu/packet/kernels.h"
#include "vgpu/node/memory.h"

#define BODY_SIZE_MAX  (1ull << 40)
#define BODY_GROUP_MAX 1024u /* work items of a workgroup */
#define BODY_PIECE_MAX (16u << 20)

struct body_slice {
	uint64_t begin, end;
};

/* The piece of a slice that is to be moved now, in whole units but for the last. Never much more than a piece: the
 * client may have changed the size since the pieces were counted. */
static struct body_slice body_piece(const struct gp_kernel_call *call, struct body_slice slice, uint64_t unit)
{
	uint64_t count = call->piece_count ? call->piece_count : 1u,
		 units = (slice.end - slice.begin + unit - 1u) / unit;
	uint64_t step = (units + count - 1u) / count * unit, begin = slice.begin + step * call->piece;

	if (step > BODY_PIECE_MAX)
		step = BODY_PIECE_MAX / unit * unit;
	if (begin > slice.end)
		begin = slice.end;
	return (struct body_slice){ begin, slice.end - begin < step ? slice.end : begin + step };
}

/* Workgroup's share of `size` bytes, whole words but for the last. */
static struct body_slice body_slice(const struct gp_kernel_call *call, uint64_t size, uint32_t first, uint32_t last)
{
	uint64_t count = (uint64_t)call->workgroups[0] * call->workgroups[1] * call->workgroups[2];
	uint64_t step = ((size + count - 1u) / count + 3u) & ~3ull;
	struct body_slice slice = { step * first, step * last };

	if (slice.begin > size)
		slice.begin = size;
	if (slice.end > size || last == count)
		slice.end = size;
	return body_piece(call, slice, 4u);
}

/* ROCr's blit kernels (blit_kernel.cpp): ranges given as the corners of phases, the last pair being the end. */

struct body_range {
	uint64_t from, to, size;
};

static int body_copy_range(const struct gp_kernel_call *call, uint32_t end_index, struct body_range *ret_range)
{
	uint64_t corners[10] = { 0 };

	if (gp_vm_read(call->process, call->gpu, call->kernarg, corners, (end_index + 2u) * sizeof(corners[0])) < 0)
		return -EFAULT;
	*ret_range = (struct body_range){ corners[0], corners[1], corners[end_index] - corners[0] };
	return ret_range->size <= BODY_SIZE_MAX ? 0 : -EFAULT;
}

static int body_copy(const struct gp_kernel_call *call, uint32_t end_index, uint32_t first, uint32_t last)
{
	struct body_range range;
	struct body_slice slice;

	if (body_copy_range(call, end_index, &range) < 0)
		return -EFAULT;
	slice = body_slice(call, range.size, first, last);
	return gp_vm_copy(call->process, call->gpu, range.to + slice.begin, range.from + slice.begin,
			  slice.end - slice.begin);
}

static int body_copy_aligned(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	return body_copy(call, 8, first, last);
}

static int body_copy_misaligned(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	return body_copy(call, 4, first, last);
}

static uint64_t body_copy_aligned_bytes(const struct gp_kernel_call *call)
{
	struct body_range range;

	return body_copy_range(call, 8, &range) < 0 ? 0 : range.size * 2u;
}

static uint64_t body_copy_misaligned_bytes(const struct gp_kernel_call *call)
{
	struct body_range range;

	return body_copy_range(call, 4, &range) < 0 ? 0 : range.size * 2u;
}

struct body_fill_args {
	uint64_t begin, middle, end;
	uint32_t value, work_items;
};

static int body_fill(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct body_fill_args args;
	struct body_slice slice;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, sizeof(args)) < 0 ||
	    args.end - args.begin > BODY_SIZE_MAX)
		return -EFAULT;
	slice = body_slice(call, args.end - args.begin, first, last);
	return gp_vm_fill(call->process, call->gpu, args.begin + slice.begin, args.value, slice.end - slice.begin);
}

static uint64_t body_fill_bytes(const struct gp_kernel_call *call)
{
	struct body_fill_args args;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, sizeof(args)) < 0 ||
	    args.end - args.begin > BODY_SIZE_MAX)
		return 0;
	return args.end - args.begin;
}

/* HIP's blit kernels (rocclr 5.2, blitcl.cpp). Work item id moves one word; the last one the odd bytes; or each one
 * byte. */

struct body_hip_copy_args {
	uint64_t from, to, from_origin, to_origin, size;
	uint32_t remain;
};
#define BODY_HIP_COPY_BYTEWISE 8u

static int body_hip_copy_read(const struct gp_kernel_call *call, struct body_hip_copy_args *ret_args,
			      uint64_t *ret_unit, uint64_t *ret_total)
{
	if (gp_vm_read(call->process, call->gpu, call->kernarg, ret_args, 44) < 0 || !ret_args->size ||
	    ret_args->size > BODY_SIZE_MAX / 4u)
		return -EFAULT;
	*ret_unit = ret_args->remain == BODY_HIP_COPY_BYTEWISE ? 1u : 4u;
	*ret_total = ret_args->remain == BODY_HIP_COPY_BYTEWISE ? ret_args->size :
								  (ret_args->size - 1u) * 4u + ret_args->remain % 4u;
	return 0;
}

static int body_hip_copy(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct body_hip_copy_args args;
	uint64_t unit, total, begin, end;

	if (body_hip_copy_read(call, &args, &unit, &total) < 0)
		return -EFAULT;
	begin = (uint64_t)first * call->workgroup_size[0] * unit;
	end = (uint64_t)last * call->workgroup_size[0] * unit;
	if (end > total)
		end = total;
	if (begin >= end)
		return 0;
	return gp_vm_copy(call->process, call->gpu, args.to + args.to_origin + begin,
			  args.from + args.from_origin + begin, end - begin);
}

static uint64_t body_hip_copy_bytes(const struct gp_kernel_call *call)
{
	struct body_hip_copy_args args;
	uint64_t unit, total;

	return body_hip_copy_read(call, &args, &unit, &total) < 0 ? 0 : total * 2u;
}

/* One of four typed pointers is given; work item id writes the pattern once. */
struct body_hip_fill_args {
	uint64_t pointers[4], pattern;
	uint32_t pattern_count, pad;
	uint64_t offset, size;
};
#define BODY_PATTERN_MAX 128u

static int body_hip_fill_read(const struct gp_kernel_call *call, struct body_hip_fill_args *ret_args, uint64_t *ret_to,
			      uint64_t *ret_pattern_size)
{
	if (gp_vm_read(call->process, call->gpu, call->kernarg, ret_args, sizeof(*ret_args)) < 0)
		return -EFAULT;
	for (uint32_t i = 0; i < 4u; i++)
		if (ret_args->pointers[i]) {
			*ret_pattern_size = (uint64_t)ret_args->pattern_count << i;
			*ret_to = ret_args->pointers[i] + (ret_args->offset << i);
			return *ret_pattern_size && *ret_pattern_size <= BODY_PATTERN_MAX &&
					       ret_args->size <= BODY_SIZE_MAX / BODY_PATTERN_MAX ?
				       0 :
				       -EFAULT;
		}
	return -EFAULT;
}

/* Bytes begin..end of a range that repeats a pattern; begin is where the pattern begins anew. */
struct body_pattern {
	uint64_t to, begin, end;
	uint64_t pattern, pattern_size;
};

static int body_pattern_write(const struct gp_kernel_call *call, const struct body_pattern *fill)
{
	uint8_t pattern[BODY_PATTERN_MAX], block[32u * BODY_PATTERN_MAX];
	uint64_t step = sizeof(block) / fill->pattern_size * fill->pattern_size;

	if (gp_vm_read(call->process, call->gpu, fill->pattern, pattern, fill->pattern_size) < 0)
		return -EFAULT;
	for (uint64_t at = 0; at < step; at += fill->pattern_size)
		memcpy(block + at, pattern, fill->pattern_size);
	for (uint64_t at = fill->begin; at < fill->end; at += step) {
		uint64_t size = fill->end - at < step ? fill->end - at : step;

		if (gp_vm_write(call->process, call->gpu, fill->to + at, block, size) < 0)
			return -EFAULT;
	}
	return 0;
}

static int body_hip_fill(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct body_hip_fill_args args;
	uint64_t to, size, begin, end;

	if (body_hip_fill_read(call, &args, &to, &size) < 0)
		return -EFAULT;
	begin = (uint64_t)first * call->workgroup_size[0];
	end = (uint64_t)last * call->workgroup_size[0];
	if (end > args.size)
		end = args.size;
	return body_pattern_write(call, &(struct body_pattern){ to, begin * size, end * size, args.pattern, size });
}

static uint64_t body_hip_fill_bytes(const struct gp_kernel_call *call)
{
	struct body_hip_fill_args args;
	uint64_t to, size;

	return body_hip_fill_read(call, &args, &to, &size) < 0 ? 0 : args.size * size;
}

/* HIP 6's blit kernels, by the arguments it gives them: a range that ends at an address, walked by all work items in
 * steps. Which work item moves which bytes is left open here: each workgroup takes its share of the whole. */

struct body_hip6_copy_args {
	uint64_t from, to, size;
	uint32_t remain, unit;
	uint64_t end;
};

static int body_hip6_copy_read(const struct gp_kernel_call *call, struct body_hip6_copy_args *ret_args)
{
	if (gp_vm_read(call->process, call->gpu, call->kernarg, ret_args, sizeof(*ret_args)) < 0)
		return -EFAULT;
	return ret_args->size <= BODY_SIZE_MAX ? 0 : -EFAULT;
}

static int body_hip6_copy(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct body_hip6_copy_args args;
	struct body_slice slice;

	if (body_hip6_copy_read(call, &args) < 0)
		return -EFAULT;
	slice = body_slice(call, args.size, first, last);
	return gp_vm_copy(call->process, call->gpu, args.to + slice.begin, args.from + slice.begin,
			  slice.end - slice.begin);
}

static uint64_t body_hip6_copy_bytes(const struct gp_kernel_call *call)
{
	struct body_hip6_copy_args args;

	return body_hip6_copy_read(call, &args) < 0 ? 0 : args.size * 2u;
}

struct body_hip6_fill_args {
	uint64_t to, pattern;
	uint32_t pattern_count, unit; /* the pattern is so many units of so many bytes */
	uint64_t end;
};

static int body_hip6_fill_read(const struct gp_kernel_call *call, struct body_hip6_fill_args *ret_args,
			       uint64_t *ret_pattern_size)
{
	if (gp_vm_read(call->process, call->gpu, call->kernarg, ret_args, sizeof(*ret_args)) < 0)
		return -EFAULT;
	*ret_pattern_size = (uint64_t)ret_args->pattern_count * ret_args->unit;
	return *ret_pattern_size && *ret_pattern_size <= BODY_PATTERN_MAX &&
			       ret_args->end - ret_args->to <= BODY_SIZE_MAX ?
		       0 :
		       -EFAULT;
}

static int body_hip6_fill(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	uint64_t groups = (uint64_t)call->workgroups[0] * call->workgroups[1] * call->workgroups[2];
	struct body_hip6_fill_args args;
	uint64_t size, total, share;
	struct body_slice slice;

	if (body_hip6_fill_read(call, &args, &size) < 0)
		return -EFAULT;
	total = args.end - args.to;
	share = ((total + size - 1u) / size + groups - 1u) / groups * size;
	slice = (struct body_slice){ share * first < total ? share * first : total,
				     share * last < total ? share * last : total };
	slice = body_piece(call, slice, size);
	return body_pattern_write(call, &(struct body_pattern){ args.to, slice.begin, slice.end, args.pattern, size });
}

static uint64_t body_hip6_fill_bytes(const struct gp_kernel_call *call)
{
	struct body_hip6_fill_args args;
	uint64_t size;

	return body_hip6_fill_read(call, &args, &size) < 0 ? 0 : args.end - args.to;
}

/* Kernels over one index: work item i of the grid's first dimension, i < n. */

static struct body_slice body_items(const struct gp_kernel_call *call, uint32_t count, uint32_t first, uint32_t last)
{
	uint64_t begin = (uint64_t)first * call->workgroup_size[0], end = (uint64_t)last * call->workgroup_size[0];

	if (end > call->grid_size[0])
		end = call->grid_size[0];
	if (end > count)
		end = count;
	return (struct body_slice){ begin < end ? begin : end, end };
}

static float *body_floats(const struct gp_kernel_call *call, uint64_t va, struct body_slice items)
{
	if (va % 4u)
		return NULL;
	return gp_vm_pointer(call->process, call->gpu, va + items.begin * 4u, (items.end - items.begin) * 4u);
}

/* c[i] = a[i] + b[i] (a, b, c, n) */
static int body_vector_add(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct {
		uint64_t a, b, c;
		uint32_t n;
	} args;
	struct body_slice items;
	float *a, *b, *c;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, 28) < 0)
		return -EFAULT;
	items = body_items(call, args.n, first, last);
	if (items.begin == items.end)
		return 0;
	a = body_floats(call, args.a, items);
	b = body_floats(call, args.b, items);
	c = body_floats(call, args.c, items);
	if (!a || !b || !c)
		return -EFAULT;
	for (uint64_t i = 0; i < items.end - items.begin; i++)
		c[i] = a[i] + b[i];
	return 0;
}

/* y[i] += a * x[i] (y, x, a, n) */
static int body_saxpy(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct {
		uint64_t y, x;
		float a;
		uint32_t n;
	} args;
	struct body_slice items;
	float *x, *y;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, 24) < 0)
		return -EFAULT;
	items = body_items(call, args.n, first, last);
	if (items.begin == items.end)
		return 0;
	y = body_floats(call, args.y, items);
	x = body_floats(call, args.x, items);
	if (!x || !y)
		return -EFAULT;
	for (uint64_t i = 0; i < items.end - items.begin; i++)
		y[i] += args.a * x[i];
	return 0;
}

/* sums[workgroup] = sum of its items of x (sums, x, n) */
static int body_reduce(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct {
		uint64_t sums, x;
		uint32_t n;
	} args;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, 20) < 0)
		return -EFAULT;
	for (uint32_t group = first; group < last; group++) {
		struct body_slice items = body_items(call, args.n, group, group + 1u);
		const float *x = items.begin < items.end ? body_floats(call, args.x, items) : NULL;
		float sum = 0;

		if (items.begin < items.end && !x)
			return -EFAULT;
		for (uint64_t i = 0; i < items.end - items.begin; i++)
			sum += x[i];
		if (gp_vm_write(call->process, call->gpu, args.sums + group * 4ull, &sum, sizeof(sum)) < 0)
			return -EFAULT;
	}
	return 0;
}

/* width elements of a row of a product: row of a, columns of b. */
struct body_matrix {
	const float *a, *b;
	float *c;
	uint64_t n, width;
};

/* Along the rows of b: down its columns each element would be a miss of the host's caches. */
static void body_matrix_row(const struct body_matrix *matrix)
{
	float sums[BODY_GROUP_MAX] = { 0 };

	for (uint64_t k = 0; k < matrix->n; k++)
		for (uint64_t i = 0; i < matrix->width; i++)
			sums[i] += matrix->a[k] * matrix->b[k * matrix->n + i];
	memcpy(matrix->c, sums, matrix->width * sizeof(sums[0]));
}

/* c = a x b, n by n, one work item per element, tiles of the workgroup's size (a, b, c, n) */
static int body_matrix_multiply(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct {
		uint64_t a, b, c;
		uint32_t n;
	} args;
	struct body_slice all;
	float *a, *b, *c;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, 28) < 0 || args.n > 32768u)
		return -EFAULT;
	all = (struct body_slice){ 0, (uint64_t)args.n * args.n };
	a = body_floats(call, args.a, all);
	b = body_floats(call, args.b, all);
	c = body_floats(call, args.c, all);
	if (args.n && (!a || !b || !c))
		return -EFAULT;
	for (uint32_t group = first; group < last; group++) {
		uint64_t x = (uint64_t)(group % call->workgroups[0]) * call->workgroup_size[0];
		uint64_t y = (uint64_t)(group / call->workgroups[0]) * call->workgroup_size[1];
		uint64_t width = x < args.n ? args.n - x : 0;

		if (width > call->workgroup_size[0])
			width = call->workgroup_size[0];
		for (uint64_t row = y; row < y + call->workgroup_size[1] && row < args.n; row++)
			body_matrix_row(
				&(struct body_matrix){ a + row * args.n, b + x, c + row * args.n + x, args.n, width });
	}
	return 0;
}

/* counts[workgroup] += 1 (counts, groups): what the tests use to see that each workgroup ran exactly once. */
static int body_count(const struct gp_kernel_call *call, uint32_t first, uint32_t last)
{
	struct {
		uint64_t counts;
		uint32_t groups;
	} args;

	if (gp_vm_read(call->process, call->gpu, call->kernarg, &args, 12) < 0)
		return -EFAULT;
	for (uint32_t group = first; group < last && group < args.groups; group++) {
		uint32_t value = 0;

		if (gp_vm_read(call->process, call->gpu, args.counts + group * 4ull, &value, sizeof(value)) < 0)
			return -EFAULT;
		value++;
		if (gp_vm_write(call->process, call->gpu, args.counts + group * 4ull, &value, sizeof(value)) < 0)
			return -EFAULT;
	}
	return 0;
}

static const struct gp_body body_table[] = {
	{ .name = "rocr_copy_aligned", .run = body_copy_aligned, .bytes = body_copy_aligned_bytes },
	{ .name = "rocr_copy_misaligned", .run = body_copy_misaligned, .bytes = body_copy_misaligned_bytes },
	{ .name = "rocr_fill", .run = body_fill, .bytes = body_fill_bytes },
	{ .name = "hip_copy", .run = body_hip_copy, .bytes = body_hip_copy_bytes },
	{ .name = "hip_fill", .run = body_hip_fill, .bytes = body_hip_fill_bytes },
	{ .name = "hip6_copy", .run = body_hip6_copy, .bytes = body_hip6_copy_bytes },
	{ .name = "hip6_fill", .run = body_hip6_fill, .bytes = body_hip6_fill_bytes },
	{ .name = "vector_add", .run = body_vector_add },
	{ .name = "saxpy", .run = body_saxpy },
	{ .name = "reduce", .run = body_reduce },
	{ .name = "matrix_multiply", .run = body_matrix_multiply, .is_heavy = true },
	{ .name = "count", .run = body_count },
};

const struct gp_body *gp_body_find(const char *name)
{
	for (size_t i = 0; i < sizeof(body_table) / sizeof(body_table[0]); i++)
		if (!strcmp(body_table[i].name, name))
			return &body_table[i];
	return NULL;
}

const char *gp_body_names(void)
{
	return "rocr_copy_aligned, rocr_copy_misaligned, rocr_fill, hip_copy, hip_fill, hip6_copy, hip6_fill, vector_add, saxpy, reduce, matrix_multiply, count";
}
