/* SPDX-License-Identifier: MIT */
/* Owns who took part: threads, processes, queues and devices, found from the tracks of the trace. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "report/analysis.h"

#define WHO_CU_MAX 65536u /* compute units; no device has more, whatever a file says */

static int who_no_memory(struct gp_error *error)
{
	return gp_error_set(error, -ENOMEM, "not enough memory");
}

int gp_who_init(struct gp_analysis *analysis, struct gp_error *error)
{
	uint32_t count = analysis->store->track_count ? analysis->store->track_count : 1;

	analysis->track_thread = malloc(count * sizeof(uint32_t));
	analysis->track_queue = malloc(count * sizeof(uint32_t));
	analysis->track_stream = malloc(count * sizeof(uint32_t));
	analysis->track_passes = calloc(count, 1);
	analysis->name_flags = calloc(GP_NAMES_MAX, sizeof(*analysis->name_flags));
	analysis->name_evidence = calloc(GP_NAMES_MAX, 1);
	if (!analysis->track_thread || !analysis->track_queue || !analysis->track_stream || !analysis->track_passes ||
	    !analysis->name_flags || !analysis->name_evidence)
		return who_no_memory(error);
	memset(analysis->track_thread, 0xff, count * sizeof(uint32_t));
	memset(analysis->track_queue, 0xff, count * sizeof(uint32_t));
	memset(analysis->track_stream, 0xff, count * sizeof(uint32_t));
	return 0;
}

static void who_layers_fini(struct analysis_layers *layers)
{
	for (int i = 0; i < GP_REPORT_LAYER_COUNT; i++)
		gp_busy_fini(&layers->below[i]);
}

void gp_who_fini(struct gp_analysis *analysis)
{
	for (uint32_t i = 0; i < analysis->thread_count; i++)
		who_layers_fini(&analysis->threads[i].layers);
	for (uint32_t i = 0; i < analysis->process_count; i++)
		gp_busy_fini(&analysis->processes[i].gpu), gp_busy_fini(&analysis->processes[i].compute);
	for (uint32_t i = 0; i < analysis->queue_count; i++)
		gp_busy_fini(&analysis->queues[i].busy), free(analysis->queues[i].streams);
	for (uint32_t i = 0; i < analysis->device_count; i++) {
		struct analysis_device *device = &analysis->devices[i];

		gp_busy_fini(&device->compute);
		gp_busy_fini(&device->copy);
		gp_busy_fini(&device->all);
		gp_busy_fini(&device->collective);
		gp_busy_fini(&device->other);
		for (uint32_t j = 0; j < device->process_count; j++)
			gp_busy_fini(&device->processes[j].busy);
		for (uint32_t j = 0; j < device->priority_count; j++)
			gp_busy_fini(&device->priorities[j].busy);
	}
	who_layers_fini(&analysis->layers);
	free(analysis->threads);
	free(analysis->processes);
	free(analysis->queues);
	free(analysis->devices);
	free(analysis->track_thread);
	free(analysis->track_queue);
	free(analysis->track_stream);
	free(analysis->streams);
	free(analysis->track_passes);
	free(analysis->name_flags);
	free(analysis->name_evidence);
}

/* Room for one more at the end of an array that grows by doubling; NULL without memory. */
static void *who_grow(void **array, uint32_t count, size_t size)
{
	if (!(count & (count - 1))) {
		void *moved = realloc(*array, (count ? 2 * (size_t)count : 1) * size);

		if (!moved)
			return NULL;
		*array = moved;
	}
	memset((char *)*array + count * size, 0, size);
	return (char *)*array + count * size;
}

/* Ranks of a job do not share devices, and their numbers of devices and processes may be the same: each may have a
 * container, or a machine, of its own. */
static uint32_t who_rank(const struct gp_analysis *analysis, const struct gp_track *track)
{
	return analysis->store->has_ranks ? track->rank : 0;
}

