/* SPDX-License-Identifier: MIT */
/*
 * The threads that make the batch call of a patched driver: what it answers, a call that hangs, clients that go when
 * there is no memory. The driver, the time and the memory are this test's.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/kfd/gate.h"

#define GPUS        3u
#define QUEUES      8u
#define HANGING_GPU 2u

static struct gp_backend backend;
static struct gp_kfd_gate *gate;
static sem_t done, hung, let_go;
static bool is_closed[QUEUES]; /* by queue, in the driver */
static bool hangs, has_no_memory;
static int call_answer, gate_answer, last_result;
static uint32_t calls, stuck_seen;
static uint64_t now_ns, call_ns; /* the time, never behind the kernel's; what each call takes of it */

void *__real_calloc(size_t count, size_t size); // NOLINT: the linker's names
void *__wrap_calloc(size_t count, size_t size); // NOLINT

void *__wrap_calloc(size_t count, size_t size) // NOLINT
{
	return __atomic_load_n(&has_no_memory, __ATOMIC_SEQ_CST) ? NULL : __real_calloc(count, size);
}

int __real_clock_gettime(clockid_t clock, struct timespec *ret_time); // NOLINT
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time); // NOLINT

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time) // NOLINT
{
	uint64_t ns = __atomic_load_n(&now_ns, __ATOMIC_SEQ_CST);

	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, ret_time);
	*ret_time = (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	return 0;
}

int __real_access(const char *path, int mode); // NOLINT
int __wrap_access(const char *path, int mode); // NOLINT

int __wrap_access(const char *path, int mode) // NOLINT
{
	return strcmp(path, GP_KFD_SCHED_FILE) ? __real_access(path, mode) : 0;
}

