/* SPDX-License-Identifier: MIT */
/* What the agent does where something it relies on is missing: a gate that will not open, a thread that cannot be
 * woken, a lock whose holder was not forked along. The driver is this test. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/sys.h"

#define LEASE_MS 200u

static int driver_result;
static uint32_t driver_opens;

static void driver_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	(void)mechanism;
	(void)slots;
	assert_true(open);
	for (uint32_t i = 0; i < count; i++)
		results[i] = driver_result;
	driver_opens++;
}

static void driver_release(void)
{
}

static const struct gp_driver driver = { .change = driver_change, .release = driver_release };

/* One queue, closed, of a process that has a daemon. */
static struct gp_slot *closed(void)
{
	struct gp_slot *slot;

	gp_slots_reset();
	assert_int_equal(gp_page_reserve(), 0);
	gp_agent.driver = &driver;
	gp_agent.link = GP_LINK_UP;
	gp_agent.lease_ms = LEASE_MS;
	gp_agent.mechanism = GP_MECHANISM_UPDATE;
	slot = gp_slot_add(0x7f0000000000ull);
	assert_non_null(slot);
	slot->seen = slot->closed = true;
	slot->closed_by = GP_MECHANISM_UPDATE;
	driver_opens = 0;
	driver_result = 0;
	return slot;
}

/* The driver refuses for good (a reset): the gate is tried once a lease, and the thread sleeps in between. */
static void test_will_not_open(void **state)
{
	struct gp_slot *slot = closed();
	uint64_t now = 1000000000u;

	(void)state;
	slot->has_work = true;
	driver_result = -EIO;
	gp_gate_leases(now);
	for (uint32_t i = 1; i <= 3u; i++) {
		uint64_t due = gp_gate_lease_due_ns(now);

		assert_true(due > now);
		now = due;
		/* What it tells the daemon goes nowhere, and ends the link. */
		gp_agent.link = GP_LINK_UP;
		gp_gate_leases(now);
		assert_true(slot->closed);
	}
	assert_in_range(driver_opens, 3, 6);
	assert_true(gp_gate_lease_due_ns(now) > now);
}

/* A doorbell that finds nobody to wake opens the gates itself. */
static void test_nobody_to_wake(void **state)
{
	struct gp_slot *slot = closed();
	struct gp_doorbell *doorbell = gp_slot_doorbell(slot);

	(void)state;
	doorbell->flags = GP_DOORBELL_WAKE;
	assert_int_equal(gp_fd(GP_FD_WAKE), -1);
	assert_true(gp_doorbell_ring(doorbell, 0, 0, 1));
	assert_false(slot->closed);
	assert_int_equal(driver_opens, 1);
	assert_int_equal(gp_agent.link, GP_LINK_DOWN);
}

static sem_t ringing, go, through;
static bool rung;
static uint32_t naps, naps_until_go;
static int looked_at = -1, wanted_for; /* as soon as that number is looked at, it is taken for this file */

/* The agent's naps take no time here, and what it naps for happens when the test says so; so does what another thread
 * does to a number while it is looked at. */
long __real_gp_sys_call(long number, const long args[6]);
long __wrap_gp_sys_call(long number, const long args[6]);
long __wrap_gp_sys_call(long number, const long args[6])
{
	if (number == SYS_fstat && looked_at >= 0 && args[0] == looked_at) {
		looked_at = -1;
		assert_int_equal(dup2(wanted_for, (int)args[0]), args[0]);
	}
	if (number != SYS_nanosleep)
		return __real_gp_sys_call(number, args);
	if (++naps == naps_until_go) {
		sem_post(&go);
		sem_wait(&through);
	}
	return 0;
}

static void slow_store(uint64_t handle, int64_t value)
{
	assert_int_equal(handle, 64);
	assert_int_equal(value, 5);
	sem_post(&ringing);
	sem_wait(&go);
	rung = true;
	sem_post(&through);
}

static void *deliver(void *unused)
{
	gp_gate_deliver();
	return unused;
}

/* A thread that rings a withheld doorbell, which takes until the agent has napped so often. */
static pthread_t ring_slowly(uint32_t until)
{
	struct gp_doorbell *doorbell = gp_slot_doorbell(closed());
	pthread_t thread;

	sem_init(&ringing, 0, 0);
	sem_init(&go, 0, 0);
	sem_init(&through, 0, 0);
	rung = false;
	naps = 0;
	naps_until_go = until;
	doorbell->flags = 0;
	doorbell->handle = 64;
	doorbell->withheld = 6;
	gp_doorbell_store = slow_store;
	assert_int_equal(pthread_create(&thread, NULL, deliver, NULL), 0);
	sem_wait(&ringing);
	return thread;
}

static void rung_at_last(pthread_t thread)
{
	sem_post(&go);
	pthread_join(thread, NULL);
	gp_doorbell_store = NULL;
	naps_until_go = 0;
}

/* A queue is destroyed while the agent's thread rings its withheld doorbell: the doorbell is there until it is rung. */
static void test_rung_before_it_goes(void **state)
{
	pthread_t thread = ring_slowly(3);
	bool rung_before;

	(void)state;
	gp_gate_delivered();
	rung_before = naps >= 3u && rung;
	rung_at_last(thread);
	assert_true(rung_before);
}

