/* SPDX-License-Identifier: MIT */
/*
 * Owns the thread that reads the drivers' lists of processes, and what it has read. The kernel writes these lists,
 * but a process may end while the thread reads about it, and any user can hold up whoever opens files in such a folder:
 * helpers do that. The result belongs to the thread while it reads, and to its caller otherwise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/daemon.h"
#include "daemon/process.h"
#include "daemon/scan.h"
#include "lib/aside.h"
#include "lib/worker.h"

#define SCAN_KNOWN_MAX 8192u

/* What a helper is told and says. A backend's state of later than gp_aside_start() is not there. */
struct scan_list {
	const struct gp_backend_ops *ops;
	int count;
	pid_t pids[GP_SCAN_LIST_MAX];
};
struct scan_look {
	const struct gp_backend_ops *ops;
	uint32_t room;
	struct gp_scan_process process; /* with queue_count */
	struct gp_device_queue queues[GP_SCAN_PROCESS_QUEUE_MAX];
};
_Static_assert(sizeof(struct scan_list) <= GP_ASIDE_SIZE_MAX, "a helper takes it");
_Static_assert(sizeof(struct scan_look) <= GP_ASIDE_SIZE_MAX, "a helper takes it");

struct gp_scan {
	struct gp_lane lane;
	struct gp_worker *worker;
	bool is_busy;                                     /* a scan is under way */
	const struct gp_backend_ops *ops[GP_BACKEND_MAX]; /* as the daemon's drivers */
	uint32_t op_count, known_count;
	struct scan_list list;
	struct scan_look look;
	pid_t known[SCAN_KNOWN_MAX]; /* sorted */
	uint32_t before_count;
	struct gp_scan_process before[GP_SCAN_PROCESS_MAX]; /* of the scan before */
	struct gp_scan_result result;
};

static int scan_compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void scan_list_aside(void *data)
{
	struct scan_list *list = data;

	list->count = list->ops->processes(list->pids, GP_SCAN_LIST_MAX);
}

/* The files of the driver, which are root's, and who the process belongs to. */
static void scan_queues_aside(void *data)
{
	struct scan_look *look = data;
	int count = look->ops->process_queues(look->process.pid, look->queues, look->room);
	char path[64];
	struct stat st;

	look->process.queue_count = count > 0 ? (uint32_t)count : 0;
	snprintf(path, sizeof(path), "/proc/%d", look->process.pid);
	if (count > 0 && !stat(path, &st))
		look->process.uid = st.st_uid;
}

/* The files of the process. */
static void scan_name_aside(void *data)
{
	struct gp_scan_process *process = data;
	struct gp_process_stat process_stat;
	char path[64];
	FILE *stream;

	if (!gp_process_stat(process->pid, &process_stat))
		process->start = process_stat.start;
	snprintf(path, sizeof(path), "/proc/%d/comm", process->pid);
	stream = fopen(path, "re");
	if (stream && fgets(process->name, sizeof(process->name), stream))
		process->name[strcspn(process->name, "\n")] = '\0';
	if (stream)
		fclose(stream);
}

/* While a process holds those up who look at it, it counts as the one that had its pid in the scan before: hiding would
 * open its gates. */
static void scan_name(const struct gp_scan *scan, struct gp_scan_process *process)
{
	if (!gp_aside_call(GP_ASIDE_SCAN(process->uid), scan_name_aside, process, sizeof(*process)))
		return;
	for (uint32_t i = 0; i < scan->before_count; i++)
		if (scan->before[i].pid == process->pid && scan->before[i].uid == process->uid) {
			process->start = scan->before[i].start;
			memcpy(process->name, scan->before[i].name, sizeof(process->name));
		}
}

static void scan_process(struct gp_scan *scan, uint32_t driver, pid_t pid)
{
	struct gp_scan_result *result = &scan->result;
	struct scan_look *look = &scan->look;
	uint32_t room = GP_SCAN_QUEUE_MAX - result->queue_count;

	look->ops = scan->ops[driver];
	look->room = room < GP_SCAN_PROCESS_QUEUE_MAX ? room : GP_SCAN_PROCESS_QUEUE_MAX;
	look->process = (struct gp_scan_process){ .pid = pid, .driver = driver, .queue_first = result->queue_count };
	if (gp_aside_call(GP_ASIDE_DRIVER(driver), scan_queues_aside, look, sizeof(*look))) {
		result->is_complete = false;
		return;
	}
	if (!look->process.queue_count)
		return;
	memcpy(&result->queues[result->queue_count], look->queues, look->process.queue_count * sizeof(look->queues[0]));
	result->queue_count += look->process.queue_count;
	scan_name(scan, &look->process);
	result->processes[result->process_count++] = look->process;
}

/* Leaves out processes without a queue (the daemon itself, rocminfo). */
static void scan_backend(struct gp_scan *scan, uint32_t driver)
{
	struct gp_scan_result *result = &scan->result;
	struct scan_list *list = &scan->list;

	list->ops = scan->ops[driver];
	if (gp_aside_call(GP_ASIDE_DRIVER(driver), scan_list_aside, list, sizeof(*list)))
		list->count = -1;
	result->is_complete &= list->count >= 0;
	for (int i = 0; i < list->count && result->process_count < GP_SCAN_PROCESS_MAX; i++)
		if (!bsearch(&list->pids[i], scan->known, scan->known_count, sizeof(pid_t), scan_compare))
			scan_process(scan, driver, list->pids[i]);
}

static void scan_read(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct gp_scan *scan = (struct gp_scan *)lane;
	struct gp_scan_result *result = &scan->result;
	uint64_t begin_ns = gp_now_ns();

	(void)context, (void)job;
	scan->before_count = result->process_count;
	memcpy(scan->before, result->processes, result->process_count * sizeof(scan->before[0]));
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
