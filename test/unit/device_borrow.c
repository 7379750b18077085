/* SPDX-License-Identifier: MIT */
/* The threads that call NVIDIA's driver for the daemon, by themselves: what a client lends is looked at, what is old is
 * not carried out, and what one client or user gives them to do has a bound. The driver is this test. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "device/nvidia/borrow.h"
#include "device/nvidia/rm.h"

#define GPU     7u
#define CLIENT  0x100u
#define WAITING 32u /* groups of one client that may wait */

static struct gp_nvidia_borrow *borrow;
static struct gp_device_client client;
static char folder[64], path[96];
static int file;

/* The driver. */
static uint64_t rm_slice_us, rm_set_us; /* what it says, and what it was set to last */
static uint32_t rm_gpu;
static uint32_t rm_pending;
static uint32_t rm_disables, rm_count; /* RM counts: calls, and how often the channels are disabled now */
static uint32_t rm_refuses;            /* the next disable, or enable of several, with this status */
static bool rm_hangs;
static sem_t hanging, go_on;

static void rm_disable(struct gp_rm_control *control)
{
	const struct gp_rm_disable *params = (const void *)(uintptr_t)control->params;

	rm_disables += params->disable;
	if (rm_refuses && (params->disable || params->count > 1)) {
		control->status = rm_refuses;
		rm_refuses = params->disable ? 0 : rm_refuses;
		rm_count += params->disable; /* some of them are off */
		return;
	}
	rm_count = params->disable ? rm_count + 1 : rm_count ? rm_count - 1 : 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	struct gp_rm_control *control;
	va_list arguments;

	(void)fd;
	(void)request;
	va_start(arguments, request);
	control = va_arg(arguments, void *);
	va_end(arguments);
	if (__atomic_exchange_n(&rm_hangs, false, __ATOMIC_SEQ_CST)) {
		sem_post(&hanging);
		sem_wait(&go_on);
	}
	control->status = control->client == CLIENT ? GP_RM_OK : GP_RM_ERR_CLIENT;
	switch (control->command) {
	case GP_RM_SLICE_GET: memcpy((void *)(uintptr_t)control->params, &rm_slice_us, 8); break;
	case GP_RM_SLICE_SET: memcpy(&rm_set_us, (const void *)(uintptr_t)control->params, 8); break;
	case GP_RM_GPU_ID:
	case GP_RM_GROUP_INFO: memcpy((void *)(uintptr_t)control->params, &rm_gpu, 4); break;
	case GP_RM_CTXSW_MODES: ((struct gp_rm_ctxsw_modes *)(uintptr_t)control->params)->compute = 2; break;
	case GP_RM_DISABLE_CHANNELS: rm_disable(control); break;
	default: break;
	}
	return 0;
}

/* How many files of this user's do not close. */
uint32_t __wrap_gp_close_pending_of(uint32_t owner);
uint32_t __wrap_gp_close_pending_of(uint32_t owner)
{
	(void)owner;
	return rm_pending;
}

/* The daemon. */
static sem_t told, done;
static char why_told[256];
static uint32_t mechanism_told, grouped_count, failed_count;
static uint32_t grouped_then; /* when the last order was done */
static int result_told;
static uint64_t seq_told;
static bool is_told_slowly;

static void on_done(void *daemon, uint64_t tag, const struct gp_device_done *what)
{
	(void)daemon;
	(void)tag;
	result_told = what->changes[0].result;
	grouped_then = __atomic_load_n(&grouped_count, __ATOMIC_SEQ_CST);
	seq_told = what->seq;
	sem_post(&done);
}

static void on_mechanism(void *daemon, uint64_t tag, uint32_t mechanism, const char *why)
{
	(void)daemon;
	(void)tag;
	mechanism_told = mechanism;
	snprintf(why_told, sizeof(why_told), "%s", why);
	sem_post(&told);
}