bool gp_who_pid(const struct gp_analysis *analysis, uint32_t track_index, uint64_t *ret_pid)
{
	const struct gp_track *track = gp_store_track(analysis->store, track_index);
	bool has_one = false, is_one = true;
	uint64_t one = 0;

	if (track->known & GP_KNOWN_PID) {
		*ret_pid = track->pid;
		return true;
	}
	if (track->file && analysis->store->files[track->file - 1].has_pid &&
	    !analysis->store->files[track->file - 1].has_many_pids) {
		*ret_pid = analysis->store->files[track->file - 1].pid;
		return true;
	}
	for (uint32_t i = 0; i < analysis->store->track_count; i++) {
		const struct gp_track *other = gp_store_track(analysis->store, i);

		if (!(other->known & GP_KNOWN_PID) || who_rank(analysis, other) != who_rank(analysis, track))
			continue;
		if ((track->known & other->known & GP_KNOWN_TID) && track->tid == other->tid) {
			*ret_pid = other->pid;
			return true;
		}
		is_one &= !has_one || one == other->pid;
		has_one = true;
		one = other->pid;
	}
	if (has_one && is_one)
		*ret_pid = one;
	return has_one && is_one;
}

static uint32_t who_process(struct gp_analysis *analysis, uint32_t track)
{
	uint32_t rank = who_rank(analysis, gp_store_track(analysis->store, track));
	struct analysis_process *process;
	uint64_t pid = 0;
	bool has_pid = gp_who_pid(analysis, track, &pid);

	for (uint32_t i = 0; i < analysis->process_count; i++)
		if (analysis->processes[i].has_pid == has_pid && analysis->processes[i].pid == pid &&
		    analysis->processes[i].rank == rank)
			return i;
	/* Whoever comes beyond shares the last one: a report is for a person. */
	if (analysis->process_count == GP_ANALYSIS_WHO_MAX)
		return GP_ANALYSIS_WHO_MAX - 1;
	process = who_grow((void **)&analysis->processes, analysis->process_count, sizeof(*process));
	if (!process)
		return GP_ANALYSIS_NONE;
	process->has_pid = has_pid;
	process->pid = pid;
	process->rank = rank;
	process->waits = GP_ANALYSIS_NONE;
	return analysis->process_count++;
}

uint32_t gp_who_thread(struct gp_analysis *analysis, uint32_t track_index)
{
	const struct gp_track *track = gp_store_track(analysis->store, track_index);
	uint32_t process, found = analysis->track_thread[track_index];
	struct analysis_thread *thread;

	if (found != GP_ANALYSIS_NONE)
		return found;
	process = who_process(analysis, track_index);
	if (process == GP_ANALYSIS_NONE)
		return process;
	for (found = 0; found < analysis->thread_count; found++) {
		thread = &analysis->threads[found];
		if (thread->process == process && thread->has_tid == !!(track->known & GP_KNOWN_TID) &&
		    thread->tid == track->tid)
			break;
	}
	if (found == analysis->thread_count) {
		thread = who_grow((void **)&analysis->threads, analysis->thread_count, sizeof(*thread));
		if (!thread)
			return GP_ANALYSIS_NONE;
		thread->process = process;
		thread->has_tid = track->known & GP_KNOWN_TID;
		thread->tid = track->tid;
		thread->top = GP_ANALYSIS_NONE;
		thread->last_node = GP_ANALYSIS_NO_NODE;
		analysis->thread_count++;
	}
	analysis->track_thread[track_index] = found;
	return found;
}

uint32_t gp_who_find_thread(struct gp_analysis *analysis, uint32_t track_index)
{
	const struct gp_track *track = gp_store_track(analysis->store, track_index);
	uint64_t pid = 0;
	bool has_pid;

	if (analysis->track_thread[track_index] != GP_ANALYSIS_NONE)
		return analysis->track_thread[track_index];
	if (!(track->known & GP_KNOWN_TID))
		return GP_ANALYSIS_NONE;
	has_pid = gp_who_pid(analysis, track_index, &pid);
	for (uint32_t i = 0; i < analysis->thread_count; i++) {
		const struct analysis_thread *thread = &analysis->threads[i];
		const struct analysis_process *process = &analysis->processes[thread->process];

		if (thread->has_tid && thread->tid == track->tid && process->has_pid == has_pid &&
		    process->pid == pid && process->rank == who_rank(analysis, track)) {
			analysis->track_thread[track_index] = i;
			return i;
		}
	}
	return GP_ANALYSIS_NONE;
}

