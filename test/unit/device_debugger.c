/* SPDX-License-Identifier: MIT */
/*
 * The debugger's threads: calls into the driver that do not come back hold up their own process alone, and are counted.
 * So do processes that cannot be attached to. The driver is this test; processes 1 to HANGING hang.
 */
#include <errno.h>
#include <fcntl.h>
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

static sem_t hung, let_go, done, attached;
static int enabled, disabled; /* calls */
static bool has_debugger[HOLDING + 2];
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

int gp_kfd_trap_enable(int fd, pid_t pid, int pidfd)
{
	(void)fd, (void)pidfd;
	__atomic_fetch_add(&enabled, 1, __ATOMIC_SEQ_CST);
	if (pid == HOLDING) {
		sem_wait(&let_go); /* many clients are it */
		return 0;
	}
	return __atomic_exchange_n(&has_debugger[pid], true, __ATOMIC_SEQ_CST) ? -EALREADY : 0;
}

int gp_kfd_trap_disable(int fd, pid_t pid)
{
	(void)fd;
	__atomic_store_n(&has_debugger[pid], false, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&disabled, 1, __ATOMIC_SEQ_CST);
	return 0;
}

int gp_kfd_trap_clear_new(int fd, pid_t pid)
{
	(void)fd, (void)pid;
	return 0;
}

int gp_kfd_trap_change(int fd, pid_t pid, struct gp_device_change *changes, uint32_t count, uint32_t grace)
{
	(void)fd, (void)changes, (void)count, (void)grace;
	if (pid > HANGING)
		return 0;
	sem_post(&hung);
	sem_wait(&let_go);
	return 0;
}