static void on_grouped(void *daemon, uint64_t tag, const struct gp_device_grouped *grouped)
{
	(void)daemon;
	(void)tag;
	(void)grouped;
	if (is_told_slowly) {
		sem_post(&hanging);
		usleep(200000); /* time for the daemon to go, which must wait; passes without it, too */
		__atomic_store_n(&is_told_slowly, false, __ATOMIC_SEQ_CST);
	}
	__atomic_add_fetch(&grouped_count, 1, __ATOMIC_SEQ_CST);
	sem_post(&told);
}

/* The daemon's part: the queue is still there. */
static int on_ungrouped(void *daemon, uint64_t tag, const struct gp_device_grouped *grouped, const char *why)
{
	(void)daemon;
	(void)grouped;
	gp_nvidia_borrow_fall_back(borrow, tag, why);
	return 0;
}

static void on_sliced(void *daemon, uint64_t tag, const struct gp_device_slice *slice)
{
	(void)daemon;
	(void)tag;
	result_told = slice->result;
	sem_post(&done);
}

static void on_failed(void *daemon, uint32_t gpu_id, const char *why)
{
	(void)daemon;
	(void)why;
	assert_int_equal(gpu_id, GPU);
	failed_count++;
}

static void on_hangs(void *daemon, uint32_t gpu_id, bool hangs)
{
	(void)daemon;
	assert_int_equal(gpu_id, GPU);
	failed_count += hangs;
	if (!hangs)
		sem_post(&told);
}

static const struct gp_device_host host = { .done = on_done,
					    .sliced = on_sliced,
					    .mechanism = on_mechanism,
					    .failed = on_failed,
					    .hangs = on_hangs,
					    .grouped = on_grouped,
					    .ungrouped = on_ungrouped };

static int begin(void **state)
{
	const struct gp_nvidia_borrow_config config = { .host = &host,
							.gpu_ids = &(uint32_t){ GPU },
							.gpu_count = 1,
							.by_name = true,
							.fallback = GP_MECHANISM_CHANNEL };
	struct gp_error error;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/device-borrow-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/nvidiactl", folder);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	client = (struct gp_device_client){ .tag = 1, .owner = 5, .pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0) };
	rm_slice_us = 2048;
	rm_disables = rm_count = rm_refuses = rm_pending = mechanism_told = grouped_count = failed_count = 0;
	rm_gpu = GPU;
	gp_nvidia_hang_ns = gp_nvidia_end_ns = 3600000000000ull; /* nothing is late here */
	sem_init(&hanging, 0, 0);
	sem_init(&go_on, 0, 0);
	sem_init(&told, 0, 0);
	sem_init(&done, 0, 0);
	return gp_nvidia_borrow_create(&config, &borrow, &error);
}

static int end(void **state)
{
	(void)state;
	gp_nvidia_borrow_destroy(borrow);
	close(client.pidfd);
	close(file);
	unlink(path);
	return rmdir(folder);
}

static struct gp_wire_group lendable(uint32_t slot, uint64_t slice_us)
{
	return (struct gp_wire_group){ .slot = slot,
				       .generation = 3,
				       .fd = file,
				       .client = CLIENT,
				       .channel_count = 2,
				       .channels = { 9, 10 },
				       .slice_us = slice_us };
}

static void lend(uint32_t slot, uint64_t slice_us)
{
	struct gp_wire_group group = lendable(slot, slice_us);

	gp_nvidia_borrow_group(borrow, &client, GPU, &group);
}

static void expect_refused(const struct gp_wire_group *group, const char *why)
{
	mechanism_told = 0;
	gp_nvidia_borrow_group(borrow, &client, GPU, group);
	sem_wait(&told);
	assert_int_equal(mechanism_told, GP_MECHANISM_CHANNEL);
	assert_non_null(strstr(why_told, why));
	assert_int_equal(grouped_count, 0);
}

