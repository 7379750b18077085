/* SPDX-License-Identifier: MIT */
/* Doorbells that do not pass the runtime's table: a queue as ROCr lays it out, rung by threads of the runtime's own
 * while the agent watches it. Skipped where the kernel has no userfaultfd for us. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/fds.h"
#include "agent/kfd/kfd.h"

#define THREADS 8

/* amd_queue_t and amd_signal_t, as far as a doorbell needs them. */
static struct {
	_Alignas(64) uint8_t queue[256];
	_Alignas(64) uint8_t signal[64];
	uint64_t doorbell; /* the device's */
} fake;

static uint64_t *at(uint8_t *base, size_t offset)
{
	return (uint64_t *)(void *)(base + offset);
}

#define WRITE_INDEX at(fake.queue, 56)
#define READ_INDEX  at(fake.queue, 128)
#define POINTER     at(fake.signal, 8)

static struct gp_slot *watched_slot(bool *ret_possible)
{
	struct gp_slot *slot;

	memset(&fake, 0, sizeof(fake));
	*at(fake.queue, 16) = (uintptr_t)fake.signal;
	*at(fake.signal, 0) = UINT64_MAX; /* kind -1: a doorbell */
	*at(fake.signal, 48) = (uintptr_t)fake.queue;
	*POINTER = (uintptr_t)&fake.doorbell;
	fake.doorbell = UINT64_MAX; /* nobody has rung */
	gp_agent.driver = &gp_kfd_driver;
	gp_agent.hooked = true;
	syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	slot = gp_slot_add((uintptr_t)fake.queue);
	slot->format = GP_KFD_AQL;
	slot->read_pointer = (uintptr_t)READ_INDEX;
	slot->write_pointer = (uintptr_t)WRITE_INDEX;
	*ret_possible = gp_kfd_trap(slot, true);
	return slot;
}

/* As ROCr rings: the packet, its index, then a store where the signal says. */
static void *ring(void *unused)
{
	uint64_t index = __atomic_fetch_add(WRITE_INDEX, 1, __ATOMIC_SEQ_CST);
	uint64_t *place = (uint64_t *)(uintptr_t)__atomic_load_n(POINTER, __ATOMIC_RELAXED);

	(void)unused;
	__atomic_store_n(place, index, __ATOMIC_RELEASE);
	return NULL;
}

static void wait_sprung(void)
{
	struct pollfd poll_fd = { gp_fd(GP_FD_TRAP), POLLIN, 0 };

	assert_int_equal(poll(&poll_fd, 1, 60000), 1);
}

/* From now on these calls fail. */
static bool forbid(const int *calls, uint32_t count)
{
	struct sock_filter code[16] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { (unsigned short)(count + 3u), code };

	for (uint32_t i = 0; i < count; i++)
		code[i + 1u] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i],
							    (uint8_t)(count - i), 0);
	code[count + 1u] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[count + 2u] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* It ended with 0. 77: what it tests is not possible here. */
static void child_passes(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A filter that comes after a queue was watched takes away every way of reading that cannot fault: its doorbell is put
 * back all the same. */
static void doorbell_is_back_behind_a_filter(void **state)
{
	static const int calls[] = { SYS_process_vm_readv, SYS_write, SYS_pipe2, SYS_read, SYS_mincore };
	pid_t child = fork();

	(void)state;
	if (!child) {
		bool possible;
		struct gp_slot *slot = watched_slot(&possible);

		if (!possible || !forbid(calls, sizeof(calls) / sizeof(calls[0])))
			_exit(77);
		*WRITE_INDEX = 5; /* rung on our page, by one that has passed it */
		gp_kfd_trap(slot, false);
		if (fake.doorbell != 4)
			_exit(2);
		_exit(*POINTER == (uintptr_t)&fake.doorbell && !slot->watched ? 0 : 1);
	}
	child_passes(child);
}

/* A filter that forbids reading does not say whether somebody stands at our page: who may stand there is let go. Where
 * reading is allowed and nobody does, the queue stays watched. */
static void who_cannot_be_seen_is_let_go(void **state)
{
	static const int calls[] = { SYS_read };
	pid_t child = fork();

	(void)state;
	if (!child) {
		bool possible;
		struct gp_slot *slot = watched_slot(&possible);

		if (!possible)
			_exit(77);
		gp_kfd_trap_sprung();
		if (!slot->watched || *POINTER == (uintptr_t)&fake.doorbell)
			_exit(2);
		if (!forbid(calls, 1))
			_exit(77);
		*WRITE_INDEX = 5;
		gp_kfd_trap_sprung();
		if (fake.doorbell != 4)
			_exit(3);
		_exit(*POINTER == (uintptr_t)&fake.doorbell && !slot->watched ? 0 : 1);
	}
	child_passes(child);
}

/* Memory of a watched queue that is mapped and may not be read any more: the agent does not touch it. */
static void memory_that_may_not_be_read_is_not_touched(void **state)
{
	bool possible;
	struct gp_slot *slot = watched_slot(&possible);
	uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (!possible)
		skip();
	assert_true(page != MAP_FAILED);
	page[0] = 1; /* it is there */
	slot->read_pointer = (uintptr_t)page;
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
	*WRITE_INDEX = 5;
	gp_kfd_trap(slot, false); /* dying is the failure */
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	assert_false(slot->watched);
	munmap(page, 4096);
	gp_slot_free(slot);
}

/* Threads that ring a watched queue stop until the agent looks; then the device has heard of all of them, the runtime
 * rings the device again, and the queue counts as not seen. */
static void who_rings_is_noticed(void **state)
{
	pthread_t threads[THREADS];
	bool possible;
	struct gp_slot *slot = watched_slot(&possible);

	if (!possible)
		skip();
	assert_true(slot->watched && *POINTER != (uintptr_t)&fake.doorbell);
	slot->seen = true;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ring, NULL), 0);
	wait_sprung();
	assert_true(fake.doorbell == UINT64_MAX);
	while (__atomic_load_n(WRITE_INDEX, __ATOMIC_SEQ_CST) < THREADS)
		sched_yield();
	gp_kfd_trap_sprung();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	assert_false(slot->watched || slot->seen);
	assert_true(slot->change_due);
	/* Who came after the agent rang for himself, with his own index. */
	assert_in_range(fake.doorbell, 0, THREADS - 1);
	gp_slot_free(slot);
	(void)state;
}

