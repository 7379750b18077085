/* SPDX-License-Identifier: MIT */
/* Owns which call submitted which work: calls are remembered by their correlation until their work starts. */
#include <errno.h>
#include <stdlib.h>
#include "report/analysis.h"

#define LAUNCHES_MAX   131072u /* remembered; the oldest makes room */
#define LAUNCHES_SLOTS 262144u

struct analysis_launches {
	uint64_t count;
	uint32_t slots[LAUNCHES_SLOTS]; /* number + 1 */
	struct gp_launch launches[LAUNCHES_MAX];
};

int gp_launches_init(struct gp_analysis *analysis, struct gp_error *error)
{
	analysis->launches = calloc(1, sizeof(*analysis->launches));
	return analysis->launches ? 0 : gp_error_set(error, -ENOMEM, "not enough memory");
}

void gp_launches_fini(struct gp_analysis *analysis)
{
	free(analysis->launches);
}

static uint32_t *launches_slot(struct analysis_launches *launches, uint32_t process, uint64_t correlation)
{
	/* Tools count correlations up: neighbours share a cache line, and only what lies above is spread. */
	uint64_t high = (correlation / LAUNCHES_SLOTS ^ (uint64_t)process << 48) * 0x9e3779b97f4a7c15ull;

	return &launches->slots[(correlation ^ high >> 32) % LAUNCHES_SLOTS];
}

/* What leads to the call of this process and correlation, or to none. */
static uint32_t *launches_link(struct analysis_launches *launches, uint32_t process, uint64_t correlation)
{
	uint32_t *link = launches_slot(launches, process, correlation);

	while (*link) {
		struct gp_launch *launch = &launches->launches[*link - 1];

		if (launch->process == process && launch->correlation == correlation)
			break;
		link = &launch->next;
	}
	return link;
}

/* Calls come in the order of time, so of several with one correlation the latest is the one to find. It replaces the
 * one before it: if a trace gives all its calls the same correlation, a list of them all would be long. */
void gp_launches_add(struct gp_analysis *analysis, const struct gp_launch *call)
{
	struct analysis_launches *launches = analysis->launches;
	uint32_t number = (uint32_t)(launches->count % LAUNCHES_MAX);
	struct gp_launch *launch = &launches->launches[number];
	uint32_t *slot;

	slot = launches_link(launches, launch->process, launch->correlation);
	if (*slot == number + 1)
		*slot = launch->next;
	slot = launches_link(launches, call->process, call->correlation);
	if (*slot)
		*slot = launches->launches[*slot - 1].next;
	launches->count++;
	*launch = *call;
	analysis->correlated_launch_count += launch->is_launch;
	slot = launches_slot(launches, launch->process, launch->correlation);
	launch->next = *slot;
	*slot = number + 1;
}

const struct gp_launch *gp_launches_find(const struct gp_analysis *analysis, uint32_t process, uint64_t correlation,
					 uint64_t before_ns)
{
	uint32_t number = *launches_link(analysis->launches, process, correlation);
	const struct gp_launch *launch = number ? &analysis->launches->launches[number - 1] : NULL;

	return launch && launch->start_ns <= before_ns ? launch : NULL;
}

/* Merged files have several processes, and work that names none: its correlation tells, if only one process has it. */
static const struct gp_launch *launches_find_any(const struct gp_analysis *analysis, uint32_t process,
						 const struct gp_trace_record *record)
{
	const struct gp_launch *found = NULL;

	for (uint32_t i = 0; i < analysis->process_count; i++) {
		const struct gp_launch *launch;

		if (analysis->processes[i].rank != analysis->processes[process].rank)
			continue;
		launch = gp_launches_find(analysis, i, record->correlation, record->start_ns);
		if (launch && found)
			return NULL;
		found = launch ? launch : found;
	}
	return found;
}

const struct gp_launch *gp_launches_join(struct gp_analysis *analysis, uint32_t process,
					 const struct gp_trace_record *record)
{
	const struct gp_launch *launch;

	if (!(record->known & GP_KNOWN_CORRELATION))
		return NULL;
	launch = analysis->processes[process].has_pid ?
			 gp_launches_find(analysis, process, record->correlation, record->start_ns) :
			 launches_find_any(analysis, process, record);
	if (!launch)
		return NULL;
	analysis->joined_kernel_count += record->layer == GP_LAYER_KERNEL;
	analysis->joined_copy_count += record->layer == GP_LAYER_COPY;
	if (!launch->is_joined) {
		analysis->launches->launches[launch - analysis->launches->launches].is_joined = true;
		analysis->joined_launch_count += launch->is_launch;
	}
	return launch;
}