/* Any file of its own, somebody else's handles, a context on another GPU: nothing of it is touched. */
static void test_lies(void **state)
{
	struct gp_wire_group group = lendable(0, 1000);

	(void)state;
	group.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	expect_refused(&group, "no file of the NVIDIA driver");
	close(group.fd);
	group.fd = 100000;
	expect_refused(&group, "cannot take its file");
	group = lendable(0, 1000);
	group.client = CLIENT + 1u;
	expect_refused(&group, "does not answer on its file");
	group = lendable(0, 1000);
	rm_gpu = GPU + 1u;
	expect_refused(&group, "on another GPU");
	assert_int_equal(rm_disables, 0);
}

/* In so many microseconds: what the daemon would give back when it goes. */
static void test_slices(void **state)
{
	static const uint64_t nonsense[] = { 10000001, UINT64_MAX };

	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	assert_int_equal(grouped_count, 1);
	for (size_t i = 0; i < 2; i++) {
		lend(1, nonsense[i]);
		sem_wait(&told);
		assert_int_equal(mechanism_told, GP_MECHANISM_CHANNEL);
		assert_non_null(strstr(why_told, "its slice makes no sense"));
	}
	rm_slice_us = 0; /* nor does RM know one */
	lend(1, 0);
	sem_wait(&told);
	assert_non_null(strstr(why_told, "its slice makes no sense"));
	assert_int_equal(grouped_count, 1);
}

/* A user whose files do not close lends no more of them. */
static void test_files(void **state)
{
	(void)state;
	rm_pending = 64;
	lend(0, 1000);
	sem_wait(&told);
	assert_int_equal(mechanism_told, GP_MECHANISM_CHANNEL);
	assert_non_null(strstr(why_told, "too many files"));
	rm_pending = 63;
	lend(0, 1000);
	sem_wait(&told);
	assert_int_equal(grouped_count, 1);
}

static void make_it_hang(void)
{
	__atomic_store_n(&rm_hangs, true, __ATOMIC_SEQ_CST);
	lend(100, 1000);
	sem_wait(&hanging);
}

/* So many contexts of one client wait to be looked at, and not one more. */
static void test_many(void **state)
{
	(void)state;
	make_it_hang();
	for (uint32_t i = 0; i < WAITING; i++)
		lend(i, 1000);
	lend(0, 1000); /* again: takes the place of the first */
	assert_int_equal(mechanism_told, 0);
	lend(WAITING, 1000); /* it is let go, and those that wait are not looked at any more */
	sem_post(&go_on);
	for (uint32_t i = 0; i < 2u; i++)
		sem_wait(&told);
	assert_int_equal(grouped_count, 1);
	assert_int_equal(mechanism_told, GP_MECHANISM_CHANNEL);
	assert_non_null(strstr(why_told, "too many contexts"));
}

static void order(uint64_t seq, uint32_t generation, bool open)
{
	struct gp_device_change change = { .slot = 0, .generation = generation, .gpu_id = GPU, .open = open };

	assert_int_equal(gp_nvidia_borrow_apply(borrow, client.tag, seq, GPU, &change, 1), 0);
	gp_nvidia_borrow_commit(borrow, GPU);
}

/* What waits to be looked at holds up no order, and is not looked at once it was removed. */
static void test_orders_first(void **state)
{
	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	make_it_hang();
	for (uint32_t i = 1; i < WAITING; i++)
		lend(i, 1000);
	for (uint32_t k = 0; k < 1000; k++)
		for (uint32_t i = 1; i < WAITING; i++) /* again and again: once is enough */
			gp_nvidia_borrow_remove(borrow, client.tag, GPU, i);
	lend(WAITING, 1000); /* there is room again */
	order(1, 3, false);
	sem_post(&go_on);
	sem_wait(&done);
	assert_int_equal(result_told, 0);
	assert_int_equal(grouped_then, 2); /* the first, and the one that hung */
	sem_wait(&told);
	sem_wait(&told);
	assert_int_equal(grouped_count, 3); /* and none of those that were removed */
	order(2, 3, true);
	sem_wait(&done);
	assert_int_equal(result_told, 0);
}

/* The agent takes a queue back and announces its group as a new one, while the daemon closes and shortens the old one:
 * nobody would give either back. */
