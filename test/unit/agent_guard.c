/* SPDX-License-Identifier: MIT */
/*
 * The agent's thread ends in the middle of a gate change, with the lock held: an heir has the lock, opens what may be
 * closed, and who waits for the lock gets it. A guard that ends is replaced though nothing else happens. The driver is
 * this test.
 */
#include <linux/futex.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/log.h"
#include "agent/sys.h"

static bool recovered, is_halfway;
static bool sleeps;     /* the agent's thread waits without an end; atomic */
static bool is_endless; /* nothing wakes it but its descriptors; atomic */
static uint32_t waits;  /* for the agent's thread to end, of one guard after the other; atomic */
static uint32_t calls;  /* of all threads; atomic */
static uint32_t opened, released_after;
static sem_t ended, done;

long __real_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6]);
/* The agent's thread is woken by descriptors alone; the first guard ends when it sleeps. */
long __wrap_gp_sys_call(long number, const long arguments[6])
{
	static __thread bool is_agent;
	long endless[6];

	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	if (number == SYS_ppoll && __atomic_load_n(&is_endless, __ATOMIC_ACQUIRE)) {
		is_agent = true;
		memcpy(endless, arguments, sizeof(endless));
		endless[2] = 0;
		__atomic_store_n(&sleeps, true, __ATOMIC_SEQ_CST);
		return __real_gp_sys_call(number, endless);
	}
	if (number == SYS_futex && arguments[1] == FUTEX_LOCK_PI_PRIVATE &&
	    __atomic_load_n(&is_endless, __ATOMIC_ACQUIRE) && !is_agent) {
		uint32_t count = __atomic_fetch_add(&waits, 1, __ATOMIC_SEQ_CST);

		/* The first is the agent's thread itself, which takes what the guards wait for. */
		if (count == 1) {
			while (!__atomic_load_n(&sleeps, __ATOMIC_SEQ_CST))
				__real_gp_sys_call(SYS_sched_yield, arguments);
			for (int i = 0; i < 1000; i++) /* asleep by now */
				__real_gp_sys_call(SYS_sched_yield, arguments);
			__real_gp_sys_call(SYS_exit, (const long[6]){ 0 });
		}
		if (count == 2)
			sem_post(&done);
	}
	return __real_gp_sys_call(number, arguments);
}

static uint32_t fake_mechanisms(void)
{
	return GP_MECHANISM_BIT(GP_MECHANISM_UPDATE);
}

static void fake_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	(void)slots;
	assert_int_equal(mechanism, GP_MECHANISM_UPDATE);
	assert_true(open && recovered == is_halfway);
	for (uint32_t i = 0; i < count; i++)
		results[i] = 0;
	opened += count;
}

static void fake_release(void)
{
	released_after = opened;
	sem_post(&done);
}

static void fake_recover(void)
{
	recovered = true;
}

static void fake_sample(struct gp_slot *const *slots, uint32_t count)
{
	(void)slots;
	(void)count;
}

static const struct gp_driver fake_driver = { .mechanisms = fake_mechanisms,
					      .change = fake_change,
					      .release = fake_release,
					      .sample = fake_sample,
					      .recover = fake_recover };

/* As gp_thread_run, up to the moment at which the driver has closed a gate and nobody has noted it. */
static void *thread_that_ends(void *unused)
{
	gp_guard_start();
	gp_lock_take(&gp_agent.lock, GP_LOCK_THREAD);
	sem_post(&ended);
	gp_sys(SYS_exit, 0);
	return unused;
}

static void set_up(void)
{
	setenv(GP_WIRE_SOCKET_ENV, "/nonexistent/gpreempt.sock", 1);
	assert_true(gp_agent_ready());
	gp_agent_lock();
	assert_int_equal(gp_page_reserve(), 0);
	assert_non_null(gp_slot_add(0x7f0000000000ull));
	assert_non_null(gp_slot_add(0x7f0000001000ull));
	gp_slots[0].used = gp_slots[1].used = true;
	gp_agent.driver = &fake_driver;
	gp_agent.mechanism = GP_MECHANISM_UPDATE;
	gp_agent_unlock();
	sem_init(&ended, 0, 0);
	sem_init(&done, 0, 0);
}

static void heir(void)
{
	pthread_t thread;

	set_up();
	is_halfway = true;
	assert_int_equal(pthread_create(&thread, NULL, thread_that_ends, NULL), 0);
	sem_wait(&ended);
	/* Held by the dead until the heir gives it. */
	gp_agent_lock();
	sem_wait(&done);
	assert_true(recovered);
	assert_int_equal(released_after, 2);
	assert_false(gp_slots[0].closed || gp_slots[1].closed);
	gp_agent.exiting = true;
	gp_agent_unlock();
	gp_thread_wake();
}