/* One that was rung for while it was watched, and is let go by other means, is rung for as well. */
static void what_is_let_go_is_rung(void **state)
{
	bool possible;
	struct gp_slot *slot = watched_slot(&possible);

	if (!possible)
		skip();
	*WRITE_INDEX = 5;
	*READ_INDEX = 3;
	gp_kfd_trap_off();
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	assert_int_equal(fake.doorbell, 4);
	/* Nothing left to ring for: the doorbell is left alone. */
	assert_true(gp_kfd_trap(slot, true));
	*READ_INDEX = 5;
	fake.doorbell = 77;
	gp_kfd_trap(slot, false);
	assert_int_equal(fake.doorbell, 77);
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	gp_slot_free(slot);
	(void)state;
}

static uint64_t *late_place;
static uint32_t late_go;

/* As a thread that is put aside between its load of the pointer and its store. */
static void *ring_late(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&late_go, __ATOMIC_SEQ_CST))
		sched_yield();
	__atomic_store_n(late_place, 9, __ATOMIC_RELEASE);
	return NULL;
}

/* Once the last queue is let go, whoever still writes to our page is not stopped: nobody would look any more. */
static void who_is_late_goes_on(void **state)
{
	pthread_t thread;
	bool possible;
	struct gp_slot *slot = watched_slot(&possible);

	if (!possible)
		skip();
	late_place = (uint64_t *)(uintptr_t)*POINTER;
	assert_int_equal(pthread_create(&thread, NULL, ring_late, NULL), 0);
	gp_kfd_trap(slot, false);
	__atomic_store_n(&late_go, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL); /* hanging is the failure */
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	gp_slot_free(slot);
	(void)state;
}

/* A descriptor that the application closes by a system call does not leave anybody standing. */
static void a_closed_descriptor_lets_go(void **state)
{
	pthread_t thread;
	bool possible;
	struct gp_slot *slot = watched_slot(&possible);

	if (!possible)
		skip();
	assert_int_equal(pthread_create(&thread, NULL, ring, NULL), 0);
	wait_sprung();
	syscall(SYS_close, gp_fd(GP_FD_TRAP));
	pthread_join(thread, NULL);
	gp_kfd_trap_sprung();
	assert_int_equal(gp_fd(GP_FD_TRAP), -1);
	assert_int_equal(fake.doorbell, 0); /* the index of its packet */
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	gp_slot_free(slot);
	(void)state;
}

/* What does not look like a queue of the runtime is left alone. */
static void strange_queues_are_left_alone(void **state)
{
	bool possible;
	struct gp_slot *slot = watched_slot(&possible);

	if (!possible)
		skip();
	gp_kfd_trap(slot, false);
	*at(fake.signal, 0) = 1; /* a user's signal */
	assert_false(gp_kfd_trap(slot, true));
	*at(fake.signal, 0) = UINT64_MAX;
	*at(fake.signal, 48) = 64; /* another queue's */
	assert_false(gp_kfd_trap(slot, true));
	*at(fake.queue, 16) = 4096; /* nothing is there */
	assert_false(gp_kfd_trap(slot, true));
	assert_int_equal(*POINTER, (uintptr_t)&fake.doorbell);
	gp_slot_free(slot);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doorbell_is_back_behind_a_filter),
		cmocka_unit_test(who_cannot_be_seen_is_let_go),
		cmocka_unit_test(memory_that_may_not_be_read_is_not_touched),
		cmocka_unit_test(who_rings_is_noticed),
		cmocka_unit_test(what_is_let_go_is_rung),
		cmocka_unit_test(strange_queues_are_left_alone),
		cmocka_unit_test(who_is_late_goes_on),
		cmocka_unit_test(a_closed_descriptor_lets_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
