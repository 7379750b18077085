/* SPDX-License-Identifier: MIT */
/* Owns the GPU's side: kernels and copies by queue and device, how long they waited and for whom, and which call
 * launched them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define ENGINES_WAVES_MAX 8u     /* beyond, a partial last wave is small change */
#define ENGINES_INVERSION 1000u  /* ns: less is not worth a word */
#define ENGINES_COPY_CALL 20000u /* ns: a call around a small copy that takes longer waits for something */

/* Work of one process or priority on a device; NULL if there are too many to tell apart, or no memory. */
static struct gp_busy *engines_share(struct analysis_share *shares, uint32_t *count, int64_t key)
{
	for (uint32_t i = 0; i < *count; i++)
		if (shares[i].key == key)
			return &shares[i].busy;
	if (*count == GP_ANALYSIS_SHARED || gp_busy_init_history(&shares[*count].busy))
		return NULL;
	shares[*count].key = key;
	return &shares[(*count)++].busy;
}

/* What a small copy costs: its time on the engine and its call, of which more than a little is waiting for others. */
static void engines_small_copy(struct gp_analysis *analysis, const struct gp_trace_record *record,
			       const struct gp_launch *launch)
{
	uint64_t duration = record->end_ns - record->start_ns, call = launch ? launch->end_ns - launch->start_ns : 0;
	bool is_small = record->known & GP_KNOWN_SIZE ? record->dispatch_or_size < GP_ANALYSIS_SMALL :
							duration < GP_ANALYSIS_SMALL_NS;

	if (is_small)
		analysis->small_copy_ns += duration + (call < ENGINES_COPY_CALL ? call : ENGINES_COPY_CALL);
}

/* While this waited: how long others had the device, and how long someone less urgent had. As long as the work in front
 * of it in its queue ran, it waited for that. */
static void engines_wait(struct gp_analysis *analysis, const struct gp_trace_record *record,
			 const struct analysis_queue *queue, uint64_t from_ns)
{
	struct analysis_device *device = &analysis->devices[queue->device_index];
	const struct gp_track *track = gp_store_track(analysis->store, record->track);
	uint64_t wait, others = 0, lower = 0;
	bool has_others = false;

	from_ns = queue->count && queue->last_end_ns > from_ns ? queue->last_end_ns : from_ns;
	from_ns = from_ns < record->start_ns ? from_ns : record->start_ns;
	wait = record->start_ns - from_ns;
	for (uint32_t i = 0; i < device->process_count; i++) {
		if (device->processes[i].key == (int64_t)queue->process)
			continue;
		has_others = true;
		others += gp_busy_between(&device->processes[i].busy, from_ns, record->start_ns);
	}
	if (has_others) {
		analysis->processes[queue->process].behind_ns += others < wait ? others : wait;
		analysis->processes[queue->process].behind_count++;
	}
	if (!(track->known & GP_KNOWN_PRIORITY))
		return;
	for (uint32_t i = 0; i < device->priority_count; i++)
		if (device->priorities[i].key < track->priority)
			lower += gp_busy_between(&device->priorities[i].busy, from_ns, record->start_ns);
	lower = lower < wait ? lower : wait;
	if (lower < ENGINES_INVERSION)
		return;
	analysis->inversion_count++;
	analysis->inversion_ns += lower;
	analysis->inversion_ns_max = lower > analysis->inversion_ns_max ? lower : analysis->inversion_ns_max;
}

/* At one workgroup per compute unit the last wave of a kernel leaves units idle. */
static void engines_tail(struct gp_analysis *analysis, const struct gp_trace_record *record,
			 const struct analysis_device *device)
{
	uint64_t duration = record->end_ns - record->start_ns, waves, places;

	/* Collectives take few units by intent: the others are for the work beside them. */
	if (!device->has_cu_count || !(record->known & GP_KNOWN_WORKGROUPS) || !record->workgroups ||
	    (gp_analysis_name_flags(analysis, record->name) & NAME_COLLECTIVE))
		return;
	analysis->has_tail = true;
	analysis->tail_kernel_ns += duration;
	waves = (record->workgroups + device->cu_count - 1) / device->cu_count;
	places = waves * device->cu_count;
	if (waves <= ENGINES_WAVES_MAX)
		analysis->tail_ns +=
			(uint64_t)((double)duration * (double)(places - record->workgroups) / (double)places);
}

