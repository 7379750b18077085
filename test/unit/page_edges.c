/* SPDX-License-Identifier: MIT */
/*
 * The edges of page.h. An explorer runs the daemon's and the clients' steps in every interleaving, on a machine that
 * keeps stores back as x86 does (a buffer per thread, drained at any moment; a fence or a locked operation drains it
 * first), and looks for an end in which the daemon believes a queue idle that has work and nobody will tell it. Leaving
 * out a fence, a barrier, the second look or the maximum must be found. Then the real functions, on real threads.
 *
 * A barrier (membarrier) is not one moment: between its begin and its end each other thread passes a fence, each at a
 * moment of its own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <gpreempt/page.h>
#include <string.h>
#include <sched.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/edges.h"

enum { DOORBELL, ARMED, COMPLETED, OWNED, FENCED, PLAIN, VARIABLES };
enum { BUFFER_MAX = 3, THREAD_MAX = 3, REGISTERS = 3, STEP_MAX = 16 };

enum op {
	OP_STORE,       /* variable = value */
	OP_LOAD,        /* register = variable */
	OP_FENCE,       /* drains the own buffer */
	OP_BARRIER,     /* a fence; and begins: every other thread is to pass one */
	OP_PASSED,      /* waits until every other thread has */
	OP_RAISE,       /* locked: variable = max(variable, value) */
	OP_EXCHANGE,    /* locked: register = variable; variable = value */
	OP_SKIP_UNLESS, /* if !(register & value) the program ends */
	OP_JUMP_UNLESS, /* if !(register & value) the steps up to number `variable` are left out */
	OP_MOST,        /* register = the largest of it and variable */
	OP_TELL,        /* if register & value: the eventfd is written */
	OP_BELIEVE,     /* what the daemon thinks from then on: idle if register <= value */
	OP_END,
};
struct step {
	enum op op;
	uint32_t variable, value, reg;
};
struct machine {
	uint32_t memory[VARIABLES];
	struct {
		struct step const *steps;
		uint32_t at, registers[REGISTERS];
		uint32_t buffered;
		struct {
			uint32_t variable, value;
		} buffer[BUFFER_MAX];
	} threads[THREAD_MAX];
	uint32_t thread_count;
	uint32_t due;       /* threads that have not passed the fence of the barrier, by bit */
	bool is_announced;  /* the eventfd was written */
	bool believes_idle; /* the daemon's last word */
};

/* What was explored already: many ways lead to one state. */
#define KNOWN_MAX (1u << 18)
static struct machine known[KNOWN_MAX];
static uint32_t known_at[KNOWN_MAX]; /* index + 1 */
static uint32_t states;

