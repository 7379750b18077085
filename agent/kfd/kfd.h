/* SPDX-License-Identifier: MIT */
/* The KFD side of the agent: what the agent knows of the driver in this process. The agent's lock guards it. */
#ifndef GP_AGENT_KFD_KFD_H
#define GP_AGENT_KFD_KFD_H

#include <gpreempt/kfd.h>
#include <gpreempt/userq.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/agent.h"
#include "agent/fds.h"

#define GP_KFD_NONE UINT32_MAX
#define GP_KFD_FD   GP_FD_FIRST(kfd) /* the first of GP_FD_FILE_MAX: duplicates of the application's /dev/kfd */

/* Requests are compared by number only: the size in a request differs between versions. */
#define GP_KFD_IOC_RUNTIME_ENABLE _IOWR('K', GP_KFD_NR_RUNTIME_ENABLE, struct gp_kfd_runtime_enable)
#define GP_KFD_IOC_DBG_TRAP       _IOWR('K', GP_KFD_NR_DBG_TRAP, struct gp_kfd_dbg_trap)

/* Of a queue's packets: format in struct gp_slot. */
enum gp_kfd_format { GP_KFD_AQL, GP_KFD_PM4, GP_KFD_SDMA };

enum gp_kfd_runtime {
	GP_KFD_RUNTIME_OFF,
	GP_KFD_RUNTIME_OURS,   /* the agent called RUNTIME_ENABLE */
	GP_KFD_RUNTIME_THEIRS, /* the application's runtime called it */
	GP_KFD_RUNTIME_ENDING, /* its RUNTIME_DISABLE is under way: the agent does not become debugger any more */
	GP_KFD_RUNTIME_FAILED, /* the driver refused it: too old, or a queue existed before the agent */
};

struct gp_kfd {
	enum gp_kfd_runtime runtime;
	uint32_t epoch;   /* gp_agent.epoch for which this state holds */
	bool debugging;   /* the agent is debugger of its own process (DBG_TRAP ENABLE) */
	bool self_failed; /* the driver refused that: the agent does not offer mechanism self any more */
	bool foreign;     /* the application debugs itself: the debugger's place is taken */
	uint32_t minor;
	uint32_t queue_counts[GP_FD_FILE_MAX]; /* by the agent's file number */
	uint32_t userq_count;                  /* user queues of DRM */
};
extern struct gp_kfd gp_kfd;
extern const struct gp_driver gp_kfd_driver;
int gp_kfd_ioctl(int fd, unsigned long request, void *arg); /* forwards what does not concern queues */
bool gp_kfd_begin(void); /* before the agent looks at a call; false: the process uses another driver */
/* False: arg cannot be read; the agent forwards the call, and the driver refuses it. If a filter forbids the question,
 * the address counts as readable. */
bool gp_kfd_is_readable(const void *arg, uint32_t size);
/* Before and after the driver's call that ends a queue; lock held. gone: the call succeeded. */
void gp_kfd_slot_leave(struct gp_slot *slot);
void gp_kfd_slot_left(struct gp_slot *slot, bool gone);

/* file.c: the agent's duplicates of the application's open files of the driver. */
uint32_t gp_kfd_file_find(int fd); /* GP_KFD_NONE: none */
uint32_t gp_kfd_file_add(int fd);
void gp_kfd_file_release(uint32_t file); /* one queue less; after the last one the agent closes its duplicate */
int gp_kfd_file_fd(uint32_t file);       /* a descriptor for calls that concern its queues; -1: none */
int gp_kfd_file_any(void);               /* a descriptor for calls that concern the process; -1: none */

/* self.c, update.c, submit.c: the mechanisms. */
void gp_kfd_self_change(struct gp_slot *const *slots, uint32_t count, bool open, int *results);
void gp_kfd_self_release(void);
void gp_kfd_self_recover(void);
void gp_kfd_update_change(struct gp_slot *const *slots, uint32_t count, bool open, int *results);
void gp_kfd_submit_change(struct gp_slot *const *slots, uint32_t count, bool open, int *results);

/* trap.c: doorbells that do not pass the runtime's table. */
bool gp_kfd_trap(struct gp_slot *slot, bool on);
void gp_kfd_trap_sprung(void);
void gp_kfd_trap_off(void); /* puts all doorbells back */
void gp_kfd_trap_forget(void);

/* counters.c */
void gp_kfd_sample(struct gp_slot *const *slots, uint32_t count);
/* Whether the packet at a queue's head waits; public for its test. */
enum gp_kfd_head { GP_KFD_HEAD_INVALID, GP_KFD_HEAD_RUNS, GP_KFD_HEAD_WAITS };
enum gp_kfd_head gp_kfd_packet_head(const uint8_t packet[64]);

#endif