int __wrap_gp_kfd_call(int fd, unsigned long request, void *args); // NOLINT
int __wrap_gp_kfd_call(int fd, unsigned long request, void *args)  // NOLINT
{
	const struct gp_kfd_sched *sched = args;
	struct gp_kfd_sched_gate *gates = (void *)(uintptr_t)sched->gates_ptr;

	(void)fd, (void)request;
	__atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&now_ns, __atomic_load_n(&call_ns, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
	if (gate)
		__atomic_fetch_add(&stuck_seen, gp_kfd_gate_stuck(gate, 0), __ATOMIC_SEQ_CST);
	if (hangs && sched->gpu_id == HANGING_GPU) {
		sem_post(&hung);
		sem_wait(&let_go);
	}
	for (uint32_t i = 0; i < sched->gate_count; i++) {
		gates[i].result = gate_answer;
		if (!gate_answer && gates[i].queue_id < QUEUES)
			__atomic_store_n(&is_closed[gates[i].queue_id], !gates[i].open, __ATOMIC_SEQ_CST);
	}
	return call_answer;
}

static void host_done(void *daemon, uint64_t tag, const struct gp_device_done *what)
{
	(void)daemon, (void)tag;
	last_result = what->changes[0].result;
	sem_post(&done);
}

static void host_failed(void *daemon, uint32_t gpu_id, const char *why)
{
	(void)daemon, (void)gpu_id, (void)why;
}

static struct gp_device_client client(uint64_t tag)
{
	static int ends[2] = { -1, -1 };

	if (ends[0] < 0)
		assert_int_equal(pipe(ends), 0); /* there is nothing to read: it has not ended */
	return (struct gp_device_client){ .tag = tag, .pid = (pid_t)tag, .pidfd = ends[0] };
}

static void give(struct gp_device_client *who, uint32_t gpu_id, uint32_t queue_id, bool open)
{
	struct gp_device_change change = { .gpu_id = gpu_id, .queue_id = queue_id, .open = open };

	assert_int_equal(gp_kfd_gate_apply(gate, who, 1, gpu_id, &change, 1), 0);
}

static int begin(void **state)
{
	struct gp_device_info infos[GPUS];
	struct gp_error error;
	struct timespec kernel;

	(void)state;
	sem_init(&done, 0, 0);
	sem_init(&hung, 0, 0);
	sem_init(&let_go, 0, 0);
	memset(is_closed, 0, sizeof(is_closed));
	hangs = has_no_memory = false;
	call_answer = gate_answer = 0;
	calls = stuck_seen = 0;
	__real_clock_gettime(CLOCK_MONOTONIC, &kernel);
	now_ns = ((uint64_t)kernel.tv_sec + 3600) * 1000000000u; /* the kernel waits by its own clock */
	call_ns = 0;
	backend.host = (struct gp_device_host){ .done = host_done, .failed = host_failed };
	for (uint32_t i = 0; i < GPUS; i++)
		infos[i] = (struct gp_device_info){ .gpu_id = i + 1 };
	return gp_kfd_gate_create(&backend, infos, GPUS, &gate, &error);
}

static int end(void **state)
{
	(void)state;
	assert_true(gp_kfd_gate_destroy(gate));
	gate = NULL;
	return 0;
}

/* What the call answers is about the call; what is wrong with the device is the result of the gate. */
static void test_try(void **state)
{
	static const struct {
		int call, gate;
		const char *why;
	} cases[] = {
		{ 0, -ESRCH, "one call" },           { -EPERM, 0, "CAP_SYS_ADMIN" },
		{ -EBUSY, 0, "schedules this GPU" }, { 0, -EBUSY, "does not work" },
		{ 0, -EOPNOTSUPP, "not supported" }, { 0, 0, "does not work" },
		{ -EINVAL, 0, "Invalid" },           { -EINVAL, -ESRCH, "Invalid" },
	};
	char why[GP_DEVICE_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		call_answer = cases[i].call;
		gate_answer = cases[i].gate;
		assert_int_equal(gp_kfd_gate_try(&backend, 1, why, sizeof(why)), i == 0);
		assert_non_null(strstr(why, cases[i].why));
	}
	call_answer = gate_answer = 0;
}

/* A call that hangs is counted for its own GPU; another GPU goes on. */
static void test_stuck(void **state)
{
	struct gp_device_client one = client(1), two = client(2);

	(void)state;
	assert_int_equal(gp_kfd_gate_attach(gate, &one), 0);
	assert_int_equal(gp_kfd_gate_attach(gate, &two), 0);
	hangs = true;
	give(&one, HANGING_GPU, 1, false);
	gp_kfd_gate_commit(gate, HANGING_GPU);
	sem_wait(&hung);
	assert_int_equal(gp_kfd_gate_stuck(gate, 0), 0);
	__atomic_fetch_add(&now_ns, 1100000000u, __ATOMIC_SEQ_CST);
	assert_int_equal(gp_kfd_gate_stuck(gate, 0), 1);
	assert_int_equal(gp_kfd_gate_stuck(gate, HANGING_GPU), 1);
	for (uint32_t gpu_id = 1; gpu_id <= GPUS; gpu_id++)
		if (gpu_id != HANGING_GPU) {
			assert_int_equal(gp_kfd_gate_stuck(gate, gpu_id), 0);
			give(&two, gpu_id, 2, false);
			gp_kfd_gate_commit(gate, gpu_id);
			sem_wait(&done);
		}
	hangs = false;
	sem_post(&let_go);
	sem_wait(&done);
	assert_int_equal(gp_kfd_gate_stuck(gate, 0), 0);
	gp_kfd_gate_detach(gate, &one);
	gp_kfd_gate_detach(gate, &two);
}

/* Many calls, one after the other, are no call that hangs: each has its own beginning. */
static void test_many(void **state)
{
	struct gp_device_client who = client(1);
	uint32_t orders = 20;

	(void)state;
	assert_int_equal(gp_kfd_gate_attach(gate, &who), 0);
	call_ns = 600000000u;
	for (uint32_t i = 0; i < orders; i++) {
		struct gp_device_change changes[GP_KFD_SCHED_GATE_MAX] = { { .queue_id = i % QUEUES } };

		for (uint32_t j = 1; j < GP_KFD_SCHED_GATE_MAX; j++)
			changes[j].queue_id = QUEUES + j; /* a call has no place for a second order */
		assert_int_equal(gp_kfd_gate_apply(gate, &who, i, 1, changes, GP_KFD_SCHED_GATE_MAX), 0);
	}
	gp_kfd_gate_commit(gate, 1);
	for (uint32_t i = 0; i < orders; i++)
		sem_wait(&done);
	assert_int_equal(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), orders);
	assert_int_equal(__atomic_load_n(&stuck_seen, __ATOMIC_SEQ_CST), 0);
	__atomic_store_n(&call_ns, 0, __ATOMIC_SEQ_CST);
	gp_kfd_gate_detach(gate, &who);
}

