/* SPDX-License-Identifier: MIT */
/*
 * A tiny world around the scheduler core: up to two devices, two clients, three queues. One call of world_step() makes
 * one call of the core's interface (and, where time passes or a plan is acknowledged, asks for plans), with arguments
 * that pick() chooses, and checks what must hold afterwards.
 *
 * All of it is two blocks of memory, the core's and `world`: whoever copies both can come back. The explorer makes
 * every choice there is, the fuzzer makes those of its input. What must hold is written from sched.h alone; the core's
 * own state is not looked at here.
 */
#ifndef GP_TEST_PROVE_WORLD_H
#define GP_TEST_PROVE_WORLD_H

#include <gpreempt/sched.h>

#define WORLD_DEVICES     2u
#define WORLD_CLIENTS     2u
#define WORLD_QUEUES      3u
#define WORLD_STEPS       5u
#define WORLD_ATTRS       4u
#define WORLD_MEMORY_SIZE 65536u

/* What may happen, as bits: each configuration has those that matter to it. */
enum world_event {
	WORLD_WORK,     /* a queue gets work; one of two packets is done; all is done */
	WORLD_TIME,     /* time passes, and plans are asked for */
	WORLD_ACK,      /* all orders that can be are answered, all well; or one is, well or not */
	WORLD_LIFE,     /* clients and queues come and go */
	WORLD_ATTR,     /* a queue, or a client, is changed */
	WORLD_LOST,     /* a gate changes without an order */
	WORLD_HINT,     /* work is announced */
	WORLD_STOP,     /* the device is stopped and started */
	WORLD_OTHERS,   /* strangers take slots */
	WORLD_COST,     /* transactions turn out dearer, or cheaper */
	WORLD_NONSENSE, /* calls that must be refused and change nothing */
	WORLD_EVENT_COUNT
};

struct world_config {
	const char *name, *policy;
	uint32_t device_count; /* 0: one */
	struct gp_device_attr attr;
	struct gp_param param;
	struct {
		uint32_t client, device;
		struct gp_queue_attr attr;
	} queues[WORLD_QUEUES];
	uint32_t attr_count; /* what queues that come later have, or are changed to; 0: the queues' own */
	struct gp_queue_attr attrs[WORLD_ATTRS];
	uint64_t steps_ns[WORLD_STEPS]; /* how far time may jump; the first is 0 */
	uint32_t events;                /* bits of enum world_event */
	bool edges;                     /* no counters: only edges are known */
	uint64_t user;                  /* of all clients; 0: each is a user of its own */
};

/* What a gate really is. */
enum world_gate { WORLD_OPEN, WORLD_CLOSED, WORLD_UNSURE };

struct world_queue {
	struct gp_queue_id id;
	bool used, busy;
	bool lost_since; /* its gate changed by itself after it was ordered: which came first is not known */
	uint32_t client, device;
	enum world_gate gate;
	enum gp_gate told; /* what the core said of the gate when nothing was left to do */
	uint64_t written, completed;
	struct gp_queue_attr attr;
	/* The order under way. */
	bool ordered, order_open, awaited;
	uint64_t order_seq, order_ns, patience_ns;
};

struct world_device {
	bool stopped;
	uint64_t seq; /* of the last plan */
	uint32_t others;
	struct gp_device_attr attr; /* as it is now */
};

struct world {
	const struct world_config *config;
	uint64_t now_ns;
	bool faulty; /* something went wrong, or the driver was late: some promises are only made without */
	struct gp_client_id clients[WORLD_CLIENTS];
	bool clients_used[WORLD_CLIENTS];
	struct world_queue queues[WORLD_QUEUES];
	struct world_device devices[WORLD_DEVICES];
	/* From here on: counted, decides nothing. */
	struct {
		uint64_t plans, closes, opens;
	} counts[WORLD_DEVICES];
};

extern struct world world;
extern struct gp_sched *world_sched;
extern unsigned char world_memory[WORLD_MEMORY_SIZE];
extern size_t world_memory_size; /* of which the core uses */

/* 0..count-1; the caller's. */
uint32_t pick(uint32_t count);
/* Something must hold and does not; the caller's. May return. */
void world_fail(const char *what);

/* The configuration's clients and queues are there, and then: */
enum world_start {
	WORLD_IDLE,    /* nothing has happened */
	WORLD_ORDERED, /* everybody has work, and the plans for that are under way */
	WORLD_BUSY,    /* they are carried out */
	WORLD_START_COUNT
};
void world_start(const struct world_config *config, enum world_start start);
void world_step(void);
/* From here on everybody keeps its work, every order is carried out, and nothing else happens: nobody with work may
 * stay closed for longer than the core promises, and the core may not be busy with itself. Leaves the world changed. */
void world_walk(void);

/* The pieces, for walk.c. */
#define REQUIRE(condition, what)            \
	do {                                \
		if (!(condition))           \
			world_fail((what)); \
	} while (0)
uint32_t world_device_count(void);
void world_settle(void); /* asks for plans until there are none */
/* May the order be answered by now? The opens of a plan are issued after its closes. */
bool world_can_answer(const struct world_queue *queue);
void world_answer(struct world_queue *queue, int result); /* asks for no plans */
void world_tell(struct world_queue *queue);               /* its counters, or its edge */
void world_check(void);                                   /* what must hold whenever nobody is inside the core */

extern const struct world_config world_configs[]; /* ends with name NULL */

#endif