/* One that never ends is waited for a second, and not for ever. */
static void test_never_rung(void **state)
{
	pthread_t thread = ring_slowly(100000);
	bool rung_before;

	(void)state;
	gp_gate_delivered();
	rung_before = naps >= 100000u;
	rung_at_last(thread);
	assert_false(rung_before);
	assert_in_range(naps, 100, 10000);
}

/* Forked while another thread rings: that thread is not here, and is not waited for. */
static void test_forked_while_ringing(void **state)
{
	pthread_t thread = ring_slowly(0);
	int status;
	pid_t child;

	(void)state;
	gp_agent.pid = getpid();
	child = fork();
	if (!child) {
		gp_gate_delivered();
		_exit(naps != 0);
	}
	gp_agent.pid = 0;
	rung_at_last(thread);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A number that was taken over by somebody else is not ours any more, whatever it leads to now. */
static void test_taken_over(void **state)
{
	int fd, other;

	(void)state;
	assert_int_equal(gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	fd = gp_fd(GP_FD_WAKE);
	assert_int_equal(gp_fd_verified(GP_FD_WAKE), fd);
	assert_true(gp_fd_is_own(fd));
	assert_true(gp_thread_wake());
	other = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_int_equal(gp_sys(SYS_dup3, other, fd, O_CLOEXEC), fd);
	assert_false(gp_fd_is_like(GP_FD_WAKE, fd));
	assert_int_equal(gp_fd_verified(GP_FD_WAKE), -1);
	assert_false(gp_fd_is_own(fd));
	assert_false(gp_thread_wake());
	gp_fd_drop(GP_FD_WAKE);
	assert_int_equal(close(fd), 0);
	close(other);
}

/* The application closes a number that it never opened, as programs that close everything do: ours stays. */
static void test_not_its_own(void **state)
{
	int fd, other = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	fd = gp_fd(GP_FD_WAKE);
	errno = 0;
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(gp_fd_verified(GP_FD_WAKE), fd);
	assert_int_equal(dup2(fd, other), -1);
	assert_int_equal(dup3(fd, other, O_CLOEXEC), -1);
	assert_int_equal(dup2(other, fd), fd); /* it may have the number: ours goes elsewhere */
	assert_int_not_equal(gp_fd_verified(GP_FD_WAKE), -1);
	assert_int_not_equal(gp_fd(GP_FD_WAKE), fd);
	gp_fd_drop(GP_FD_WAKE);
	assert_int_equal(close(fd), 0);
	close(other);
}

/* The application wants the number just when it is looked at: ours has gone elsewhere by then, and is found there. */
static void test_moved_meanwhile(void **state)
{
	int fd, now;

	(void)state;
	assert_int_equal(gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	fd = gp_fd(GP_FD_WAKE);
	wanted_for = open("/dev/null", O_WRONLY | O_CLOEXEC);
	looked_at = fd;
	now = gp_fd_verified(GP_FD_WAKE);
	assert_int_equal(looked_at, -1);
	assert_true(now >= 0 && now != fd);
	assert_int_equal(gp_fd(GP_FD_WAKE), now);
	assert_true(gp_fd_is_like(GP_FD_WAKE, now));
	assert_false(gp_fd_is_like(GP_FD_WAKE, fd));
	gp_fd_drop(GP_FD_WAKE);
	assert_int_equal(close(fd), 0);
	close(wanted_for);
}

/* A range of numbers is closed: ours are spared, one that has become the application's is closed. */
static void test_range(void **state)
{
	int ours, taken, other = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(gp_fd_take(GP_FD_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	assert_int_equal(gp_fd_take(GP_FD_DOORBELL, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), 0);
	ours = gp_fd(GP_FD_WAKE);
	taken = gp_fd(GP_FD_DOORBELL);
	assert_int_equal(gp_sys(SYS_dup3, other, taken, O_CLOEXEC), taken);
	assert_int_equal(close_range((unsigned)(ours < taken ? ours : taken), ~0u, 0), 0);
	assert_int_equal(fcntl(taken, F_GETFD), -1);
	assert_int_equal(gp_fd_verified(GP_FD_WAKE), ours);
	gp_fds_drop_all();
	assert_int_equal(fcntl(ours, F_GETFD), -1);
	close(other);
}

/* Forked while another thread was at its very first use, with the lock: the child is not kept waiting. */
static void test_forked_at_first_use(void **state)
{
	int status;
	pid_t child;

	(void)state;
	gp_agent.pid = 0;
	gp_agent_lock();
	child = fork();
	if (!child) {
		alarm(30);
		gp_agent_lock();
		_exit(0);
	}
	gp_agent_unlock();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_will_not_open),       cmocka_unit_test(test_nobody_to_wake),
		cmocka_unit_test(test_rung_before_it_goes), cmocka_unit_test(test_never_rung),
		cmocka_unit_test(test_taken_over),          cmocka_unit_test(test_range),
		cmocka_unit_test(test_moved_meanwhile),     cmocka_unit_test(test_forked_while_ringing),
		cmocka_unit_test(test_forked_at_first_use), cmocka_unit_test(test_not_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
