/* SPDX-License-Identifier: MIT */
/*
 * Clients that lend their files to gpreemptd. RM here is an ioctl() of the test's own that knows a few contexts,
 * answers only on the file a client was made on, and keeps a list of what it was told.
 */
#ifndef GP_TEST_UNIT_BORROW_SCENE_H
#define GP_TEST_UNIT_BORROW_SCENE_H

#include <gpreempt/rm.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/types.h>
#include "device/nvidia/borrow.h"
#include "test/unit/daemon_world.h"
#include "test/unit/nvidia_root.h"

#define AGENTS   4u
#define CHANNELS 8u
#define SHORT    1u
#define LONG     2048u
#define HOUR_NS  3600000000000ull
#define ROUNDS   20000 /* of a millisecond: only a way to fail */

struct context {
	ino_t file;
	uint32_t client, group, subdevice, gpu_id;
	uint64_t slice_us;
	uint32_t saves, saves_step; /* so many more at each count */
	bool disabled[CHANNELS];
	const struct gp_page_queue *queue; /* of its agent: whether it has work; NULL: the agent has gone … */
	bool has_left_work;                /* … and has left some, which goes on */
};

struct scene_rm {
	pthread_mutex_t lock;
	pthread_cond_t go_on;
	struct context contexts[AGENTS];
	uint32_t context_count;
	uint32_t disables, enables; /* calls */
	uint32_t channels_most;     /* in one call */
	uint32_t most_short;        /* open together, with work */
	uint32_t refuse, status;    /* this command gets this status … */
	uint32_t refuse_client;     /* … on this client's file; 0: on all */
	bool refuse_several;        /* DISABLE_CHANNELS of several clients */
	uint32_t looks, counts;     /* SLICE_GET and CTXSW_STATS calls */
	bool hang;                  /* DISABLE_CHANNELS does not come back */
	uint32_t hanging;
	ino_t sticky; /* a close() of this file does not come back */
	uint32_t sticking;
	pthread_t thread; /* the test's own */
	int no_memory;    /* atomic: this many allocations of other threads from now there is none; 0: there is */
};
extern struct scene_rm rm;

struct scene {
	struct world world;
	struct nvidia_root root;
	struct agent agents[AGENTS];
	int fds[AGENTS];
	bool here[AGENTS];
};

bool context_is_open(const struct context *context);
uint32_t closed_count(void); /* contexts with a channel that is off */
void rm_go_on(void);         /* what hangs does not any more */

void scene_begin(struct scene *scene, const char *config);
struct scene *scene_three(void);       /* begun, with clients of three priorities, 0 the highest; all are open */
void scene_end(struct scene *scene);   /* frees it */
void scene_round(struct scene *scene); /* everybody does what there is to do; the daemon's other threads, too */
struct agent *scene_hello(struct scene *scene, uint32_t index, int32_t priority); /* its group is not told yet */
struct agent *scene_join(struct scene *scene, uint32_t index, int32_t priority);
void scene_work(struct scene *scene, uint32_t a, uint32_t b); /* these two have work */
void scene_leave(struct scene *scene, uint32_t index);
struct gp_wire_group scene_group(const struct scene *scene, uint32_t index);
struct gp_queue_entry *scene_queue(struct scene *scene, uint32_t index);
struct gp_queue_info scene_info(struct scene *scene, uint32_t index); /* the core's */

#define UNTIL(scene, condition)                                          \
	do {                                                             \
		bool is_so = false;                                      \
                                                                         \
		for (int round = 0; !is_so && round < ROUNDS; round++) { \
			scene_round(scene);                              \
			pthread_mutex_lock(&rm.lock);                    \
			is_so = (condition);                             \
			pthread_mutex_unlock(&rm.lock);                  \
		}                                                        \
		if (!is_so)                                              \
			fail_msg("never: %s", #condition);               \
	} while (0)

#endif