/* What large copies show of the link between host and device. */
static void engines_link(struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	static const char *const to[] = { "HtoD", "HOST_TO_DEVICE", "HostToDevice", "Host -> Device", "H2D", NULL };
	static const char *const from[] = { "DtoH", "DEVICE_TO_HOST", "DeviceToHost", "Device -> Host", "D2H", NULL };
	const char *name = gp_names_get(&analysis->store->names, record->name);
	uint64_t ns = record->end_ns - record->start_ns, size = record->dispatch_or_size;
	struct analysis_link *link = NULL;

	if (!(record->known & GP_KNOWN_SIZE) || size < GP_ANALYSIS_LARGE || !ns)
		return;
	for (size_t i = 0; to[i] && !link; i++)
		link = strstr(name, to[i]) ? &analysis->links[0] : strstr(name, from[i]) ? &analysis->links[1] : NULL;
	if (!link)
		return;
	link->count++;
	link->size += size;
	link->ns += ns;
	if (!link->best_ns || (double)size / (double)ns > (double)link->best_size / (double)link->best_ns) {
		link->best_size = size;
		link->best_ns = ns;
	}
}

static int engines_stat(struct gp_analysis *analysis, const struct gp_trace_record *record,
			const struct analysis_queue *queue, bool has_wait, uint64_t wait_ns)
{
	struct gp_stat *stat = gp_stats_get(&analysis->stats, record->name, record->layer, queue->process);

	if (!stat)
		return -ENOMEM;
	gp_spread_add(&stat->spread, record->end_ns - record->start_ns);
	stat->self_ns += record->end_ns - record->start_ns;
	if (has_wait) {
		stat->wait_count++;
		stat->wait_ns += wait_ns;
	}
	if (record->layer == GP_LAYER_COPY && (record->known & GP_KNOWN_SIZE)) {
		stat->sized_count++;
		stat->size += record->dispatch_or_size;
		analysis->sized_copy_count++;
		analysis->small_copy_count += record->dispatch_or_size < GP_ANALYSIS_SMALL;
	}
	return 0;
}

static void engines_queue(struct analysis_queue *queue, const struct gp_trace_record *record)
{
	if (queue->count && record->start_ns > queue->last_end_ns) {
		uint64_t gap = record->start_ns - queue->last_end_ns;

		queue->gap_count++;
		queue->gap_ns += gap;
		queue->gap_ns_max = gap > queue->gap_ns_max ? gap : queue->gap_ns_max;
	}
	queue->first_ns = queue->count++ ? queue->first_ns : record->start_ns;
	queue->sum_ns += record->end_ns - record->start_ns;
	gp_busy_add(&queue->busy, record->start_ns, record->end_ns);
	queue->last_end_ns = record->end_ns > queue->last_end_ns ? record->end_ns : queue->last_end_ns;
}

static void engines_device(struct gp_analysis *analysis, const struct gp_trace_record *record,
			   const struct analysis_queue *queue, const struct gp_launch *launch)
{
	struct analysis_device *device = &analysis->devices[queue->device_index];
	const struct gp_track *track = gp_store_track(analysis->store, record->track);
	bool is_kernel = record->layer == GP_LAYER_KERNEL;
	struct gp_busy *share;

	if (!device->all.is_used)
		device->first_ns = record->start_ns;
	device->last_ns = record->end_ns > device->last_ns ? record->end_ns : device->last_ns;
	if (is_kernel) {
		bool is_collective = gp_analysis_name_flags(analysis, record->name) & NAME_COLLECTIVE;

		analysis->collective_count += is_collective;
		device->collective_count += is_collective;
		gp_busy_add(is_collective ? &device->collective : &device->other, record->start_ns, record->end_ns);
		if (device->last_kernel_end_ns && record->start_ns > device->last_kernel_end_ns)
			gp_spread_add(&analysis->kernel_gap, record->start_ns - device->last_kernel_end_ns);
		if (record->end_ns > device->last_kernel_end_ns)
			device->last_kernel_end_ns = record->end_ns;
		device->kernel_sum_ns += record->end_ns - record->start_ns;
		engines_tail(analysis, record, device);
	}
	gp_busy_add(is_kernel ? &device->compute : &device->copy, record->start_ns, record->end_ns);
	gp_busy_add(&device->all, record->start_ns, record->end_ns);
	gp_busy_add(is_kernel ? &analysis->compute : &analysis->copy, record->start_ns, record->end_ns);
	if (analysis->gpu.is_used && record->start_ns > analysis->gpu.end_ns)
		gp_rhythm_idle(analysis, analysis->gpu.end_ns, record->start_ns);
	gp_busy_add(&analysis->gpu, record->start_ns, record->end_ns);
	gp_busy_add(&analysis->processes[queue->process].gpu, record->start_ns, record->end_ns);
	/* A kernel that names no process is that of its launch. */
	if (is_kernel)
		gp_busy_add(&analysis->processes[launch ? launch->process : queue->process].compute, record->start_ns,
			    record->end_ns);
	share = engines_share(device->processes, &device->process_count, queue->process);
	if (share)
		gp_busy_add(share, record->start_ns, record->end_ns);
	if (track->known & GP_KNOWN_PRIORITY) {
		analysis->has_priorities = true;
		share = engines_share(device->priorities, &device->priority_count, track->priority);
		if (share)
			gp_busy_add(share, record->start_ns, record->end_ns);
	}
}

