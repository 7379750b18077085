/* SPDX-License-Identifier: MIT */
/* What the swarm's own files share: the world drawn from a seed, the seam between simulator, core and model, and one
 * run. */
#ifndef GP_TEST_SWARM_H
#define GP_TEST_SWARM_H

#include "lib/rng.h"
#include "test/sim/checker.h"
#include "test/sim/plant.h"

#define SWARM_DEVICE_MAX 4u
#define SWARM_CLIENT_MAX 12u
#define SWARM_LIAR_MAX   6u
#define SWARM_USER_MAX   3u
#define SWARM_FAULT_MAX  64u
#define SWARM_TEXT_SIZE  256u

/* How often, of 1000 acknowledgements, each thing happens. */
struct swarm_ack_odds {
	uint32_t drop, late, copy;
	uint64_t delay_ns;
};

struct swarm_world {
	struct gp_desc desc;
	struct gp_workload workload;
	struct gp_sim_config config;
	uint64_t calm_ns; /* faults and arrivals stop */
	uint32_t fault_count;
	struct gp_sim_fault faults[SWARM_FAULT_MAX];
	struct swarm_ack_odds ack;
	uint32_t mute_client;  /* carries out and answers nothing from mute_ns on, until the calm; UINT32_MAX: nobody */
	uint32_t tardy_client; /* answers everything nearly an ack_timeout_ns late, until the calm */
	uint64_t mute_ns;
	bool is_self; /* the devices switch by themselves */
	bool has_ranks;
	char text[SWARM_TEXT_SIZE]; /* in one line, for the log */
};

/* swarm_world.c, swarm_ranks.c, swarm_gather.c and swarm_fault.c */
int swarm_world_init(struct swarm_world *world, uint64_t seed, enum swarm_kind kind, struct gp_error *error);
void swarm_world_fini(struct swarm_world *world);
int swarm_world_draw_ranks(struct swarm_world *world, uint64_t seed);
void swarm_world_draw_alone(struct swarm_world *world, uint64_t seed); /* whose queues keep no gang open */
int swarm_world_draw_gather(struct swarm_world *world, uint64_t seed, enum swarm_kind kind);
void swarm_world_draw_faults(struct swarm_world *world, struct gp_rng *rng);
bool swarm_world_can_quarantine(const struct swarm_world *world);
uint64_t swarm_world_job_ns(const struct swarm_world *world,
			    uint32_t client); /* device time of one request, at least */

/* swarm_seam.c: there is one seam in a process, because linker wrapping has no context. */
void swarm_seam_begin(struct checker_run *run, const struct plant *plant);
void swarm_seam_attach(struct gp_sim *sim);
void swarm_seam_tell(enum check_type type); /* CHECK_STEP, CHECK_CALM, CHECK_END */
void swarm_seam_end(void);

/* swarm_pool.c: calls work(item) for each item on so many processes at once. A process that dies is reported to
 * crashed() and replaced. Returns how many items failed: work() returned other than 0, or crashed. */
struct swarm_pool_job {
	uint32_t item_count, process_count;
	void *context;
	int (*work)(void *context, uint32_t item);
	void (*crashed)(void *context, uint32_t item, int signal_number);
};
int swarm_pool_run(const struct swarm_pool_job *job, uint32_t *ret_failed);

/* swarm_run.c */
struct swarm_outcome {
	bool failed[CHECKER_COUNT];
	uint32_t failed_count;
	char text[CHECKER_COUNT][CHECKER_TEXT_SIZE];
	char error[CHECKER_TEXT_SIZE]; /* the run could not be set up */
	bool past_failure;             /* the run goes on after a failure */
	uint64_t steps, end_ns;
};
struct swarm_order {
	uint64_t seed;
	const struct plant *plant;
	bool log;
};
void swarm_run(const struct swarm_order *order, const struct swarm_world *world, struct swarm_outcome *ret_outcome);

/* swarm_log.c */
void swarm_log_event(const struct check_event *event);
void swarm_log_rest(struct known *known);

#endif