static void test_removed(void **state)
{
	const struct gp_device_slice slice = { .slot = 0, .generation = 3, .gpu_id = GPU, .slice_us = 1 };

	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	order(1, 3, false);
	sem_wait(&done);
	assert_int_equal(gp_nvidia_borrow_slice(borrow, client.tag, &slice), 0);
	sem_wait(&done);
	assert_int_equal(result_told, 0);
	assert_int_equal(rm_count, 1);
	assert_int_equal(rm_set_us, 1);
	gp_nvidia_borrow_remove(borrow, client.tag, GPU, 0);
	order(2, 3, true);
	sem_wait(&done);
	assert_int_equal(result_told, -ESRCH);
	assert_int_equal(rm_count, 0);
	assert_int_equal(rm_set_us, 1000);
}

/* Emptying slots again and again is one thing to do for each of them. */
static void test_removes(void **state)
{
	struct mallinfo2 before;

	(void)state;
	make_it_hang();
	for (uint32_t i = 0; i < 64; i++)
		gp_nvidia_borrow_remove(borrow, client.tag, GPU, i);
	before = mallinfo2();
	for (uint32_t k = 0; k < 1000; k++)
		for (uint32_t i = 0; i < 64; i++)
			gp_nvidia_borrow_remove(borrow, client.tag, GPU, i);
	assert_in_range(mallinfo2().uordblks, 0, before.uordblks + 4096);
	sem_post(&go_on);
	sem_wait(&told);
}

/* The daemon ends while a thread tells it something: it is there until that is over. */
static void test_ends_while_told(void **state)
{
	static void *volatile kept; /* a thread that outlives it keeps it; for the sanitizer it is not lost */
	bool was_telling;

	(void)state;
	kept = borrow;
	(void)kept;
	is_told_slowly = true;
	lend(0, 1000);
	sem_wait(&hanging);
	gp_nvidia_end_ns = 1;
	gp_nvidia_borrow_destroy(borrow);
	borrow = NULL;
	was_telling = __atomic_load_n(&is_told_slowly, __ATOMIC_SEQ_CST);
	sem_wait(&told);
	assert_false(was_telling);
}

/* Clients that come and go while a call takes long leave nothing to do behind; one of which something was looked at is
 * forgotten once. */
static void test_forgets(void **state)
{
	struct mallinfo2 before, after;

	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	make_it_hang();
	gp_nvidia_borrow_forget(borrow, client.tag);
	before = mallinfo2();
	for (uint64_t tag = 0; tag < 1000; tag++) {
		gp_nvidia_borrow_remove(borrow, client.tag + 1 + tag, GPU, 3);
		gp_nvidia_borrow_forget(borrow, client.tag + 1 + tag);
		gp_nvidia_borrow_forget(borrow, client.tag);
	}
	after = mallinfo2();
	sem_post(&go_on);
	sem_wait(&told);
	assert_in_range(after.uordblks, 0, before.uordblks + 4096);
	order(1, 3, false);
	sem_wait(&done);
	assert_int_equal(result_told, -ESRCH);
}

/* A close that a newer plan has overtaken is not carried out: nobody would open it again. */
static void test_overtaken(void **state)
{
	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	make_it_hang();
	order(1, 3, false);
	order(2, 3, true);
	sem_post(&go_on);
	sem_wait(&told);
	sem_wait(&done);
	sem_wait(&done);
	assert_int_equal(seq_told, 2);
	assert_int_equal(result_told, 0);
	assert_int_equal(rm_disables, 0);
	order(3, 3, false);
	sem_wait(&done);
	assert_int_equal(result_told, 0);
	assert_int_equal(rm_disables, 1);
}