static void who_device_cus(const struct gp_analysis *analysis, struct analysis_device *device)
{
	for (uint32_t i = 0; i < analysis->facts->count; i++) {
		const struct gp_kept_fact *fact = &analysis->facts->facts[i];

		if (fact->kind == GP_FACT_CU_COUNT && device->has_device && fact->device == device->device &&
		    fact->value && fact->value <= WHO_CU_MAX) {
			device->has_cu_count = true;
			device->cu_count = fact->value;
		}
	}
}

static uint32_t who_device(struct gp_analysis *analysis, const struct gp_track *track)
{
	uint32_t rank = who_rank(analysis, track);
	bool has_device = track->known & GP_KNOWN_DEVICE;
	struct analysis_device *device;

	for (uint32_t i = 0; i < analysis->device_count; i++)
		if (analysis->devices[i].has_device == has_device && analysis->devices[i].device == track->device &&
		    analysis->devices[i].rank == rank)
			return i;
	if (analysis->device_count == GP_ANALYSIS_WHO_MAX)
		return GP_ANALYSIS_WHO_MAX - 1;
	device = who_grow((void **)&analysis->devices, analysis->device_count, sizeof(*device));
	if (!device)
		return GP_ANALYSIS_NONE;
	device->has_device = has_device;
	device->device = track->device;
	device->rank = rank;
	who_device_cus(analysis, device);
	return analysis->device_count++;
}

bool gp_who_place(struct gp_analysis *analysis, uint32_t track, uint32_t *ret_process, uint32_t *ret_device)
{
	*ret_process = who_process(analysis, track);
	*ret_device = who_device(analysis, gp_store_track(analysis->store, track));
	return *ret_process != GP_ANALYSIS_NONE && *ret_device != GP_ANALYSIS_NONE;
}

/* False without memory. */
static bool who_queue_stream(struct analysis_queue *queue, const struct gp_track *track)
{
	uint32_t i = 0;

	if (!(track->known & GP_KNOWN_STREAM))
		return true;
	while (i < queue->stream_count && queue->streams[i] != track->stream)
		i++;
	if (i < queue->stream_count)
		return true;
	if (queue->stream_count == queue->stream_room) {
		uint32_t larger = queue->stream_room ? 2 * queue->stream_room : 4;
		uint64_t *moved = realloc(queue->streams, larger * sizeof(*moved));

		if (!moved)
			return false;
		queue->streams = moved;
		queue->stream_room = larger;
	}
	queue->streams[queue->stream_count++] = track->stream;
	return true;
}

uint32_t gp_who_queue(struct gp_analysis *analysis, uint32_t track_index)
{
	const struct gp_track *track = gp_store_track(analysis->store, track_index);
	uint32_t process, device, found = analysis->track_queue[track_index];
	struct analysis_queue *queue;

	if (found != GP_ANALYSIS_NONE)
		return found;
	process = who_process(analysis, track_index);
	device = who_device(analysis, track);
	if (process == GP_ANALYSIS_NONE || device == GP_ANALYSIS_NONE)
		return GP_ANALYSIS_NONE;
	for (found = 0; found < analysis->queue_count; found++) {
		queue = &analysis->queues[found];
		if (queue->process == process && queue->device_index == device &&
		    queue->is_copy == (track->layer == GP_LAYER_COPY) &&
		    queue->has_queue == !!(track->known & GP_KNOWN_QUEUE) && queue->queue == track->queue)
			break;
	}
	if (found == analysis->queue_count) {
		queue = who_grow((void **)&analysis->queues, analysis->queue_count, sizeof(*queue));
		if (!queue)
			return GP_ANALYSIS_NONE;
		queue->process = process;
		queue->device_index = device;
		queue->is_copy = track->layer == GP_LAYER_COPY;
		queue->has_device = track->known & GP_KNOWN_DEVICE;
		queue->device = track->device;
		queue->has_queue = track->known & GP_KNOWN_QUEUE;
		queue->queue = track->queue;
		analysis->queue_count++;
		if (!queue->is_copy) {
			analysis->processes[process].queues++;
			analysis->devices[device].queues++;
		}
	}
	if (!who_queue_stream(&analysis->queues[found], track))
		return GP_ANALYSIS_NONE;
	analysis->track_queue[track_index] = found;
	return found;
}

