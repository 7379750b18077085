/* SPDX-License-Identifier: MIT */
/* Reads the drivers' lists of processes, where they have one, in a thread of its own: the lists are as long as users
 * make them, and decisions do not wait for it. */
#ifndef GP_DAEMON_SCAN_H
#define GP_DAEMON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <gpreempt/wire.h>
#include "daemon/device.h"

#define GP_SCAN_PROCESS_MAX 1024u
#define GP_SCAN_QUEUE_MAX   16384u /* of all processes together; what is beyond is not counted */
#define GP_SCAN_LIST_MAX    16000u /* processes of one driver's list that are looked at */

#define GP_SCAN_PROCESS_QUEUE_MAX 1024u /* of one process */

struct gp_scan_process {
	pid_t pid;
	uid_t uid;
	uint64_t start;  /* gp_process_stat(): another process may get its pid; 0: it has ended */
	uint32_t driver; /* index in daemon->drivers of the one that lists it */
	char name[GP_WIRE_NAME_SIZE];
	uint32_t queue_first, queue_count; /* in the result's */
};

struct gp_scan_result {
	uint32_t process_count, queue_count;
	uint64_t took_ns;
	bool is_complete; /* false: a list could not be read; processes may be missing */
	struct gp_scan_process processes[GP_SCAN_PROCESS_MAX];
	struct gp_device_queue queues[GP_SCAN_QUEUE_MAX];
};

struct gp_scan;

/* notify_fd: an eventfd that becomes readable when a scan is over. NULL: no memory, or no thread. */
struct gp_scan *gp_scan_create(const struct gp_driver_entry *drivers, uint32_t driver_count, int notify_fd);
void gp_scan_destroy(struct gp_scan *scan); /* waits for nothing; NULL: does nothing */
/* Begins a scan, which leaves out the processes in pids: they are known already. False: a scan is under way. */
bool gp_scan_begin(struct gp_scan *scan, const pid_t *pids, uint32_t pid_count);
bool gp_scan_is_busy(const struct gp_scan *scan);
/* The result of the scan that is over. It is the caller's until the next scan begins. NULL: none is over. */
const struct gp_scan_result *gp_scan_take(struct gp_scan *scan);

#endif