/* A queue leaves the core while its close waits: the open that follows is carried out, whatever the plans of others. */
static void test_final(void **state)
{
	struct gp_device_change final = { .slot = 0, .generation = 3, .gpu_id = GPU, .open = true, .is_final = true };

	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	order(1, 3, false);
	sem_wait(&done);
	assert_int_equal(rm_count, 1);
	make_it_hang();
	assert_int_equal(gp_nvidia_borrow_apply(borrow, client.tag, 1, GPU, &final, 1), 0);
	gp_nvidia_borrow_commit(borrow, GPU);
	order(2, 99, true); /* a plan about another queue, which is gone */
	sem_post(&go_on);
	sem_wait(&told);
	sem_wait(&done);
	sem_wait(&done);
	assert_int_equal(rm_count, 0);
}

/* A call that does not come back is said once, and nothing more is given to its thread. */
static void test_hangs(void **state)
{
	struct gp_device_change change = { .slot = 0, .generation = 3, .gpu_id = GPU };

	(void)state;
	make_it_hang();
	gp_nvidia_hang_ns = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(gp_nvidia_borrow_apply(borrow, client.tag, 1, GPU, &change, 1), -EIO);
	assert_int_equal(failed_count, 3); /* each says so: root may have resumed the GPU in between */
	gp_nvidia_hang_ns = 3600000000000ull;
	sem_post(&go_on);
	sem_wait(&told);
	sem_wait(&told); /* it has come back, after what it was for */
}

/* An order for a context that has gone does nothing to the one in its slot. */
static void test_generation(void **state)
{
	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	order(1, 2, false);
	sem_wait(&done);
	assert_int_equal(result_told, -ESRCH);
	assert_int_equal(rm_disables, 0);
}

/* RM counts. Closed twice (its agent may have opened it in between, which nobody tells us), it is open after one
 * enable, which is all that its agent makes should we die. */
static void test_closed_twice(void **state)
{
	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	for (uint64_t seq = 1; seq < 5; seq++) {
		order(seq, 3, false);
		sem_wait(&done);
		assert_int_equal(result_told, 0);
		assert_int_equal(rm_count, 1);
	}
	order(5, 3, true);
	sem_wait(&done);
	assert_int_equal(rm_count, 0);
}

/* A close that RM gave up in the middle: what is off comes on again, and it is not called closed. */
static void test_half_closed(void **state)
{
	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	rm_refuses = GP_RM_ERR_BUSY;
	order(1, 3, false);
	sem_wait(&done);
	assert_int_equal(result_told, -EBUSY);
	assert_int_equal(rm_count, 0);
}

/* A channel has gone, and RM refuses a call that names it: the others are enabled one by one. */
static void test_one_is_gone(void **state)
{
	(void)state;
	lend(0, 1000);
	sem_wait(&told);
	order(1, 3, false);
	sem_wait(&done);
	assert_int_equal(rm_count, 1);
	rm_refuses = GP_RM_ERR_HANDLE;
	order(2, 3, true);
	sem_wait(&done);
	assert_int_equal(rm_count, 0);
	assert_int_equal(result_told, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_slices, begin, end),
		cmocka_unit_test_setup_teardown(test_files, begin, end),
		cmocka_unit_test_setup_teardown(test_many, begin, end),
		cmocka_unit_test_setup_teardown(test_orders_first, begin, end),
		cmocka_unit_test_setup_teardown(test_ends_while_told, begin, end),
		cmocka_unit_test_setup_teardown(test_removed, begin, end),
		cmocka_unit_test_setup_teardown(test_removes, begin, end),
		cmocka_unit_test_setup_teardown(test_forgets, begin, end),
		cmocka_unit_test_setup_teardown(test_overtaken, begin, end),
		cmocka_unit_test_setup_teardown(test_final, begin, end),
		cmocka_unit_test_setup_teardown(test_lies, begin, end),
		cmocka_unit_test_setup_teardown(test_hangs, begin, end),
		cmocka_unit_test_setup_teardown(test_generation, begin, end),
		cmocka_unit_test_setup_teardown(test_closed_twice, begin, end),
		cmocka_unit_test_setup_teardown(test_half_closed, begin, end),
		cmocka_unit_test_setup_teardown(test_one_is_gone, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