static void engines_evidence(struct gp_analysis *analysis, const struct gp_trace_record *record)
{
	struct analysis_evidence *evidence =
		&analysis->evidence[record->layer == GP_LAYER_COPY ? EVIDENCE_COPY : EVIDENCE_KERNEL];
	struct analysis_evidence seen = { .is_seen = true,
					  .name = record->name,
					  .row = record->row,
					  .file = record->file,
					  .start_ns = record->start_ns,
					  .end_ns = record->end_ns,
					  .extra_ns = record->complete_ns };

	if (!evidence->is_seen)
		*evidence = seen;
	if ((record->known & GP_KNOWN_COMPLETE) && !analysis->evidence[EVIDENCE_COMPLETE].is_seen)
		analysis->evidence[EVIDENCE_COMPLETE] = seen;
}

/* A copy that does not say its bytes may have a call that does. */
static void engines_size(struct gp_trace_record *record, const struct gp_launch *launch)
{
	if (record->layer != GP_LAYER_COPY || (record->known & GP_KNOWN_SIZE) || !launch || !launch->has_size)
		return;
	record->dispatch_or_size = launch->size;
	record->known |= GP_KNOWN_SIZE;
}

int gp_engines_add(struct gp_analysis *analysis, const struct gp_trace_record *given, struct gp_error *error)
{
	struct gp_trace_record whole = *given, *record = &whole;
	uint32_t index = gp_who_queue(analysis, record->track), stream;
	bool is_kernel = record->layer == GP_LAYER_KERNEL, has_wait = false;
	const struct gp_launch *launch;
	struct analysis_queue *queue;
	uint64_t from_ns = 0;
	int r;

	if (index == GP_ANALYSIS_NONE)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	queue = &analysis->queues[index];
	stream = gp_streams_of(analysis, record->track, queue);
	if (stream == GP_ANALYSIS_NONE)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	launch = gp_launches_join(analysis, queue->process, record);
	engines_size(record, launch);
	if (launch)
		gp_calls_behind(analysis, record, launch);
	if (is_kernel) {
		analysis->processes[queue->process].kernels++;
		gp_spread_add(&analysis->run, record->end_ns - record->start_ns);
	} else {
		analysis->processes[queue->process].copies++;
		gp_spread_add(&analysis->copy_time, record->end_ns - record->start_ns);
		engines_small_copy(analysis, record, launch);
		engines_link(analysis, record);
	}
	if (is_kernel && (record->known & GP_KNOWN_DISPATCH) && record->dispatch_or_size &&
	    record->dispatch_or_size <= record->start_ns) {
		has_wait = true;
		from_ns = record->dispatch_or_size;
		gp_spread_add(&analysis->wait_dispatch, record->start_ns - from_ns);
	} else if (is_kernel && launch) {
		has_wait = true;
		from_ns = launch->start_ns;
		gp_spread_add(&analysis->wait_launch, record->start_ns - from_ns);
	}
	if (is_kernel && (record->known & GP_KNOWN_COMPLETE) && record->complete_ns >= record->end_ns)
		gp_spread_add(&analysis->completion, record->complete_ns - record->end_ns);
	if (has_wait)
		engines_wait(analysis, record, queue, from_ns);
	r = engines_stat(analysis, record, queue, has_wait, has_wait ? record->start_ns - from_ns : 0);
	if (r)
		return gp_error_set(error, r, "not enough memory");
	engines_evidence(analysis, record);
	engines_queue(queue, record);
	gp_alone_work(analysis, record, launch);
	engines_device(analysis, record, queue, launch);
	return gp_streams_add(analysis, record, stream, launch, error);
}
