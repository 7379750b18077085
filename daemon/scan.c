/* SPDX-License-Identifier: MIT */
/*
 * Owns the thread that reads the drivers' lists of processes, and what it has read. The kernel writes these lists,
 * but a process may end while the thread reads about it. The result belongs to the thread while it reads, and to its
 * caller otherwise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "daemon/scan.h"
#include "lib/worker.h"

#define SCAN_KNOWN_MAX 8192u

struct gp_scan {
	struct gp_lane lane;
	struct gp_worker *worker;
	bool is_busy;                                     /* a scan is under way */
	const struct gp_backend_ops *ops[GP_BACKEND_MAX]; /* as the daemon's drivers */
	uint32_t op_count, known_count;
	pid_t pids[GP_SCAN_LIST_MAX];
	pid_t known[SCAN_KNOWN_MAX]; /* sorted */
	struct gp_scan_result result;
};

static int scan_compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void scan_queues(struct gp_scan_result *result, const struct gp_backend_ops *ops,
			struct gp_scan_process *process)
{
	uint32_t room = GP_SCAN_QUEUE_MAX - result->queue_count;
	int count = ops->process_queues(process->pid, &result->queues[result->queue_count],
					room < GP_SCAN_PROCESS_QUEUE_MAX ? room : GP_SCAN_PROCESS_QUEUE_MAX);

	process->queue_first = result->queue_count;
	process->queue_count = count > 0 ? (uint32_t)count : 0;
	result->queue_count += process->queue_count;
}

static void scan_name(struct gp_scan_process *process)
{
	struct gp_process_stat process_stat;
	char path[64];
	struct stat st;
	FILE *stream;

	if (!gp_process_stat(process->pid, &process_stat))
		process->start = process_stat.start;
	snprintf(path, sizeof(path), "/proc/%d", process->pid);
	if (!stat(path, &st))
		process->uid = st.st_uid;
	snprintf(path, sizeof(path), "/proc/%d/comm", process->pid);
	stream = fopen(path, "re");
	if (stream && fgets(process->name, sizeof(process->name), stream))
		process->name[strcspn(process->name, "\n")] = '\0';
	if (stream)
		fclose(stream);
}

/* Leaves out processes without a queue (the daemon itself, rocminfo). */
static void scan_backend(struct gp_scan *scan, uint32_t driver)
{
	struct gp_scan_result *result = &scan->result;
	int count = scan->ops[driver]->processes(scan->pids, GP_SCAN_LIST_MAX);

	result->is_complete &= count >= 0;
	for (int i = 0; i < count && result->process_count < GP_SCAN_PROCESS_MAX; i++) {
		struct gp_scan_process *process = &result->processes[result->process_count];

		if (bsearch(&scan->pids[i], scan->known, scan->known_count, sizeof(pid_t), scan_compare))
			continue;
		*process = (struct gp_scan_process){ .pid = scan->pids[i], .driver = driver };
		scan_queues(result, scan->ops[driver], process);
		if (!process->queue_count)
			continue;
		scan_name(process);
		result->process_count++;
	}
}

static void scan_read(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct gp_scan *scan = (struct gp_scan *)lane;
	struct gp_scan_result *result = &scan->result;
	uint64_t begin_ns = gp_now_ns();

	(void)context, (void)job;
	result->process_count = result->queue_count = 0;
	result->is_complete = true;
	for (uint32_t i = 0; i < scan->op_count; i++)
		if (scan->ops[i]->processes)
			scan_backend(scan, i);
	result->took_ns = gp_now_ns() - begin_ns;
}

static void scan_free(void *context, struct gp_lane *lane)
{
	(void)context;
	free(lane);
}

struct gp_scan *gp_scan_create(const struct gp_driver_entry *drivers, uint32_t driver_count, int notify_fd)
{
	struct gp_scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return NULL;
	for (uint32_t i = 0; i < driver_count; i++)
		scan->ops[scan->op_count++] = drivers[i].ops;
	scan->worker = gp_worker_create(&(struct gp_worker_config){ .thread_min = 1,
								    .thread_max = 1,
								    .collects = true,
								    .notify_fd = notify_fd,
								    .run = scan_read,
								    .idle = scan_free });
	if (scan->worker)
		return scan;
	free(scan);
	return NULL;
}

/* While a scan is under way its memory belongs to the thread, which frees it. So the daemon does not wait for a read
 * that does not come back. */
void gp_scan_destroy(struct gp_scan *scan)
{
	bool is_busy = scan && scan->is_busy;

	if (scan)
		gp_worker_stop(scan->worker, 0);
	if (!is_busy)
		free(scan);
}

bool gp_scan_begin(struct gp_scan *scan, const pid_t *pids, uint32_t pid_count)
{
	if (scan->is_busy)
		return false;
	scan->is_busy = true;
	scan->known_count = pid_count < SCAN_KNOWN_MAX ? pid_count : SCAN_KNOWN_MAX;
	memcpy(scan->known, pids, scan->known_count * sizeof(pid_t));
	qsort(scan->known, scan->known_count, sizeof(pid_t), scan_compare);
	gp_worker_give(scan->worker, &scan->lane, NULL);
	return true;
}

bool gp_scan_is_busy(const struct gp_scan *scan)
{
	return scan->is_busy;
}

const struct gp_scan_result *gp_scan_take(struct gp_scan *scan)
{
	if (!gp_worker_collect(scan->worker))
		return NULL;
	scan->is_busy = false;
	return &scan->result;
}