int gp_kfd_criu_begin(pid_t pid, int pidfd, struct gp_kfd_guard *guard)
{
	(void)pid, (void)pidfd, (void)guard;
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

int gp_kfd_runtime_enable(int fd, bool enable)
{
	(void)fd, (void)enable;
	return 0;
}

static void host_done(void *daemon, uint64_t tag, const struct gp_device_done *what)
{
	(void)daemon, (void)tag, (void)what;
	sem_post(&done);
}

static void host_mechanism(void *daemon, uint64_t tag, uint32_t mechanism, const char *why)
{
	(void)daemon, (void)tag, (void)why;
	assert_int_equal(mechanism, GP_MECHANISM_DEBUGGER);
	sem_post(&attached);
}

static void test_hanging(void **state)
{
	struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
	struct gp_device_client clients[HANGING + 1] = { 0 };
	struct gp_device_change change = { .queue_id = 3 };
	struct gp_kfd_debugger *debugger = NULL;
	struct gp_error error;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	sem_init(&hung, 0, 0);
	sem_init(&let_go, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&attached, 0, 0);
	assert_int_equal(gp_kfd_debugger_create(&backend, &debugger, &error), 0);
	for (int i = 0; i <= HANGING; i++) {
		clients[i] = (struct gp_device_client){ .tag = (uint64_t)i + 1, .pid = i + 1, .pidfd = null };
		gp_kfd_debugger_attach(debugger, &clients[i], GP_MECHANISM_NONE);
		sem_wait(&attached);
	}
	for (int i = 0; i < HANGING; i++) {
		assert_int_equal(gp_kfd_debugger_apply(debugger, &clients[i], 1, 1, &change, 1), 0);
		sem_wait(&hung);
	}
	/* The only one the driver answers. */
	assert_int_equal(gp_kfd_debugger_apply(debugger, &clients[HANGING], 1, 1, &change, 1), 0);
	sem_wait(&done);
	while (gp_kfd_debugger_stuck(debugger) < HANGING)
		usleep(10000);
	for (int i = 0; i < HANGING; i++)
		sem_post(&let_go);
	for (int i = 0; i < HANGING; i++)
		sem_wait(&done);
	for (int i = 0; i <= HANGING; i++)
		gp_kfd_debugger_detach(debugger, &clients[i], true);
	assert_true(gp_kfd_debugger_destroy(debugger));
	close(null);
}

/* The daemon ends while a call hangs: it is not waited for, and what it comes back to is still there. */
static void test_left_behind(void **state)
{
	static struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
	static struct gp_kfd_debugger *debugger; /* static: somebody still knows it at the end */
	struct gp_device_client client = { .tag = 1, .pid = 1, .pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	struct gp_device_change change = { .queue_id = 3 };
	struct gp_error error;

	(void)state;
	assert_int_equal(gp_kfd_debugger_create(&backend, &debugger, &error), 0);
	gp_kfd_debugger_attach(debugger, &client, GP_MECHANISM_NONE);
	sem_wait(&attached);
	assert_int_equal(gp_kfd_debugger_apply(debugger, &client, 1, 1, &change, 1), 0);
	sem_wait(&hung);
	assert_false(gp_kfd_debugger_destroy(debugger));
	sem_post(&let_go);
	sem_wait(&done);
	close(client.pidfd);
}

static void finish_call(void)
{
	sem_post(&let_go);
	sem_wait(&done);
	usleep(200000); /* its thread is back to sleep by then; if not, this shows nothing */
}

/* A client hangs up while a call for it comes back: it is let go all the same, once. */
static void test_gone_meanwhile(void **state)
{
	struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
	struct gp_device_client client = { .tag = 1, .pid = 1, .pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC) };
	struct gp_device_change change = { .queue_id = 3 };
	struct gp_kfd_debugger *debugger = NULL;
	struct gp_error error;

	(void)state;
	assert_int_equal(gp_kfd_debugger_create(&backend, &debugger, &error), 0);
	gp_kfd_debugger_attach(debugger, &client, GP_MECHANISM_NONE);
	sem_wait(&attached);
	assert_int_equal(gp_kfd_debugger_apply(debugger, &client, 1, 1, &change, 1), 0);
	sem_wait(&hung);
	disabled = 0;
	at_malloc = finish_call;
	gp_kfd_debugger_detach(debugger, &client, true);
	assert_null(at_malloc);
	assert_true(gp_kfd_debugger_destroy(debugger));
	assert_int_equal(disabled, 1);
	close(client.pidfd);
}

/* One user has many processes that cannot be attached to: the others' are, orders are carried out, and clients go. */
static void test_holding_user(void **state)
{
	struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
	struct gp_device_client clients[HOLDERS + 1] = { 0 }, *other = &clients[HOLDERS];
	struct gp_device_change change = { .queue_id = 3 };
	struct gp_kfd_debugger *debugger = NULL;
	struct gp_error error;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(gp_kfd_debugger_create(&backend, &debugger, &error), 0);
	for (int i = 0; i < HOLDERS; i++) {
		clients[i] = (struct gp_device_client){ .tag = 1, .pid = HOLDING, .uid = 1001, .pidfd = null };
		gp_kfd_debugger_attach(debugger, &clients[i], GP_MECHANISM_NONE);
	}
	*other = (struct gp_device_client){ .tag = 2, .pid = HOLDING + 1, .uid = 1002, .pidfd = null };
	gp_kfd_debugger_attach(debugger, other, GP_MECHANISM_NONE);
	alarm(60); /* hanging is the failure */
	sem_wait(&attached);
	assert_int_equal(gp_kfd_debugger_apply(debugger, other, 1, 1, &change, 1), 0);
	sem_wait(&done);
	alarm(0);
	for (int i = 0; i < HOLDERS; i++)
		sem_post(&let_go);
	for (int i = 0; i < HOLDERS; i++)
		sem_wait(&attached);
	for (int i = 0; i <= HOLDERS; i++)
		gp_kfd_debugger_detach(debugger, &clients[i], true);
	assert_true(gp_kfd_debugger_destroy(debugger));
	close(null);
}

/* A client comes back while its last order is under way: it is attached to after it was let go, and not refused because
 * we ourselves are still its debugger. */
static void test_came_back(void **state)
{
	struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct gp_device_client before = { .tag = 1, .pid = 1, .pidfd = null },
				again = { .tag = 2, .pid = 1, .pidfd = null };
	struct gp_device_change change = { .queue_id = 3 };
	struct gp_kfd_debugger *debugger = NULL;
	struct gp_error error;

	(void)state;
	assert_int_equal(gp_kfd_debugger_create(&backend, &debugger, &error), 0);
	gp_kfd_debugger_attach(debugger, &before, GP_MECHANISM_NONE);
	sem_wait(&attached);
	assert_int_equal(gp_kfd_debugger_apply(debugger, &before, 1, 1, &change, 1), 0);
	sem_wait(&hung);
	disabled = 0;
	gp_kfd_debugger_detach(debugger, &before, true);
	gp_kfd_debugger_attach(debugger, &again, GP_MECHANISM_NONE);
	usleep(200000); /* a thread that does not wait has tried by then; if not, this shows nothing */
	sem_post(&let_go);
	sem_wait(&done);
	sem_wait(&attached);
	assert_int_equal(disabled, 1);
	gp_kfd_debugger_detach(debugger, &again, true);
	assert_true(gp_kfd_debugger_destroy(debugger));
	assert_int_equal(disabled, 2);
	close(null);
}

/* A call hangs; its client comes back and goes again: nobody attaches to who is gone. Who comes back next is not kept
 * waiting for the call for ever, and is refused by the driver. */
static void test_gone_again(void **state)
{
	struct gp_backend backend = { .host = { .done = host_done, .mechanism = host_mechanism }, .fd = -1 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct gp_device_client clients[3];
	struct gp_device_change change = { .queue_id = 3 };
	struct gp_kfd_debugger *debugger = NULL;
	struct gp_error error;

	(void)state;
	for (int i = 0; i < 3; i++)
		clients[i] = (struct gp_device_client){ .tag = (uint64_t)i + 1, .pid = 1, .pidfd = null };
	assert_int_equal(gp_kfd_debugger_create(&backend, &debugger, &error), 0);
	gp_kfd_debugger_attach(debugger, &clients[0], GP_MECHANISM_NONE);
	sem_wait(&attached);
	assert_int_equal(gp_kfd_debugger_apply(debugger, &clients[0], 1, 1, &change, 1), 0);
	sem_wait(&hung);
	enabled = 0;
	gp_kfd_debugger_detach(debugger, &clients[0], true);
	gp_kfd_debugger_attach(debugger, &clients[1], GP_MECHANISM_NONE);
	gp_kfd_debugger_detach(debugger, &clients[1], true);
	/* The fallback is the same, because host_mechanism() knows one. */
	gp_kfd_debugger_attach(debugger, &clients[2], GP_MECHANISM_DEBUGGER);
	sem_wait(&attached);
	assert_int_equal(__atomic_load_n(&enabled, __ATOMIC_SEQ_CST), 1);
	sem_post(&let_go);
	sem_wait(&done);
	gp_kfd_debugger_detach(debugger, &clients[2], true);
	assert_true(gp_kfd_debugger_destroy(debugger));
	close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hanging),      cmocka_unit_test(test_gone_meanwhile),
					    cmocka_unit_test(test_came_back),    cmocka_unit_test(test_gone_again),
					    cmocka_unit_test(test_holding_user), cmocka_unit_test(test_left_behind) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