static bool who_has_word(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strstr(name, *words))
			return true;
	return false;
}

uint16_t gp_analysis_name_flags(struct gp_analysis *analysis, uint32_t name_index)
{
	static const char *const launches[] = { "LaunchKernel",      "ModuleLaunch", "GraphLaunch",
						"LaunchCooperative", "ExtLaunch",    NULL };
	static const char *const syncs[] = { "Synchronize", "signal_wait", "hipFree", "cudaFree", "cuMemFree", NULL };
	static const char *const copies[] = { "Memcpy", "memcpy", "Memset", "memory_async_copy", "memory_copy", NULL };
	static const char *const submits[] = { "Launch", "Mem", "mem", "Graph", "EventRecord", NULL };
	static const char *const waits[] = { "Synchronize", "signal_wait", NULL };
	static const char *const allocs[] = { "Malloc",           "HostAlloc",   "hipFree",
					      "cudaFree",         "HostFree",    "cuMemFree",
					      "cuMemAlloc",       "FreeHost",    "HostRegister",
					      "HostUnregister",   "cuMemCreate", "cuMemRelease",
					      "cuMemMap",         "cuMemUnmap",  "memory_pool_allocate",
					      "memory_pool_free", NULL };
	static const char *const collectives[] = { "ncclKernel", "ncclDevKernel", "rcclKernel", "mscclKernel", NULL };
	static const char *const setups[] = { "hsa_queue_create", "hsa_amd_queue_create",
					      "hsa_init",         "code_object",
					      "hsa_executable",   "hipInit",
					      "hipGetDevice",     "hipSetDevice",
					      "hipDeviceGet",     "hipDeviceReset",
					      "hipStreamCreate",  "hipModuleLoad",
					      "hipRegister",      "hipDriverGet",
					      "hipCtxCreate",     "hipRuntimeGetVersion",
					      "hipEventCreate",   "hipDevicePrimary",
					      "ncclCommInit",     "ncclGetUniqueId",
					      "cudaGetDevice",    "cudaSetDevice",
					      "cudaDeviceGet",    "cudaDeviceReset",
					      "cudaStreamCreate", "cudaEventCreate",
					      "cuInit",           "cuModuleLoad",
					      "cuLibraryLoad",    "cuDevicePrimary",
					      "cuCtxCreate",      NULL };
	uint16_t flags = name_index < GP_NAMES_MAX ? analysis->name_flags[name_index] : NAME_KNOWN;
	const char *name;

	if (flags)
		return flags;
	name = gp_names_get(&analysis->store->names, name_index);
	flags = NAME_KNOWN;
	flags |= who_has_word(name, launches) ? NAME_LAUNCH : 0;
	flags |= who_has_word(name, copies) ? NAME_COPY : 0;
	flags |= who_has_word(name, setups) ? NAME_SETUP : 0;
	flags |= who_has_word(name, submits) ? NAME_SUBMIT : 0;
	flags |= who_has_word(name, waits) ? NAME_WAIT : 0;
	flags |= who_has_word(name, collectives) ? NAME_COLLECTIVE : 0;
	flags |= who_has_word(name, allocs) && !strstr(name, "Async") ? NAME_ALLOC : 0;
	flags |= !strncmp(name, "cuda", 4) || (!strncmp(name, "cu", 2) && name[2] >= 'A' && name[2] <= 'Z') ?
			 NAME_CUDA :
			 0;
	flags |= !strncmp(name, "hip", 3) || !strncmp(name, "__hip", 5) ? NAME_HIP : 0;
	/* A copy waits, and so does everything that is called a synchronisation, unless "Async" is in its name. A query
	 * does not: it answers at once. */
	if ((who_has_word(name, syncs) || (flags & NAME_COPY)) && !strstr(name, "Async") && !strstr(name, "async"))
		flags |= NAME_SYNC;
	analysis->name_flags[name_index] = flags;
	return flags;
}
