/* SPDX-License-Identifier: MIT */
/* Owns which layer a call belongs to. */
#include <string.h>
#include "report/trace/readers.h"

struct layer_prefix {
	const char *prefix;
	enum gp_layer layer;
};

static const struct layer_prefix layer_domains[] = {
	{ "HIP_OPS", GP_LAYER_KERNEL },  { "HSA_OPS", GP_LAYER_COPY },     { "HCC_OPS", GP_LAYER_KERNEL },
	{ "HIP", GP_LAYER_HIP },         { "HSA", GP_LAYER_HSA },          { "MARKER", GP_LAYER_MARKER },
	{ "ROCTX", GP_LAYER_MARKER },    { "RCCL", GP_LAYER_LIBRARY },     { "ROCDECODE", GP_LAYER_LIBRARY },
	{ "ROCJPEG", GP_LAYER_LIBRARY }, { "OMPT", GP_LAYER_LIBRARY },     { "MPI", GP_LAYER_LIBRARY },
	{ "KFD", GP_LAYER_DRIVER },      { "MEMORY_COPY", GP_LAYER_COPY }, { "MEMORY_ALLOC", GP_LAYER_MEMORY },
	{ "SCRATCH", GP_LAYER_MEMORY },  { "KERNEL", GP_LAYER_KERNEL },
};

static const struct layer_prefix layer_names[] = {
	{ "hip", GP_LAYER_HIP },       { "__hip", GP_LAYER_HIP },    { "hsa_", GP_LAYER_HSA },
	{ "hsaKmt", GP_LAYER_DRIVER }, { "ioctl", GP_LAYER_DRIVER }, { "AMDKFD", GP_LAYER_DRIVER },
	{ "nccl", GP_LAYER_LIBRARY },  { "rccl", GP_LAYER_LIBRARY }, { "roctx", GP_LAYER_MARKER },
};

static bool layer_find(const struct layer_prefix *table, size_t count, const char *text, enum gp_layer *ret_layer)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(text, table[i].prefix, strlen(table[i].prefix))) {
			*ret_layer = table[i].layer;
			return true;
		}
	return false;
}

enum gp_layer gp_layer_of(const char *domain, const char *name)
{
	enum gp_layer layer = GP_LAYER_LIBRARY;

	if (!strncmp(domain, "rocm_", 5))
		domain += 5;
	if (!layer_find(layer_domains, sizeof(layer_domains) / sizeof(layer_domains[0]), domain, &layer))
		(void)layer_find(layer_names, sizeof(layer_names) / sizeof(layer_names[0]), name, &layer);
	return layer;
}

void gp_trace_event_init(struct gp_profile_event *event, enum gp_layer layer, const char *name, size_t name_size)
{
	memset(event, 0, sizeof(*event));
	event->layer = layer;
	event->name = name;
	event->name_size = name_size;
}