/* Whether it is new. Machines are copied as bytes, so that what lies between their fields is always 0. */
static bool remember(const struct machine *machine)
{
	const uint8_t *bytes = (const uint8_t *)machine;
	uint64_t hash = 0xcbf29ce484222325u;
	uint32_t at;

	for (size_t i = 0; i < sizeof(*machine); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	for (at = (uint32_t)(hash % KNOWN_MAX); known_at[at]; at = (at + 1u) % KNOWN_MAX)
		/* See above. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		if (!memcmp(&known[known_at[at] - 1u], machine, sizeof(*machine)))
			return false;
	assert_true(states < KNOWN_MAX / 2u);
	memcpy(&known[states], machine, sizeof(*machine));
	known_at[at] = ++states;
	return true;
}

static void drain_one(struct machine *machine, uint32_t thread)
{
	machine->memory[machine->threads[thread].buffer[0].variable] = machine->threads[thread].buffer[0].value;
	machine->threads[thread].buffered--;
	memmove(&machine->threads[thread].buffer[0], &machine->threads[thread].buffer[1],
		machine->threads[thread].buffered * sizeof(machine->threads[thread].buffer[0]));
	memset(&machine->threads[thread].buffer[machine->threads[thread].buffered], 0,
	       sizeof(machine->threads[thread].buffer[0]));
}

static uint32_t look(const struct machine *machine, uint32_t thread, uint32_t variable)
{
	for (uint32_t i = machine->threads[thread].buffered; i-- > 0;)
		if (machine->threads[thread].buffer[i].variable == variable)
			return machine->threads[thread].buffer[i].value;
	return machine->memory[variable];
}

/* One step. False: it cannot be made now (a locked operation waits for the buffer to drain). */
static bool make_step(struct machine *machine, uint32_t thread)
{
	const struct step *step = &machine->threads[thread].steps[machine->threads[thread].at];
	uint32_t *reg = &machine->threads[thread].registers[step->reg];

	switch (step->op) {
	case OP_STORE:
		if (machine->threads[thread].buffered == BUFFER_MAX)
			return false;
		machine->threads[thread].buffer[machine->threads[thread].buffered].variable = step->variable;
		machine->threads[thread].buffer[machine->threads[thread].buffered++].value = step->value;
		break;
	case OP_LOAD: *reg = look(machine, thread, step->variable); break;
	case OP_MOST:
		if (look(machine, thread, step->variable) > *reg)
			*reg = look(machine, thread, step->variable);
		break;
	case OP_PASSED:
		if (machine->due)
			return false;
		break;
	case OP_FENCE:
	case OP_BARRIER:
	case OP_RAISE:
	case OP_EXCHANGE:
		if (machine->threads[thread].buffered)
			return false;
		if (step->op == OP_BARRIER && machine->due)
			return false;
		if (step->op == OP_BARRIER)
			machine->due = ((1u << machine->thread_count) - 1u) & ~(1u << thread);
		if (step->op == OP_RAISE && machine->memory[step->variable] < step->value)
			machine->memory[step->variable] = step->value;
		if (step->op == OP_EXCHANGE) {
			*reg = machine->memory[step->variable];
			machine->memory[step->variable] = step->value;
		}
		break;
	case OP_SKIP_UNLESS:
		if (!(*reg & step->value))
			while (machine->threads[thread].steps[machine->threads[thread].at + 1u].op != OP_END)
				machine->threads[thread].at++;
		break;
	case OP_JUMP_UNLESS:
		if (!(*reg & step->value))
			machine->threads[thread].at = step->variable - 1u;
		break;
	case OP_TELL: machine->is_announced |= (*reg & step->value) != 0; break;
	case OP_BELIEVE: machine->believes_idle = *reg <= step->value; break;
	case OP_END: return false;
	}
	machine->threads[thread].at++;
	return true;
}

/* Explores everything from here. False: an end was found where the truth is not known to the daemon. */
static bool explore(const struct machine *machine, uint32_t truth_busy)
{
	bool ended = true;

	if (!remember(machine))
		return true;
	for (uint32_t i = 0; i < machine->thread_count; i++) {
		struct machine next;

		memcpy(&next, machine, sizeof(next));
		if (next.threads[i].buffered) {
			ended = false;
			drain_one(&next, i);
			if (!explore(&next, truth_busy))
				return false;
			memcpy(&next, machine, sizeof(next));
		} else if (next.due & 1u << i) {
			ended = false;
			next.due &= ~(1u << i);
			if (!explore(&next, truth_busy))
				return false;
			memcpy(&next, machine, sizeof(next));
		}
		if (next.threads[i].steps[next.threads[i].at].op == OP_END)
			continue;
		ended = false;
		if (make_step(&next, i) && !explore(&next, truth_busy))
			return false;
	}
	return !ended || machine->is_announced || machine->believes_idle == !truth_busy;
}

/* The client rings: so many packets. */
#define CLIENT_RING(packets)                                                                                   \
	{ OP_RAISE, DOORBELL, packets, 0 }, { OP_LOAD, ARMED, 0, 0 }, { OP_SKIP_UNLESS, 0, GP_ARMED_BUSY, 0 }, \
		{ OP_EXCHANGE, ARMED, 0, 1 }, { OP_TELL, 0, GP_ARMED_BUSY, 1 },                                \
	{                                                                                                      \
		OP_END, 0, 0, 0                                                                                \
	}
/* The daemon, which knows of so many completed, arms and looks again. */
#define DAEMON_ARM(completed)                                                                      \
	{ OP_STORE, ARMED, GP_ARMED_BUSY, 0 }, { OP_FENCE, 0, 0, 0 }, { OP_LOAD, DOORBELL, 0, 0 }, \
		{ OP_BELIEVE, 0, completed, 0 },                                                   \
	{                                                                                          \
		OP_END, 0, 0, 0                                                                    \
	}

static const struct step client_one[STEP_MAX] = { CLIENT_RING(1) };
static const struct step client_two[STEP_MAX] = { CLIENT_RING(2) };
static const struct step client_unfenced[STEP_MAX] = { { OP_STORE, DOORBELL, 1, 0 }, { OP_LOAD, ARMED, 0, 0 },
						       { OP_SKIP_UNLESS, 0, 1, 0 },  { OP_EXCHANGE, ARMED, 0, 1 },
						       { OP_TELL, 0, 1, 1 },         { OP_END, 0, 0, 0 } };
/* Without the maximum: each producer stores what it has. */
static const struct step client_store_one[STEP_MAX] = { { OP_STORE, DOORBELL, 1, 0 }, { OP_FENCE, 0, 0, 0 },
							{ OP_LOAD, ARMED, 0, 0 },     { OP_SKIP_UNLESS, 0, 1, 0 },
							{ OP_EXCHANGE, ARMED, 0, 1 }, { OP_TELL, 0, 1, 1 },
							{ OP_END, 0, 0, 0 } };
static const struct step client_store_two[STEP_MAX] = { { OP_STORE, DOORBELL, 2, 0 }, { OP_FENCE, 0, 0, 0 },
							{ OP_LOAD, ARMED, 0, 0 },     { OP_SKIP_UNLESS, 0, 1, 0 },
							{ OP_EXCHANGE, ARMED, 0, 1 }, { OP_TELL, 0, 1, 1 },
							{ OP_END, 0, 0, 0 } };
static const struct step daemon_none[STEP_MAX] = { DAEMON_ARM(0) };
static const struct step daemon_one[STEP_MAX] = { DAEMON_ARM(1) };
static const struct step daemon_unfenced[STEP_MAX] = { { OP_STORE, ARMED, GP_ARMED_BUSY, 0 },
						       { OP_LOAD, DOORBELL, 0, 0 },
						       { OP_BELIEVE, 0, 0, 0 },
						       { OP_END, 0, 0, 0 } };
/* It looked before it armed, and does not look again. */
static const struct step daemon_blind[STEP_MAX] = { { OP_LOAD, DOORBELL, 0, 0 },
						    { OP_BELIEVE, 0, 0, 0 },
						    { OP_STORE, ARMED, GP_ARMED_BUSY, 0 },
						    { OP_FENCE, 0, 0, 0 },
						    { OP_END, 0, 0, 0 } };
/* Doorbells that leave the fence to whoever arms: a word of its own, then FENCED, then armed (agent/doorbell.c). */
#define CLIENT_OWN(word, packets)                                                                          \
	{ OP_STORE, word, packets, 0 }, { OP_LOAD, FENCED, 0, 2 }, { OP_LOAD, ARMED, 0, 0 },               \
		{ OP_JUMP_UNLESS, 6, 1, 2 }, { OP_RAISE, DOORBELL, packets, 0 }, { OP_LOAD, ARMED, 0, 0 }, \
		{ OP_SKIP_UNLESS, 0, GP_ARMED_BUSY, 0 }, { OP_EXCHANGE, ARMED, 0, 1 },                     \
		{ OP_TELL, 0, GP_ARMED_BUSY, 1 },                                                          \
	{                                                                                                  \
		OP_END, 0, 0, 0                                                                            \
	}
#define DAEMON_LOOK(completed)                                                                  \
	{ OP_LOAD, DOORBELL, 0, 0 }, { OP_MOST, OWNED, 0, 0 }, { OP_BELIEVE, 0, completed, 0 }, \
	{                                                                                       \
		OP_END, 0, 0, 0                                                                 \
	}
#define DAEMON_BARRIER(completed)                                                               \
	{ OP_STORE, ARMED, GP_ARMED_BUSY, 0 }, { OP_FENCE, 0, 0, 0 }, { OP_LOAD, PLAIN, 0, 1 }, \
		{ OP_JUMP_UNLESS, 6, 1, 1 }, { OP_BARRIER, 0, 0, 0 }, { OP_PASSED, 0, 0, 0 }, DAEMON_LOOK(completed)

static const struct step own_one[STEP_MAX] = { CLIENT_OWN(OWNED, 1) };
static const struct step own_two[STEP_MAX] = { CLIENT_OWN(OWNED, 2) };
/* armed before FENCED. */
static const struct step own_wrong_order[STEP_MAX] = { { OP_STORE, OWNED, 1, 0 },
						       { OP_LOAD, ARMED, 0, 0 },
						       { OP_LOAD, FENCED, 0, 2 },
						       { OP_JUMP_UNLESS, 6, 1, 2 },
						       { OP_RAISE, DOORBELL, 1, 0 },
						       { OP_LOAD, ARMED, 0, 0 },
						       { OP_SKIP_UNLESS, 0, GP_ARMED_BUSY, 0 },
						       { OP_EXCHANGE, ARMED, 0, 1 },
						       { OP_TELL, 0, GP_ARMED_BUSY, 1 },
						       { OP_END, 0, 0, 0 } };
static const struct step barrier_none[STEP_MAX] = { DAEMON_BARRIER(0) };
static const struct step barrier_one[STEP_MAX] = { DAEMON_BARRIER(1) };
static const struct step barrier_unawaited[STEP_MAX] = { { OP_STORE, ARMED, GP_ARMED_BUSY, 0 },
							 { OP_BARRIER, 0, 0, 0 },
							 DAEMON_LOOK(0) };
static const struct step barrier_forgotten[STEP_MAX] = { { OP_STORE, ARMED, GP_ARMED_BUSY, 0 },
							 { OP_FENCE, 0, 0, 0 },
							 DAEMON_LOOK(0) };
/* agent/fence.c. */
static const struct step fence_to_plain[STEP_MAX] = { { OP_STORE, PLAIN, 1, 0 },
						      { OP_FENCE, 0, 0, 0 },
						      { OP_EXCHANGE, FENCED, 0, 0 },
						      { OP_END, 0, 0, 0 } };
static const struct step fence_to_plain_untold[STEP_MAX] = { { OP_EXCHANGE, FENCED, 0, 0 },
							     { OP_STORE, PLAIN, 1, 0 },
							     { OP_END, 0, 0, 0 } };
/* The agent ends plain doorbells and then makes itself known to a daemon without barriers, which arms and looks at the
 * shared word alone: one thread, because the one does not begin before the other ends. */
static const struct step fence_to_fenced[STEP_MAX] = {
	{ OP_EXCHANGE, FENCED, 1, 0 }, { OP_BARRIER, 0, 0, 0 },      { OP_PASSED, 0, 0, 0 }, { OP_LOAD, OWNED, 0, 0 },
	{ OP_JUMP_UNLESS, 6, 1, 0 },   { OP_RAISE, DOORBELL, 1, 0 }, DAEMON_ARM(0)
};
static const struct step fence_to_fenced_at_once[STEP_MAX] = { { OP_EXCHANGE, FENCED, 1, 0 },
							       { OP_LOAD, OWNED, 0, 0 },
							       { OP_JUMP_UNLESS, 4, 1, 0 },
							       { OP_RAISE, DOORBELL, 1, 0 },
							       DAEMON_ARM(0) };
/* Busy to idle: the agent has seen the one packet completed; the daemon believes it busy until it looks. */
static const struct step agent_drained[STEP_MAX] = { { OP_RAISE, COMPLETED, 1, 0 },
						     { OP_FENCE, 0, 0, 0 },
						     { OP_LOAD, ARMED, 0, 0 },
						     { OP_SKIP_UNLESS, 0, GP_ARMED_IDLE, 0 },
						     { OP_EXCHANGE, ARMED, 0, 1 },
						     { OP_TELL, 0, GP_ARMED_IDLE, 1 },
						     { OP_END, 0, 0, 0 } };
static const struct step daemon_busy[STEP_MAX] = { { OP_STORE, ARMED, GP_ARMED_IDLE, 0 },
						   { OP_FENCE, 0, 0, 0 },
						   { OP_LOAD, COMPLETED, 0, 0 },
						   { OP_BELIEVE, 0, 0, 0 }, /* "idle" stands for "not completed" here */
						   { OP_END, 0, 0, 0 } };
static const struct step daemon_busy_unfenced[STEP_MAX] = { { OP_STORE, ARMED, GP_ARMED_IDLE, 0 },
							    { OP_LOAD, COMPLETED, 0, 0 },
							    { OP_BELIEVE, 0, 0, 0 },
							    { OP_END, 0, 0, 0 } };

/* Whether no interleaving of these programs loses an edge. What FENCED and PLAIN are at the beginning. */
static bool holds_from(uint32_t fenced, const struct step *a, const struct step *b, const struct step *c)
{
	struct machine machine;
	const struct step *programs[THREAD_MAX] = { a, b, c };

	memset(&machine, 0, sizeof(machine));
	machine.believes_idle = true;
	machine.memory[FENCED] = fenced;
	machine.memory[PLAIN] = !fenced;
	for (uint32_t i = 0; i < THREAD_MAX && programs[i]; i++) {
		machine.threads[i].steps = programs[i];
		machine.thread_count++;
	}
	states = 0;
	memset(known_at, 0, sizeof(known_at));
	return explore(&machine, 1);
}

static bool holds(const struct step *a, const struct step *b, const struct step *c)
{
	return holds_from(1, a, b, c);
}

/* One producer, two producers, in every order: the daemon knows or is told. */
static void test_busy_edge(void **state)
{
	(void)state;
	assert_true(holds(daemon_none, client_one, NULL));
	assert_true(states > 30);
	assert_true(holds(daemon_none, client_one, client_two));
	assert_true(holds(daemon_one, client_two, client_one));
	assert_true(states > 400);
}

/* The other edge. */
static void test_idle_edge(void **state)
{
	(void)state;
	assert_true(holds(daemon_busy, agent_drained, NULL));
}

/* Planted: each of these loses an edge, and the explorer must see it. */
static void test_planted(void **state)
{
	(void)state;
	assert_false(holds(daemon_none, client_unfenced, NULL));
	assert_false(holds(daemon_unfenced, client_one, NULL));
	assert_false(holds(daemon_blind, client_one, NULL));
	assert_false(holds(daemon_one, client_store_two, client_store_one));
	assert_false(holds(daemon_busy_unfenced, agent_drained, NULL));
}

/* Without a fence at the doorbell: the barrier of whoever arms is enough, for one producer and for two; as long as it
 * is there, waited for, and the word of the one is not the other's. */
static void test_plain(void **state)
{
	(void)state;
	assert_true(holds_from(0, barrier_none, own_one, NULL));
	assert_true(states > 200);
	assert_true(holds_from(0, barrier_none, own_one, client_two));
	assert_true(holds_from(0, barrier_one, own_one, client_two));
	assert_true(holds_from(0, barrier_one, own_two, client_one));
	assert_true(states > 1000);
	assert_false(holds_from(0, barrier_forgotten, own_one, NULL));
	assert_false(holds_from(0, barrier_unawaited, own_one, NULL));
	assert_false(holds_from(0, barrier_one, own_two, own_one));
}

/* From doorbells with a fence to those without, and back, while one rings and the daemon arms. */
static void test_changes(void **state)
{
	(void)state;
	assert_true(holds_from(1, barrier_none, own_one, fence_to_plain));
	assert_true(states > 1000);
	assert_true(holds_from(1, barrier_none, client_one, fence_to_plain));
	assert_false(holds_from(1, barrier_none, own_one, fence_to_plain_untold));
	assert_false(holds_from(1, barrier_none, own_wrong_order, fence_to_plain));
	assert_true(holds_from(0, fence_to_fenced, own_one, NULL));
	assert_false(holds_from(0, fence_to_fenced_at_once, own_one, NULL));
}

#define STRESS_ROUNDS    10000u
#define STRESS_SECONDS   5 /* on a machine that has others to run, as many rounds as there are until then */
#define STRESS_PRODUCERS 3u
#define STRESS_OVER      UINT32_MAX

struct stress {
	struct gp_page_queue queue;
	bool plain;
	uint32_t bells, round, ready;
};
struct stress_producer {
	struct stress *stress;
	uint32_t number;
};

/* One with a word of its own, two without; in each round each announces more than all did in the round before. */
static void *stress_client(void *data)
{
	const struct stress_producer *producer = data;
	struct stress *stress = producer->stress;

	for (uint32_t i = 1;; i++) {
		uint64_t packets = (uint64_t)i * STRESS_PRODUCERS + producer->number;
		uint32_t round;
		bool tell;

		while ((round = __atomic_load_n(&stress->round, __ATOMIC_ACQUIRE)) < i)
			sched_yield();
		if (round == STRESS_OVER)
			return NULL;
		if (stress->plain && !producer->number) {
			gp_edge_own(&stress->queue.owned, packets);
			tell = gp_edge_tell(&stress->queue.armed, GP_ARMED_BUSY);
		} else {
			tell = gp_edge_busy(&stress->queue, packets);
		}
		if (tell)
			__atomic_fetch_add(&stress->bells, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&stress->ready, 1, __ATOMIC_SEQ_CST);
	}
}

static void stress_arm(struct stress *stress, uint32_t round)
{
	uint32_t before = __atomic_load_n(&stress->bells, __ATOMIC_SEQ_CST);
	uint64_t first = (uint64_t)round * STRESS_PRODUCERS, looked;

	__atomic_store_n(&stress->round, round, __ATOMIC_RELEASE);
	__atomic_store_n(&stress->queue.armed, GP_ARMED_BUSY, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (stress->plain)
		assert_int_equal(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
	looked = gp_page_announced(&stress->queue);
	while (__atomic_load_n(&stress->ready, __ATOMIC_ACQUIRE) < round * STRESS_PRODUCERS)
		sched_yield();
	assert_true(looked >= first || __atomic_load_n(&stress->bells, __ATOMIC_SEQ_CST) > before);
	assert_int_equal(gp_page_announced(&stress->queue), first + STRESS_PRODUCERS - 1u);
	__atomic_store_n(&stress->queue.armed, 0, __ATOMIC_SEQ_CST);
}

static volatile sig_atomic_t stress_late;

static void stress_alarm(int signal)
{
	(void)signal;
	stress_late = 1;
}

static void stress_run(bool plain)
{
	static struct stress stress;
	pthread_t threads[STRESS_PRODUCERS];
	struct stress_producer producers[STRESS_PRODUCERS];

	stress_late = 0;
	signal(SIGALRM, stress_alarm);
	alarm(STRESS_SECONDS);
	stress = (struct stress){ .plain = plain };
	for (uint32_t i = 0; i < STRESS_PRODUCERS; i++) {
		producers[i] = (struct stress_producer){ &stress, i };
		assert_int_equal(pthread_create(&threads[i], NULL, stress_client, &producers[i]), 0);
	}
	for (uint32_t i = 1; i <= STRESS_ROUNDS && !stress_late; i++)
		stress_arm(&stress, i);
	__atomic_store_n(&stress.round, STRESS_OVER, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < STRESS_PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	alarm(0);
}

/* The real functions against the real processor: after each round the daemon saw a packet or was told, and nobody's
 * announcement hides another's. */
static void test_stress(void **state)
{
	(void)state;
	stress_run(false);
}

static void test_stress_plain(void **state)
{
	(void)state;
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0)) {
		print_message("membarrier is refused here\n");
		skip();
	}
	stress_run(true);
}

/* A doorbell that is late carries a smaller number: it does not take anything back. */
static void test_raise(void **state)
{
	struct gp_page_queue queue = { .armed = GP_ARMED_IDLE };

	(void)state;
	assert_false(gp_edge_busy(&queue, 5));
	assert_false(gp_edge_busy(&queue, 4));
	assert_int_equal(queue.doorbell, 5);
	assert_int_equal(queue.armed, GP_ARMED_IDLE);
	assert_false(gp_edge_completed(&queue, 3, false));
	assert_true(gp_edge_completed(&queue, 5, true));
	assert_int_equal(queue.armed, 0);
	assert_false(gp_edge_completed(&queue, 5, true));
}

/* Whoever tells of one edge leaves the daemon armed for the other: it may have armed for that since he looked (the
 * whole interleaving is test/prove/spin/edges.pml, PLANT_ALL). */
static void test_other_edge(void **state)
{
	uint32_t armed = GP_ARMED_BUSY | GP_ARMED_IDLE;

	(void)state;
	assert_true(gp_edge_tell(&armed, GP_ARMED_BUSY));
	assert_int_equal(armed, GP_ARMED_IDLE);
	assert_false(gp_edge_tell(&armed, GP_ARMED_BUSY));
	assert_true(gp_edge_tell(&armed, GP_ARMED_IDLE));
	assert_int_equal(armed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy_edge),  cmocka_unit_test(test_idle_edge),
		cmocka_unit_test(test_planted),    cmocka_unit_test(test_plain),
		cmocka_unit_test(test_changes),    cmocka_unit_test(test_raise),
		cmocka_unit_test(test_stress),     cmocka_unit_test(test_stress_plain),
		cmocka_unit_test(test_other_edge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
