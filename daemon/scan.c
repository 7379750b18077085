/* SPDX-License-Identifier: MIT */
/*
 * Owns the thread that reads the drivers' lists of processes, and what it read. What is read there is the kernel's, but
 * a process may end while it is being read. The result belongs to the thread while it reads, to its caller otherwise.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/scan.h"

#define SCAN_PROCESS_QUEUE_MAX 1024u
#define SCAN_KNOWN_MAX         8192u
#define SCAN_LIST_MAX          16384u /* processes of one list that are looked at */

enum scan_state { SCAN_IDLE, SCAN_ASKED, SCAN_OVER, SCAN_STOPS };

struct gp_scan {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum scan_state state; /* lock */
	int fd;
	const struct gp_backend_ops *ops[GP_BACKEND_MAX]; /* as the daemon's drivers */
	uint32_t op_count, known_count;
	pid_t pids[SCAN_LIST_MAX];
	pid_t known[SCAN_KNOWN_MAX]; /* in order */
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
					room < SCAN_PROCESS_QUEUE_MAX ? room : SCAN_PROCESS_QUEUE_MAX);

	process->queue_first = result->queue_count;
	process->queue_count = count > 0 ? (uint32_t)count : 0;
	result->queue_count += process->queue_count;
}

static void scan_name(struct gp_scan_process *process)
{
	char path[64];
	struct stat st;
	FILE *stream;

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

/* Those that hold no queue (the daemon itself, rocminfo) are left out. */
static void scan_backend(struct gp_scan *scan, uint32_t driver)
{
	struct gp_scan_result *result = &scan->result;
	int count = scan->ops[driver]->processes(scan->pids, SCAN_LIST_MAX);

	result->is_complete |= count >= 0;
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

static void scan_read(struct gp_scan *scan)
{
	struct gp_scan_result *result = &scan->result;
	uint64_t begin_ns = gp_now_ns();

	result->process_count = result->queue_count = 0;
	result->is_complete = false;
	for (uint32_t i = 0; i < scan->op_count; i++)
		if (scan->ops[i]->processes)
			scan_backend(scan, i);
	result->took_ns = gp_now_ns() - begin_ns;
}

static void scan_free(struct gp_scan *scan)
{
	pthread_cond_destroy(&scan->wake);
	pthread_mutex_destroy(&scan->lock);
	close(scan->fd);
	free(scan);
}

/* It frees itself: nobody waits for a read that does not come back. */
static void *scan_thread(void *context)
{
	struct gp_scan *scan = context;

	pthread_mutex_lock(&scan->lock);
	while (scan->state != SCAN_STOPS) {
		if (scan->state != SCAN_ASKED) {
			pthread_cond_wait(&scan->wake, &scan->lock);
			continue;
		}
		pthread_mutex_unlock(&scan->lock);
		scan_read(scan);
		pthread_mutex_lock(&scan->lock);
		if (scan->state != SCAN_ASKED)
			continue;
		scan->state = SCAN_OVER;
		while (write(scan->fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0 && errno == EINTR) {}
	}
	pthread_mutex_unlock(&scan->lock);
	scan_free(scan);
	return NULL;
}

int gp_scan_create(const struct gp_driver_entry *drivers, uint32_t driver_count, struct gp_scan **ret_scan, int *ret_fd)
{
	struct gp_scan *scan = calloc(1, sizeof(*scan));
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!scan)
		return -ENOMEM;
	scan->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (scan->fd < 0) {
		r = -errno;
		free(scan);
		return r;
	}
	for (uint32_t i = 0; i < driver_count; i++)
		scan->ops[scan->op_count++] = drivers[i].ops;
	pthread_mutex_init(&scan->lock, NULL);
	pthread_cond_init(&scan->wake, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = -pthread_create(&thread, &attr, scan_thread, scan);
	pthread_attr_destroy(&attr);
	if (r) {
		scan_free(scan);
		return r;
	}
	*ret_scan = scan;
	*ret_fd = scan->fd;
	return 0;
}

void gp_scan_destroy(struct gp_scan *scan)
{
	if (!scan)
		return;
	pthread_mutex_lock(&scan->lock);
	scan->state = SCAN_STOPS;
	pthread_cond_signal(&scan->wake);
	pthread_mutex_unlock(&scan->lock);
}

bool gp_scan_begin(struct gp_scan *scan, const pid_t *pids, uint32_t pid_count)
{
	bool is_free;

	pthread_mutex_lock(&scan->lock);
	is_free = scan->state == SCAN_IDLE;
	if (is_free) {
		scan->known_count = pid_count < SCAN_KNOWN_MAX ? pid_count : SCAN_KNOWN_MAX;
		memcpy(scan->known, pids, scan->known_count * sizeof(pid_t));
		qsort(scan->known, scan->known_count, sizeof(pid_t), scan_compare);
		scan->state = SCAN_ASKED;
		pthread_cond_signal(&scan->wake);
	}
	pthread_mutex_unlock(&scan->lock);
	return is_free;
}

bool gp_scan_is_busy(struct gp_scan *scan)
{
	bool is_busy;

	pthread_mutex_lock(&scan->lock);
	is_busy = scan->state != SCAN_IDLE;
	pthread_mutex_unlock(&scan->lock);
	return is_busy;
}

const struct gp_scan_result *gp_scan_take(struct gp_scan *scan)
{
	uint64_t count;
	bool is_over;

	pthread_mutex_lock(&scan->lock);
	is_over = scan->state == SCAN_OVER;
	if (is_over && read(scan->fd, &count, sizeof(count)) == sizeof(count))
		scan->state = SCAN_IDLE;
	pthread_mutex_unlock(&scan->lock);
	return is_over ? &scan->result : NULL;
}
