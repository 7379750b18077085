/* SPDX-License-Identifier: MIT */
/*
 * The debugger's threads: calls into the driver that do not come back hold up their own process alone, and are counted.
 * So do processes that cannot be attached to. The driver is this test; processes 1 to HANGING hang.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/kfd/criu.h"
#include "device/kfd/debugger.h"
#include "device/kfd/trap.h"

#define HANGING 12
#define HOLDING 1000 /* that process cannot be attached to until it is let go */
#define HOLDERS 40   /* more than there are threads */

#define HOUR_NS 3600000000000ull

static sem_t hung, let_go, done, attached;
static sem_t looked;                           /* a thread has looked for work and waits, or has tried to attach */
static sem_t back;                             /* the thread whose call hung has nothing more to do */
static __thread bool has_hung;                 /* this thread */
static uint32_t told;                          /* the mechanism of the last one attached to */
static int enabled, disabled, cleared, opened; /* calls */
static bool has_debugger[HOLDING + 2];
static bool disable_hangs;      /* the next one */
static bool done_hangs;         /* the next report of it */
static bool is_closed[8];       /* by queue, in the driver */
static void (*at_malloc)(void); /* before the next one of the debugger's */

void *__real_malloc(size_t size); // NOLINT: the linker's name
void *__wrap_malloc(size_t size); // NOLINT

void *__wrap_malloc(size_t size) // NOLINT
{
	void (*what)(void) = at_malloc;

	at_malloc = NULL;
	if (what)
		what();
	return __real_malloc(size);
}

int __real_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock); // NOLINT
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock); // NOLINT

int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock) // NOLINT
{
	if (has_hung)
		sem_post(&back);
	has_hung = false;
	return __real_pthread_cond_wait(wake, lock);
}

/* That of a thread which has found somebody who is to wait. */
int __real_pthread_cond_clockwait(pthread_cond_t *wake, pthread_mutex_t *lock, clockid_t clock, // NOLINT
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *wake, pthread_mutex_t *lock, clockid_t clock, // NOLINT
				  const struct timespec *until);

int __wrap_pthread_cond_clockwait(pthread_cond_t *wake, pthread_mutex_t *lock, clockid_t clock, // NOLINT
				  const struct timespec *until)
{
	sem_post(&looked);
	return __real_pthread_cond_clockwait(wake, lock, clock, until);
}

int gp_kfd_trap_enable(int fd, const struct gp_kfd_process *process)
{
	pid_t pid = process->pid;

	(void)fd;
	__atomic_fetch_add(&enabled, 1, __ATOMIC_SEQ_CST);
	sem_post(&looked);
	if (pid == HOLDING) {
		sem_wait(&let_go); /* many clients are it */
		return 0;
	}
	return __atomic_exchange_n(&has_debugger[pid], true, __ATOMIC_SEQ_CST) ? -EALREADY : 0;
}

static void hang_once(bool *hangs)
{
	if (__atomic_exchange_n(hangs, false, __ATOMIC_SEQ_CST)) {
		sem_post(&hung);
		sem_wait(&let_go);
	}
}

