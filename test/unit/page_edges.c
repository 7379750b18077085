/* SPDX-License-Identifier: MIT */
/*
 * The edges of page.h. An explorer runs the daemon's and the clients' steps in every interleaving, on a machine that
 * keeps stores back as x86 does (a buffer per thread, drained at any moment; a fence or a locked operation drains it
 * first), and looks for an end in which the daemon believes a queue idle that has work and nobody will tell it. Leaving
 * out a fence, the second look or the maximum must be found. Then the real functions, on real threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <gpreempt/page.h>
#include <string.h>
#include <sched.h>
#include "agent/edges.h"

enum { DOORBELL, ARMED, COMPLETED, VARIABLES };
enum { BUFFER_MAX = 3, THREAD_MAX = 3, REGISTERS = 3, STEP_MAX = 10 };

enum op {
	OP_STORE,       /* variable = value */
	OP_LOAD,        /* register = variable */
	OP_FENCE,       /* drains the own buffer */
	OP_RAISE,       /* locked: variable = max(variable, value) */
	OP_EXCHANGE,    /* locked: register = variable; variable = value */
	OP_SKIP_UNLESS, /* if !(register & value) the program ends */
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
	bool told;          /* the eventfd was written */
	bool believes_idle; /* the daemon's last word */
};

static uint64_t states;

static void drain_one(struct machine *machine, uint32_t thread)
{
	machine->memory[machine->threads[thread].buffer[0].variable] = machine->threads[thread].buffer[0].value;
	machine->threads[thread].buffered--;
	memmove(&machine->threads[thread].buffer[0], &machine->threads[thread].buffer[1],
		machine->threads[thread].buffered * sizeof(machine->threads[thread].buffer[0]));
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
	case OP_FENCE:
	case OP_RAISE:
	case OP_EXCHANGE:
		if (machine->threads[thread].buffered)
			return false;
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
	case OP_TELL: machine->told |= (*reg & step->value) != 0; break;
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

	states++;
	for (uint32_t i = 0; i < machine->thread_count; i++) {
		struct machine next = *machine;

		if (next.threads[i].buffered) {
			ended = false;
			drain_one(&next, i);
			if (!explore(&next, truth_busy))
				return false;
			next = *machine;
		}
		if (next.threads[i].steps[next.threads[i].at].op == OP_END)
			continue;
		ended = false;
		if (make_step(&next, i) && !explore(&next, truth_busy))
			return false;
	}
	return !ended || machine->told || machine->believes_idle == !truth_busy;
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

/* Whether no interleaving of these programs loses an edge. */
static bool holds(const struct step *a, const struct step *b, const struct step *c)
{
	struct machine machine = { .believes_idle = true };
	const struct step *programs[THREAD_MAX] = { a, b, c };

	for (uint32_t i = 0; i < THREAD_MAX && programs[i]; i++) {
		machine.threads[i].steps = programs[i];
		machine.thread_count++;
	}
	states = 0;
	return explore(&machine, 1);
}

/* One producer, two producers, in every order: the daemon knows or is told. */
static void test_busy_edge(void **state)
{
	(void)state;
	assert_true(holds(daemon_none, client_one, NULL));
	assert_true(states > 30);
	assert_true(holds(daemon_none, client_one, client_two));
	assert_true(holds(daemon_one, client_two, client_one));
	assert_true(states > 500);
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

#define STRESS_ROUNDS 20000u

struct stress {
	struct gp_page_queue queue;
	uint32_t bells, round, ready;
};

static void *stress_client(void *data)
{
	struct stress *stress = data;

	for (uint32_t i = 1; i <= STRESS_ROUNDS; i++) {
		while (__atomic_load_n(&stress->round, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		if (gp_edge_busy(&stress->queue, i))
			__atomic_fetch_add(&stress->bells, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&stress->ready, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The real functions against the real processor: after each round the daemon saw the packet or was told. */
static void test_stress(void **state)
{
	static struct stress stress;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, stress_client, &stress), 0);
	for (uint32_t i = 1; i <= STRESS_ROUNDS; i++) {
		uint32_t before = __atomic_load_n(&stress.bells, __ATOMIC_SEQ_CST);
		uint64_t seen;

		__atomic_store_n(&stress.round, i, __ATOMIC_RELEASE);
		__atomic_store_n(&stress.queue.armed, GP_ARMED_BUSY, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		seen = __atomic_load_n(&stress.queue.doorbell, __ATOMIC_SEQ_CST);
		while (__atomic_load_n(&stress.ready, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		assert_true(seen >= i || __atomic_load_n(&stress.bells, __ATOMIC_SEQ_CST) > before);
		__atomic_store_n(&stress.queue.armed, 0, __ATOMIC_SEQ_CST);
	}
	pthread_join(thread, NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy_edge), cmocka_unit_test(test_idle_edge), cmocka_unit_test(test_planted),
		cmocka_unit_test(test_raise),     cmocka_unit_test(test_stress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
