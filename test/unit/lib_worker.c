/* SPDX-License-Identifier: MIT */
/* A worker: one lane in order, lanes side by side, limits by user, calls that hang are left and come back, the end
 * waits for nothing that hangs. Nothing depends on how long anything takes. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include <cmocka.h>
#include "lib/worker.h"

#define HOUR_NS 3600000000000ull

struct job {
	struct gp_worker_job base;
	int number;
};

struct lane {
	struct gp_lane base;
	bool holds; /* what is done for it waits for let_go */
	int order[16], count;
};

static sem_t began, let_go, idle, back;
static uint64_t late_ns, clock_ns;

static uint64_t now_ns(void)
{
	return __atomic_load_n(&clock_ns, __ATOMIC_SEQ_CST);
}

static void run(void *context, struct gp_lane *base, struct gp_worker_job *job)
{
	struct lane *lane = (struct lane *)base;

	(void)context;
	sem_post(&began);
	if (lane->holds)
		sem_wait(&let_go);
	lane->order[lane->count++] = job ? ((struct job *)job)->number : -1;
}

static void is_idle(void *context, struct gp_lane *base)
{
	(void)context, (void)base;
	sem_post(&idle);
}

static void is_back(void *context, struct gp_lane *base)
{
	(void)context, (void)base;
	sem_post(&back);
}

static const struct gp_worker_config plain = { .thread_max = 4,
					       .late_ns = &late_ns,
					       .now_ns = now_ns,
					       .finishes = true,
					       .notify_fd = -1,
					       .run = run,
					       .idle = is_idle };

static int begin(void **state)
{
	(void)state;
	late_ns = 1000;
	clock_ns = 1;
	sem_init(&began, 0, 0);
	sem_init(&let_go, 0, 0);
	sem_init(&idle, 0, 0);
	sem_init(&back, 0, 0);
	return 0;
}

static void wait_for(sem_t *what, int count)
{
	while (count--)
		sem_wait(what); /* hanging is the failure */
}

/* Jobs of a lane are done in their order, what was inserted before others first; without a job: after them. */
static void test_order(void **state)
{
	struct job jobs[4] = { { .number = 0 }, { .number = 1 }, { .number = 2 }, { .number = 3 } };
	struct lane lane = { .holds = true };
	struct gp_worker *worker = gp_worker_create(&plain);

	(void)state;
	gp_worker_give(worker, &lane.base, &jobs[0].base);
	wait_for(&began, 1);
	gp_worker_give(worker, &lane.base, NULL);
	gp_worker_give(worker, &lane.base, &jobs[1].base);
	gp_worker_give(worker, &lane.base, &jobs[2].base);
	gp_worker_lock(worker);
	gp_worker_insert_locked(worker, &lane.base, &lane.base.jobs, &jobs[3].base);
	gp_worker_unlock(worker);
	for (int i = 0; i < 5; i++)
		sem_post(&let_go);
	assert_true(gp_worker_stop(worker, HOUR_NS)); /* what waits is done first */
	assert_int_equal(lane.count, 5);
	assert_int_equal(lane.order[0], 0);
	assert_int_equal(lane.order[1], 3);
	assert_int_equal(lane.order[2], 1);
	assert_int_equal(lane.order[3], 2);
	assert_int_equal(lane.order[4], -1);
	wait_for(&idle, 1);
	assert_int_equal(sem_trywait(&idle), -1);
}

/* One user's that hang keep as many threads as one user may have; another's, and root's, find one. */
static void test_one_user(void **state)
{
	struct lane holders[6] = { 0 }, other = { .base.owner = 8 }, roots[2] = { { .holds = true }, { .count = 0 } };
	struct gp_worker_config config = plain;
	struct gp_worker_use use;
	struct gp_worker *worker;
	uint32_t owner = 7;

	(void)state;
	config.limited_max = 4;
	config.limited_owner_max = 2;
	worker = gp_worker_create(&config);
	for (int i = 0; i < 6; i++) {
		holders[i] = (struct lane){ .base.owner = owner, .base.about = 4, .holds = true };
		gp_worker_give(worker, &holders[i].base, NULL);
	}
	wait_for(&began, 2);
	gp_worker_give(worker, &other.base, NULL);
	wait_for(&idle, 1);
	assert_int_equal(other.count, 1);
	gp_worker_give(worker, &roots[0].base, NULL);
	wait_for(&began, 2);
	gp_worker_give(worker, &roots[1].base, NULL);
	wait_for(&idle, 1);
	use = gp_worker_use(worker, &owner);
	assert_int_equal(use.running, 2);
	assert_int_equal(use.waiting, 4);
	assert_int_equal(gp_worker_late(worker, 0), 0);
	__atomic_store_n(&clock_ns, 5000, __ATOMIC_SEQ_CST);
	assert_int_equal(gp_worker_late(worker, 0), 3);
	assert_int_equal(gp_worker_late(worker, 4), 3); /* what is for none in particular counts for each */
	assert_int_equal(gp_worker_late(worker, 5), 1);
	gp_worker_next_call(worker, &roots[0].base);
	assert_int_equal(gp_worker_late(worker, 0), 2);
	for (int i = 0; i < 7; i++)
		sem_post(&let_go);
	wait_for(&idle, 7);
	assert_true(gp_worker_stop(worker, HOUR_NS));
}

/* A time in which the whole process stood still counts for no call. One that began after it, and before anybody knew of
 * it, is timed from when it is looked at. */