/* A client goes when there is no memory: what was closed of it opens. */
static void test_forget(void **state)
{
	struct gp_device_client who = client(1);

	(void)state;
	assert_int_equal(gp_kfd_gate_attach(gate, &who), 0);
	give(&who, 1, 1, false);
	give(&who, 3, 2, false);
	gp_kfd_gate_commit(gate, 1);
	gp_kfd_gate_commit(gate, 3);
	sem_wait(&done);
	sem_wait(&done);
	assert_true(is_closed[1] && is_closed[2]);
	__atomic_store_n(&has_no_memory, true, __ATOMIC_SEQ_CST);
	gp_kfd_gate_detach(gate, &who);
	while (__atomic_load_n(&is_closed[1], __ATOMIC_SEQ_CST) || __atomic_load_n(&is_closed[2], __ATOMIC_SEQ_CST))
		sched_yield();
	who = client(1);
	assert_int_equal(gp_kfd_gate_attach(gate, &who), -ENOMEM);
	assert_null(who.backend);
	__atomic_store_n(&has_no_memory, false, __ATOMIC_SEQ_CST);
}

/* A gate that cannot be remembered is not left closed: nobody would open it. */
static void test_remember(void **state)
{
	struct gp_device_client who = client(1);

	(void)state;
	assert_int_equal(gp_kfd_gate_attach(gate, &who), 0);
	give(&who, 1, 1, false);
	__atomic_store_n(&has_no_memory, true, __ATOMIC_SEQ_CST);
	gp_kfd_gate_commit(gate, 1);
	sem_wait(&done);
	__atomic_store_n(&has_no_memory, false, __ATOMIC_SEQ_CST);
	assert_int_equal(last_result, -ENOMEM);
	assert_false(__atomic_load_n(&is_closed[1], __ATOMIC_SEQ_CST));
	gp_kfd_gate_detach(gate, &who);
}

static void leave(struct gp_device_client *who, uint32_t queue_id, bool closed, bool ordered)
{
	struct gp_device_leaving queue = { .gpu_id = HANGING_GPU,
					   .queue_id = queue_id,
					   .is_closed = closed,
					   .is_ordered = ordered };

	gp_backends[0]->queue_removed(&backend, who, &queue);
}

/* A queue goes while the call that closes it is under way: the next queue of that number is not left closed. One whose
 * gate is known to be closed goes without a call. */
static void test_leaves(void **state)
{
	struct gp_device_client who = client(1);

	(void)state;
	backend.gate = gate;
	assert_int_equal(gp_kfd_gate_attach(gate, &who), 0);
	hangs = true;
	give(&who, HANGING_GPU, 1, false);
	gp_kfd_gate_commit(gate, HANGING_GPU);
	sem_wait(&hung);
	leave(&who, 1, false, true);
	hangs = false;
	sem_post(&let_go);
	sem_wait(&done);
	while (__atomic_load_n(&is_closed[1], __ATOMIC_SEQ_CST))
		sched_yield(); /* hanging is the failure */
	sem_wait(&done);
	leave(&who, 2, true, false);
	leave(&who, 2, false, false);
	give(&who, HANGING_GPU, 3, false);
	gp_kfd_gate_commit(gate, HANGING_GPU);
	sem_wait(&done);
	assert_int_equal(__atomic_load_n(&calls, __ATOMIC_SEQ_CST), 3);
	gp_kfd_gate_detach(gate, &who);
	leave(&who, 3, true, true); /* its client is gone */
	backend.gate = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_try, begin, end),
		cmocka_unit_test_setup_teardown(test_stuck, begin, end),
		cmocka_unit_test_setup_teardown(test_many, begin, end),
		cmocka_unit_test_setup_teardown(test_forget, begin, end),
		cmocka_unit_test_setup_teardown(test_remember, begin, end),
		cmocka_unit_test_setup_teardown(test_leaves, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