static void *thread_that_rests(void *unused)
{
	gp_guard_start();
	gp_sys(SYS_exit, 0);
	return unused;
}

/* It ends while it has nothing to do, with a gate closed: nobody else would open that. */
static void rests(void)
{
	pthread_t thread;

	set_up();
	gp_slots[1].closed = true;
	gp_slots[1].closed_by = GP_MECHANISM_UPDATE;
	gp_agent.link = GP_LINK_UP;
	assert_int_equal(pthread_create(&thread, NULL, thread_that_rests, NULL), 0);
	sem_wait(&done);
	sem_wait(&done); /* first the gates, then all else */
	gp_agent_lock();
	assert_int_equal(released_after, 1);
	assert_false(gp_slots[1].closed);
	assert_int_equal(gp_agent.link, GP_LINK_DOWN);
	gp_agent.exiting = true;
	gp_agent_unlock();
	gp_thread_wake();
}

/* Ends between giving the lock and waking the one who waits for it. */
static void *thread_that_forgets(void *unused)
{
	struct gp_lock *lock = &gp_agent.lock;

	gp_guard_start();
	gp_lock_take(lock, GP_LOCK_THREAD);
	sem_post(&ended);
	while (!(__atomic_load_n(&lock->state, __ATOMIC_RELAXED) & GP_LOCK_WAITED))
		gp_sys(SYS_sched_yield, 0);
	/* Asleep by now, or about to see that the lock is free. */
	for (int i = 0; i < 1000; i++)
		gp_sys(SYS_sched_yield, 0);
	__atomic_store_n(&lock->state, 0, __ATOMIC_RELEASE);
	gp_sys(SYS_exit, 0);
	return unused;
}

static void forgotten(void)
{
	pthread_t thread;

	sem_init(&ended, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, thread_that_forgets, NULL), 0);
	sem_wait(&ended);
	gp_agent_lock();
	gp_agent.exiting = true;
	gp_agent_unlock();
	gp_thread_wake();
}

/* A guard ends while the agent's thread sleeps and nothing wakes it. Where the kernel cannot tell, the thread looks
 * when it is awake, and there is nothing to see. */
static void unnoticed(void)
{
	pthread_t thread;
	long fd = gp_sys(SYS_pidfd_open, gp_sys(SYS_gettid, 0), O_EXCL);

	if (fd < 0)
		return;
	gp_sys_close((int)fd);
	set_up();
	__atomic_store_n(&is_endless, true, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&thread, NULL, gp_thread_run, NULL), 0);
	sem_wait(&done);
}

static void *thread_of_the_program(void *unused)
{
	for (unsigned use = GP_FD_WAKE; use <= GP_FD_DEBUG_IN; use++)
		assert_true(gp_fd(use) < 0 || gp_fd_is_own(gp_fd(use)));
	return unused;
}

/* While a guard goes by the numbers alone, the program's threads must not close the agent's descriptors, and a child
 * that is forked meanwhile has none of them. */
static void trusting(void)
{
	pthread_t thread;
	char path[] = "/tmp/agent-guard-XXXXXX";
	int number, status, file = mkstemp(path);
	uint32_t before;
	pid_t child;

	set_up();
	gp_agent_lock();
	assert_true(gp_agent_take_fds());
	gp_agent_unlock();
	number = gp_fd(GP_FD_WAKE);
	gp_log_open(path);
	assert_true(gp_fd(GP_FD_LOG) >= 0);
	before = calls;
	gp_fds_trust(true);
	gp_log1("opens by the numbers alone", 1);
	assert_int_equal(calls, before);
	assert_int_equal(gp_fd_verified(GP_FD_WAKE), -1);
	assert_int_equal(pthread_create(&thread, NULL, thread_of_the_program, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	child = fork();
	if (!child)
		_exit(gp_fds_are_trusted() || fcntl(number, F_GETFD) >= 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	gp_fds_trust(false);
	assert_int_equal(gp_fd_verified(GP_FD_WAKE), number);
	assert_int_equal(unlink(path) | close(file), 0);
}

/* Each in a process of its own: a thread that has ended cannot be had back. */
static void in_child(void (*body)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		alarm(30);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_heir(void **state)
{
	(void)state;
	in_child(heir);
}

static void test_rests(void **state)
{
	(void)state;
	in_child(rests);
}

static void test_forgotten(void **state)
{
	(void)state;
	in_child(forgotten);
}

static void test_unnoticed(void **state)
{
	(void)state;
	in_child(unnoticed);
}

static void test_trusting(void **state)
{
	(void)state;
	in_child(trusting);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_heir), cmocka_unit_test(test_rests),
					    cmocka_unit_test(test_forgotten), cmocka_unit_test(test_unnoticed),
					    cmocka_unit_test(test_trusting) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