int gp_kfd_trap_disable(int fd, const struct gp_kfd_process *process)
{
	(void)fd;
	hang_once(&disable_hangs);
	__atomic_store_n(&has_debugger[process->pid], false, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&disabled, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int gp_kfd_trap_clear_new(int fd, const struct gp_kfd_process *process)
{
	(void)fd, (void)process;
	__atomic_fetch_add(&cleared, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int gp_kfd_trap_change(int fd, const struct gp_kfd_process *process, struct gp_device_change *changes, uint32_t count,
		       uint32_t grace)
{
	(void)fd, (void)grace;
	if (process->pid <= HANGING && !changes[0].open) {
		has_hung = true;
		sem_post(&hung);
		sem_wait(&let_go);
	}
	__atomic_fetch_add(&opened, changes[0].open, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < count; i++)
		__atomic_store_n(&is_closed[changes[i].queue_id], !changes[i].open, __ATOMIC_SEQ_CST);
	return 0;
}

int gp_kfd_criu_begin(const struct gp_kfd_process *process, struct gp_kfd_guard *guard)
{
	(void)process, (void)guard;
	return -EOPNOTSUPP;
}

int gp_kfd_criu_change(const struct gp_kfd_guard *guard, bool open)
{
	(void)guard, (void)open;
	return 0;
}

void gp_kfd_criu_end(struct gp_kfd_guard *guard)
{
	(void)guard;
}

static void host_done(void *daemon, uint64_t tag, const struct gp_device_done *what)
{
	(void)daemon, (void)tag, (void)what;
	hang_once(&done_hangs);
	sem_post(&done);
}

static void host_mechanism(void *daemon, uint64_t tag, uint32_t mechanism, const char *why)
{
	(void)daemon, (void)tag, (void)why;
	told = mechanism;
	sem_post(&attached);
}

static struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
static struct gp_kfd_debugger *debugger; /* static: somebody still knows it at the end */
static int null;

/* No limit is reached unless a test makes it shorter: threads may have to wait for a processor for seconds. */
static int begin(void **state)
{
	struct gp_error error;

	(void)state;
	__atomic_store_n(&gp_kfd_debugger_late_ns, HOUR_NS, __ATOMIC_RELAXED);
	gp_kfd_debugger_end_ns = HOUR_NS;
	memset(has_debugger, 0, sizeof(has_debugger));
	memset(is_closed, 0, sizeof(is_closed));
	enabled = disabled = cleared = opened = 0;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return gp_kfd_debugger_create(&backend, &debugger, &error);
}

static int end(void **state)
{
	(void)state;
	close(null);
	return 0;
}

static void attach(struct gp_device_client *client, uint32_t fallback, uint32_t mechanism)
{
	gp_kfd_debugger_attach(debugger, client, fallback);
	sem_wait(&attached);
	assert_int_equal(told, mechanism);
}

static void apply(struct gp_device_client *client)
{
	struct gp_device_change change = { .queue_id = 3 };

	assert_int_equal(gp_kfd_debugger_apply(debugger, client, 1, 1, &change, 1), 0);
}

/* Attached to, and a call for it hangs. */
static struct gp_device_client begin_hanging(pid_t pid)
{
	struct gp_device_client client = { .tag = (uint64_t)pid, .pid = pid, .pidfd = null };

	attach(&client, GP_MECHANISM_NONE, GP_MECHANISM_DEBUGGER);
	apply(&client);
	sem_wait(&hung);
	return client;
}

static void let_go_all(int count, sem_t *then)
{
	for (int i = 0; i < count; i++)
		sem_post(&let_go);
	for (int i = 0; i < count; i++)
		sem_wait(then);
}

static void detach_all(struct gp_device_client *clients, int count)
{
	for (int i = 0; i < count; i++)
		gp_kfd_debugger_detach(debugger, &clients[i], true);
	assert_true(gp_kfd_debugger_destroy(debugger));
}

static void test_hanging(void **state)
{
	struct gp_device_client clients[HANGING + 1] = { 0 }, *other = &clients[HANGING];

	(void)state;
	*other = (struct gp_device_client){ .tag = HANGING + 1, .pid = HANGING + 1, .pidfd = null };
	attach(other, GP_MECHANISM_NONE, GP_MECHANISM_DEBUGGER);
	for (int i = 0; i < HANGING; i++)
		clients[i] = begin_hanging(i + 1);
	/* The only one the driver answers. */
	apply(other);
	sem_wait(&done);
	assert_int_equal(gp_kfd_debugger_stuck(debugger, 0), 0);
	__atomic_store_n(&gp_kfd_debugger_late_ns, 0, __ATOMIC_RELAXED);
	assert_true(gp_kfd_debugger_stuck(debugger, 0) >= HANGING);
	/* All of them are for GPU 1. */
	assert_true(gp_kfd_debugger_stuck(debugger, 1) >= HANGING);
	assert_int_equal(gp_kfd_debugger_stuck(debugger, 2), 0);
	let_go_all(HANGING, &done);
	detach_all(clients, HANGING + 1);
}

/* The daemon ends while a call hangs: it is not waited for, and what it comes back to is still there. */
static void test_left_behind(void **state)
{
	(void)state;
	begin_hanging(1);
	gp_kfd_debugger_end_ns = 10000000;
	assert_false(gp_kfd_debugger_destroy(debugger));
	let_go_all(1, &done);
}

static void finish_call(void)
{
	let_go_all(1, &done);
	sem_wait(&back);
}

/* A client hangs up while a call for it comes back: it is let go all the same, once. */
static void test_gone_meanwhile(void **state)
{
	struct gp_device_client client = begin_hanging(1);

	(void)state;
	while (!sem_trywait(&back)) {}
	at_malloc = finish_call;
	gp_kfd_debugger_detach(debugger, &client, true);
	assert_null(at_malloc);
	assert_true(gp_kfd_debugger_destroy(debugger));
	assert_int_equal(disabled, 1);
}

/* One user has many processes that cannot be attached to: the others' are, orders are carried out, and clients go. */
static void test_holding_user(void **state)
{
	struct gp_device_client clients[HOLDERS + 1] = { 0 }, *other = &clients[HOLDERS];

	(void)state;
	for (int i = 0; i < HOLDERS; i++) {
		clients[i] = (struct gp_device_client){ .tag = 1, .pid = HOLDING, .owner = 1001, .pidfd = null };
		gp_kfd_debugger_attach(debugger, &clients[i], GP_MECHANISM_NONE);
	}
	*other = (struct gp_device_client){ .tag = 2, .pid = HOLDING + 1, .owner = 1002, .pidfd = null };
	alarm(60); /* hanging is the failure */
	attach(other, GP_MECHANISM_NONE, GP_MECHANISM_DEBUGGER);
	apply(other);
	sem_wait(&done);
	alarm(0);
	let_go_all(HOLDERS, &attached);
	detach_all(clients, HOLDERS + 1);
}

/* Many users have one each: orders are still carried out. */
static void test_holding_users(void **state)
{
	struct gp_device_client clients[HOLDERS + 1] = { 0 }, *other = &clients[HOLDERS];

	(void)state;
	*other = (struct gp_device_client){ .tag = 2, .pid = HOLDING + 1, .owner = 1, .pidfd = null };
	attach(other, GP_MECHANISM_NONE, GP_MECHANISM_DEBUGGER);
	for (uint32_t i = 0; i < HOLDERS; i++) {
		clients[i] = (struct gp_device_client){ .tag = 1, .pid = HOLDING, .owner = 1001 + i, .pidfd = null };
		gp_kfd_debugger_attach(debugger, &clients[i], GP_MECHANISM_NONE);
	}
	alarm(60); /* hanging is the failure */
	apply(other);
	sem_wait(&done);
	alarm(0);
	let_go_all(HOLDERS, &attached);
	detach_all(clients, HOLDERS + 1);
}

/* A client comes back while its last order is under way: it is attached to after it was let go, and not refused because
 * we ourselves are still its debugger. */
static void test_came_back(void **state)
{
	struct gp_device_client before = begin_hanging(1), again = { .tag = 2, .pid = 1, .pidfd = null };

	(void)state;
	gp_kfd_debugger_detach(debugger, &before, true);
	while (!sem_trywait(&looked)) {}
	gp_kfd_debugger_attach(debugger, &again, GP_MECHANISM_NONE);
	sem_wait(&looked);
	assert_int_equal(__atomic_load_n(&enabled, __ATOMIC_SEQ_CST), 1); /* its first time */
	let_go_all(1, &done);
	sem_wait(&attached);
	assert_int_equal(told, GP_MECHANISM_DEBUGGER);
	assert_int_equal(disabled, 1);
	detach_all(&again, 1);
	assert_int_equal(disabled, 2);
}

/* A call hangs; its client comes back and goes again: nobody attaches to who is gone. Who comes back next is not kept
 * waiting for the call for ever, and is refused by the driver. */
static void test_gone_again(void **state)
{
	struct gp_device_client clients[] = { begin_hanging(1),
					      { .tag = 2, .pid = 1, .pidfd = null },
					      { .tag = 3, .pid = 1, .pidfd = null } };

	(void)state;
	enabled = 0;
	gp_kfd_debugger_detach(debugger, &clients[0], true);
	gp_kfd_debugger_attach(debugger, &clients[1], GP_MECHANISM_NONE);
	gp_kfd_debugger_detach(debugger, &clients[1], true);
	__atomic_store_n(&gp_kfd_debugger_late_ns, 1, __ATOMIC_RELAXED);
	attach(&clients[2], GP_MECHANISM_UPDATE, GP_MECHANISM_UPDATE);
	assert_int_equal(__atomic_load_n(&enabled, __ATOMIC_SEQ_CST), 1);
	let_go_all(1, &done);
	detach_all(&clients[2], 1);
}

/* A call hangs, and its client says again and again that its runtime is enabled, or is not, and that it has new queues:
 * what waits for the call stays small. */
static void test_flood(void **state)
{
	struct gp_device_client client = begin_hanging(1);
	struct gp_device_change change = { .queue_id = 3 };
	int orders = 0, told_count = 0;

	(void)state;
	cleared = 0;
	for (int i = 0; i < 10000; i++) {
		gp_kfd_debugger_attach(debugger, &client, GP_MECHANISM_NONE);
		gp_kfd_debugger_queue_added(debugger, &client);
		if (i % 3 == 0)
			gp_kfd_debugger_detach(debugger, &client, false);
		orders += !gp_kfd_debugger_apply(debugger, &client, 1, 1, &change, 1);
	}
	assert_int_equal(orders, 64);
	has_hung = false;
	let_go_all(1, &done);
	/* After a detach orders fail by themselves. */
	for (int i = 0; i < orders; i++)
		sem_wait(&done);
	gp_kfd_debugger_detach(debugger, &client, true);
	assert_true(gp_kfd_debugger_destroy(debugger));
	while (!sem_trywait(&attached))
		told_count++;
	assert_in_range(told_count, 1, 2);
	assert_in_range(cleared, 0, 4);
}

static void leave(struct gp_device_client *client, uint32_t queue_id)
{
	struct gp_device_change open = { .gpu_id = 1, .queue_id = queue_id, .open = true };

	gp_kfd_debugger_queue_removed(debugger, client, &open);
}

/* Queues go while orders that close them are under way, as many as may be: each opens after those orders, or the driver
 * would not destroy it. The daemon, which has forgotten them, is not told. */
static void test_removed(void **state)
{
	struct gp_device_change changes[] = { { .queue_id = 4 }, { .queue_id = 5 }, { .queue_id = 6 } };
	struct gp_device_client client = begin_hanging(1);
	int orders = 1;

	(void)state;
	while (!gp_kfd_debugger_apply(debugger, &client, 1, 1, changes, 3))
		orders++;
	leave(&client, 3);
	leave(&client, 5);
	leave(&client, 6);
	for (int i = 0; i < orders; i++)
		sem_post(&let_go);
	for (int i = 0; i < orders; i++)
		sem_wait(&done);
	for (int i = 1; i < orders; i++)
		sem_wait(&hung);
	while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) < 3) /* hanging is the failure; a detach drops what waits */
		usleep(1000);
	detach_all(&client, 1);
	assert_true(is_closed[4]); /* this driver opens nothing by itself */
	assert_false(is_closed[3] || is_closed[5] || is_closed[6]);
	assert_int_equal(sem_trywait(&done), -1);
}

/* Queues that their agent calls closed come and go while a call hangs, without an order: the jobs that open them stay
 * few, and then all queues are opened at once. Until few wait, each of them is opened. */
static void test_flood_of_removed(void **state)
{
	struct gp_device_client client = begin_hanging(1);

	(void)state;
	for (int i = 0; i < 64; i++)
		leave(&client, 7);
	let_go_all(1, &done);
	while (__atomic_load_n(&opened, __ATOMIC_SEQ_CST) < 64) /* hanging is the failure */
		usleep(1000);
	assert_int_equal(disabled, 0);
	apply(&client);
	sem_wait(&hung);
	opened = 0;
	for (int i = 0; i < 10000; i++)
		leave(&client, (uint32_t)i % 8);
	let_go_all(1, &done);
	sem_wait(&attached);
	sem_wait(&attached);
	assert_int_equal(told, GP_MECHANISM_DEBUGGER);
	assert_int_equal(disabled, 1);
	detach_all(&client, 1);
	assert_in_range(opened, 0, 64);
	assert_int_equal(disabled, 2);
}

/* The same where the agent said before that its runtime is disabled: nobody attaches again. */
static void test_removed_after_disabled(void **state)
{
	struct gp_device_client client = begin_hanging(1);

	(void)state;
	enabled = 0;
	gp_kfd_debugger_detach(debugger, &client, false);
	for (int i = 0; i < 1000; i++)
		leave(&client, (uint32_t)i % 8);
	let_go_all(1, &done);
	sem_wait(&attached);
	assert_int_equal(told, GP_MECHANISM_NONE);
	detach_all(&client, 1);
	assert_int_equal(enabled, 0);
	assert_int_equal(opened, 0);
}

/* The same where the call that lets the process go is under way already. */
static void test_removed_while_disabled(void **state)
{
	struct gp_device_client client = { .tag = HANGING + 1, .pid = HANGING + 1, .pidfd = null };

	(void)state;
	attach(&client, GP_MECHANISM_NONE, GP_MECHANISM_DEBUGGER);
	enabled = 0;
	disable_hangs = true;
	gp_kfd_debugger_detach(debugger, &client, false);
	sem_wait(&hung);
	for (int i = 0; i < 1000; i++)
		leave(&client, (uint32_t)i % 8);
	let_go_all(1, &attached);
	assert_int_equal(told, GP_MECHANISM_NONE);
	apply(&client); /* after the jobs that wait */
	sem_wait(&done);
	assert_int_equal(sem_trywait(&attached), -1);
	assert_int_equal(enabled, 0);
	detach_all(&client, 1);
}

/* The same for a process that has another debugger: it keeps the mechanism it has instead. */
static void test_removed_after_refusal(void **state)
{
	struct gp_device_client client = { .tag = HANGING + 1, .pid = HANGING + 1, .pidfd = null };

	(void)state;
	has_debugger[HANGING + 1] = true;
	attach(&client, GP_MECHANISM_SELF, GP_MECHANISM_SELF);
	enabled = 0;
	done_hangs = true;
	apply(&client);
	sem_wait(&hung);
	for (int i = 0; i < 1000; i++)
		leave(&client, (uint32_t)i % 8);
	let_go_all(1, &done);
	apply(&client); /* after the jobs that wait */
	sem_wait(&done);
	assert_int_equal(sem_trywait(&attached), -1);
	assert_int_equal(told, GP_MECHANISM_SELF);
	assert_int_equal(enabled, 0);
	detach_all(&client, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_hanging),
					    TEST(test_gone_meanwhile),
					    TEST(test_came_back),
					    TEST(test_flood),
					    TEST(test_gone_again),
					    TEST(test_holding_user),
					    TEST(test_holding_users),
					    TEST(test_removed),
					    TEST(test_flood_of_removed),
					    TEST(test_removed_after_disabled),
					    TEST(test_removed_while_disabled),
					    TEST(test_removed_after_refusal),
					    TEST(test_left_behind) };

	sem_init(&hung, 0, 0);
	sem_init(&let_go, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&attached, 0, 0);
	sem_init(&looked, 0, 0);
	sem_init(&back, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
