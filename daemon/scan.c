/* SPDX-License-Identifier: MIT */
/*
 * Owns the thread that reads the driver's list of processes, and what it read. What is read there is the kernel's, but
 * a process may end while it is being read. The result belongs to the thread while it reads, to its caller otherwise.
 */
#include <ctype.h>
#include <dirent.h>
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
#include "lib/kfd.h"

#define SCAN_PROCESS_QUEUE_MAX 1024u
#define SCAN_KNOWN_MAX         8192u

enum scan_state { SCAN_IDLE, SCAN_ASKED, SCAN_OVER, SCAN_STOPS };

struct gp_scan {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	enum scan_state state; /* lock */
	int fd;
	uint32_t known_count;
	pid_t known[SCAN_KNOWN_MAX]; /* in order */
	struct gp_scan_result result;
};

static bool scan_number(const char *text, uint32_t *ret_number)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || number > INT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static int scan_compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static bool scan_queue_file(pid_t pid, uint32_t id, const char *name, uint64_t *ret_value)
{
	char path[160];

	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues/%u/%s", pid, id, name);
	return !gp_kfd_read_number(path, ret_value);
}

static void scan_queues(struct gp_scan_result *result, struct gp_scan_process *process)
{
	char path[160];
	struct dirent *entry;
	uint64_t gpu_id, type;
	uint32_t id;
	DIR *folder;

	process->queue_first = result->queue_count;
	snprintf(path, sizeof(path), GP_KFD_SYSFS "/proc/%d/queues", process->pid);
	folder = opendir(path);
	while (folder && process->queue_count < SCAN_PROCESS_QUEUE_MAX && result->queue_count < GP_SCAN_QUEUE_MAX &&
	       (entry = readdir(folder))) {
		if (!scan_number(entry->d_name, &id) || !scan_queue_file(process->pid, id, "gpuid", &gpu_id) ||
		    !scan_queue_file(process->pid, id, "type", &type))
			continue;
		result->queues[result->queue_count++] =
			(struct gp_scan_queue){ id, (uint32_t)gpu_id, gp_kfd_is_compute((uint32_t)type) };
		process->queue_count++;
	}
	if (folder)
		closedir(folder);
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
static void scan_read(struct gp_scan *scan)
{
	struct gp_scan_result *result = &scan->result;
	uint64_t begin_ns = gp_now_ns();
	DIR *folder = opendir(GP_KFD_SYSFS "/proc");
	struct dirent *entry;
	uint32_t pid;

	result->process_count = result->queue_count = 0;
	result->is_complete = folder;
	while (folder && result->process_count < GP_SCAN_PROCESS_MAX && (entry = readdir(folder))) {
		struct gp_scan_process *process = &result->processes[result->process_count];

		if (!scan_number(entry->d_name, &pid) ||
		    bsearch(&(pid_t){ (pid_t)pid }, scan->known, scan->known_count, sizeof(pid_t), scan_compare))
			continue;
		*process = (struct gp_scan_process){ .pid = (pid_t)pid };
		scan_queues(result, process);
		if (!process->queue_count)
			continue;
		scan_name(process);
		result->process_count++;
	}
	if (folder)
		closedir(folder);
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

int gp_scan_create(struct gp_scan **ret_scan, int *ret_fd)
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