static void test_paused(void **state)
{
	struct lane before = { .holds = true }, after = { .holds = true };
	struct gp_worker *worker = gp_worker_create(&plain);

	(void)state;
	__atomic_store_n(&clock_ns, 100000, __ATOMIC_SEQ_CST);
	gp_worker_give(worker, &before.base, NULL);
	wait_for(&began, 1);
	__atomic_store_n(&clock_ns, 160500, __ATOMIC_SEQ_CST);
	gp_worker_give(worker, &after.base, NULL);
	wait_for(&began, 1);
	gp_worker_paused(60000);
	assert_int_equal(gp_worker_late(worker, 0), 0);
	gp_worker_lock(worker);
	assert_null(gp_worker_leave_locked(worker, NULL));
	gp_worker_unlock(worker);
	__atomic_store_n(&clock_ns, 161000, __ATOMIC_SEQ_CST);
	assert_int_equal(gp_worker_late(worker, 0), 1); /* it ran for as long as it may */
	__atomic_store_n(&clock_ns, 161500, __ATOMIC_SEQ_CST);
	assert_int_equal(gp_worker_late(worker, 0), 2);
	for (int i = 0; i < 2; i++)
		sem_post(&let_go);
	assert_true(gp_worker_stop(worker, HOUR_NS));
}

/* What is left does not come back to its giver; what waits of the same user can be taken back. */
static void test_left(void **state)
{
	struct lane held = { .base.owner = 7, .holds = true }, next = { .base.owner = 7 }, other = { .base.owner = 8 };
	struct gp_worker_config config = plain;
	int fd = eventfd(0, EFD_CLOEXEC);
	struct gp_worker *worker;
	uint64_t count;

	(void)state;
	config.limited_max = 4;
	config.limited_owner_max = 1;
	config.collects = true;
	config.finishes = false;
	config.notify_fd = fd;
	worker = gp_worker_create(&config);
	gp_worker_give(worker, &held.base, NULL);
	wait_for(&began, 1);
	gp_worker_give(worker, &next.base, NULL);
	gp_worker_lock(worker);
	assert_null(gp_worker_leave_locked(worker, NULL));
	__atomic_store_n(&clock_ns, 5000, __ATOMIC_SEQ_CST);
	assert_ptr_equal(gp_worker_leave_locked(worker, NULL), &held.base);
	assert_null(gp_worker_leave_locked(worker, NULL)); /* once */
	assert_ptr_equal(gp_worker_withdraw_locked(worker, 7), &next.base);
	assert_null(next.base.next);
	gp_worker_unlock(worker);
	assert_int_equal(gp_worker_use(worker, NULL).left, 1);
	gp_worker_give(worker, &other.base, NULL);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	assert_ptr_equal(gp_worker_collect(worker), &other.base);
	assert_null(gp_worker_collect(worker));
	sem_post(&let_go);
	wait_for(&idle, 1);
	assert_null(gp_worker_collect(worker));
	assert_int_equal(next.count, 0);
	/* It may be given again. */
	gp_worker_give(worker, &next.base, NULL);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	assert_ptr_equal(gp_worker_collect(worker), &next.base);
	gp_worker_stop(worker, 0);
	close(fd);
}

/* The giver hears that a lane which was left has come back, before anything more is done in it. */
static void test_back(void **state)
{
	struct job after = { .number = 1 };
	struct lane lane = { .holds = true };
	struct gp_worker_config config = plain;
	struct gp_worker *worker;

	(void)state;
	config.back = is_back;
	worker = gp_worker_create(&config);
	gp_worker_give(worker, &lane.base, NULL);
	wait_for(&began, 1);
	__atomic_store_n(&clock_ns, 5000, __ATOMIC_SEQ_CST);
	gp_worker_lock(worker);
	assert_ptr_equal(gp_worker_leave_locked(worker, &lane.base), &lane.base);
	gp_worker_unlock(worker);
	gp_worker_give(worker, &lane.base, &after.base);
	sem_post(&let_go);
	wait_for(&began, 1);
	assert_int_equal(sem_trywait(&back), 0);
	sem_post(&let_go);
	assert_true(gp_worker_stop(worker, HOUR_NS));
	assert_int_equal(lane.order[1], 1);
}

/* Somebody sets the clock: what was read of it is an hour ahead of what the kernel has from then on. */
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int r = __real_clock_gettime(clock, now);

	now->tv_sec += clock ? 0 : 3600; /* 0: CLOCK_REALTIME */
	return r;
}

/* The end waits as long as it is told, and no longer, though the clock is set back; the thread that comes back frees
 * what is left. */
static void test_end(void **state)
{
	static struct lane held, waits;
	struct gp_worker_config config = plain;
	struct gp_worker *worker;

	(void)state;
	held = waits = (struct lane){ .holds = true };
	config.thread_min = config.thread_max = 1;
	config.finishes = false;
	worker = gp_worker_create(&config);
	gp_worker_give(worker, &held.base, NULL);
	wait_for(&began, 1);
	gp_worker_give(worker, &waits.base, NULL);
	assert_false(gp_worker_stop(worker, 1));
	sem_post(&let_go);
	wait_for(&idle, 2);
	assert_int_equal(held.count, 1);
	assert_int_equal(waits.count, 0);
	assert_true(gp_worker_stop(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_order, begin), cmocka_unit_test_setup(test_one_user, begin),
		cmocka_unit_test_setup(test_left, begin),  cmocka_unit_test_setup(test_back, begin),
		cmocka_unit_test_setup(test_end, begin),   cmocka_unit_test_setup(test_paused, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
