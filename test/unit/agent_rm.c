/* SPDX-License-Identifier: MIT */
/* RM's objects and mappings as the agent knows them: only what RM has made is there, a handle that is used again is one
 * object, and memory that is not there is not read. The driver is this test. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/fds.h"
#include "agent/sys.h"
#include "agent/nvidia/nvidia.h"

#define CLIENT 0x5c000001u
#define DEVICE 0x5c000002u
#define MEMORY 0x5c000003u
#define PAGE   4096u

static uint32_t rm_status, slices;
static uint32_t rm_count; /* RM counts: how often the channel is disabled now */
static char folder[64], path[96];

static void (*racing)(int fd, bool is_taken); /* what another thread does when a group is made, before and after the
					       * agent has duplicated the file */
static uint32_t closing;

long __real_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6])
{
	long r = __real_gp_sys_call(number, arguments);

	if (racing && number == SYS_fcntl && arguments[1] == F_DUPFD_CLOEXEC && r >= 0)
		racing((int)arguments[0], true);
	return r;
}

int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg)
{
	if (racing && (request & 0xffu) == GP_RM_ALLOC &&
	    ((const struct gp_rm_alloc *)arg)->class_id == GP_RM_CLASS_GROUP)
		racing(fd, false);
	if ((request & 0xffu) == GP_RM_ALLOC)
		((struct gp_rm_alloc *)arg)->status = rm_status;
	return 0;
}

int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg)
{
	struct gp_rm_control *control = arg;

	(void)fd;
	(void)request;
	slices += control->command == GP_RM_SLICE_SET;
	control->status = GP_RM_OK;
	if (control->command == GP_RM_SLICE_GET)
		memcpy((void *)(uintptr_t)control->params, &(uint64_t){ 2048 }, 8);
	else if (control->command == GP_RM_GPU_ID || control->command == GP_RM_GROUP_INFO)
		memcpy((void *)(uintptr_t)control->params, &(uint32_t){ 6 }, 4);
	else if (control->command == GP_RM_CTXSW_MODES)
		((struct gp_rm_ctxsw_modes *)(uintptr_t)control->params)->compute = 2;
	else if (control->command == GP_RM_DISABLE_CHANNELS)
		rm_count = ((const struct gp_rm_disable *)(uintptr_t)control->params)->disable ? rm_count + 1 :
			   rm_count                                                            ? rm_count - 1 :
												 0;
	return 0;
}

/* No thread: nothing happens but what a test does. */
void __wrap_gp_agent_start(void);
void __wrap_gp_agent_start(void)
{
}

static int ctl = -1;

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/agent-rm-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/nvidiactl", folder);
	ctl = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(ctl >= 0);
	setenv(GP_WIRE_SOCKET_ENV, "/nonexistent/gpreempt.sock", 1);
	assert_true(gp_agent_ready());
	gp_nvidia_objects_reset();
	gp_nvidia_maps_reset();
	gp_slots_reset();
	rm_status = GP_RM_OK;
	slices = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	close(ctl);
	unlink(path);
	return rmdir(folder);
}

static void make(uint32_t parent, uint32_t handle, uint32_t class_id)
{
	struct gp_rm_alloc alloc = { .client = CLIENT, .parent = parent, .object = handle, .class_id = class_id };

	assert_int_equal(gp_nvidia_ioctl(ctl, GP_RM_REQUEST(GP_RM_ALLOC) | sizeof(alloc) << 16, &alloc), 0);
}

static uint32_t count_of(uint32_t handle)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < gp_nvidia_object_limit(); i++)
		count += gp_nvidia_objects[i].used && gp_nvidia_objects[i].handle == handle;
	return count;
}

static void test_refused(void **state)
{
	(void)state;
	make(0, CLIENT, GP_RM_CLASS_CLIENT);
	rm_status = GP_RM_ERR_PERMISSIONS;
	make(CLIENT, DEVICE, GP_RM_CLASS_DEVICE);
	assert_int_equal(count_of(DEVICE), 0);
	rm_status = GP_RM_OK;
	make(CLIENT, DEVICE, GP_RM_CLASS_DEVICE);
	assert_int_equal(count_of(DEVICE), 1);
}

/* Its end was not seen. What was below the first is not below the second. */
static void test_again(void **state)
{
	(void)state;
	make(0, CLIENT, GP_RM_CLASS_CLIENT);
	make(CLIENT, DEVICE, GP_RM_CLASS_DEVICE);
	make(DEVICE, DEVICE + 8u, GP_RM_CLASS_SUBDEVICE);
	make(CLIENT, DEVICE, GP_RM_CLASS_DEVICE);
	assert_int_equal(count_of(DEVICE), 1);
	assert_int_equal(count_of(DEVICE + 8u), 0);
}

/* A client that this process does not have: its handles mean nothing here. */
static void test_of_no_client(void **state)
{
	(void)state;
	make(CLIENT, DEVICE, GP_RM_CLASS_DEVICE);
	assert_int_equal(count_of(DEVICE), 0);
}

static uint8_t *map_two_pages(void)
{
	struct gp_rm_map args = { .client = CLIENT,
				  .device = DEVICE,
				  .memory = MEMORY,
				  .length = 2u * PAGE,
				  .fd = ctl };
	uint8_t *at;

	gp_nvidia_map_expect(&args);
	assert_int_equal(ftruncate(ctl, 2 * PAGE), 0);
	at = mmap(NULL, 2u * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ctl, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

/* Up to its last byte, and not a byte beyond; for neither end do sums wrap round. */
static void test_bounds(void **state)
{
	uint8_t *at = map_two_pages();
	uint64_t address = (uintptr_t)at;
	uint32_t hint = 0;

	(void)state;
	assert_ptr_equal(gp_nvidia_map_find(address, 2u * PAGE, &hint), at);
	assert_ptr_equal(gp_nvidia_map_find(address + 2u * PAGE - 4u, 4, &hint), at + 2u * PAGE - 4u);
	assert_null(gp_nvidia_map_find(address + 2u * PAGE - 4u, 8, &hint));
	assert_null(gp_nvidia_map_find(address + 2u * PAGE, 4, &hint));
	assert_null(gp_nvidia_map_find(address - 4u, 8, &hint));
	assert_null(gp_nvidia_map_find(address + 4u, UINT64_MAX, &hint));
	assert_int_equal(gp_nvidia_map_of(CLIENT, MEMORY, PAGE, PAGE), address + PAGE);
	assert_int_equal(gp_nvidia_map_of(CLIENT, MEMORY, PAGE + 4u, PAGE), 0);
	assert_int_equal(gp_nvidia_map_of(CLIENT, MEMORY, UINT64_MAX, 8), 0);
	assert_int_equal(munmap(at, 2u * PAGE), 0);
}

/* However it goes, wholly or in part, it is forgotten before it goes. */
static void test_goes(void **state)
{
	uint32_t hint = 0;
	uint8_t *at = map_two_pages();

	(void)state;
	assert_int_equal(munmap(at + PAGE, PAGE), 0);
	assert_null(gp_nvidia_map_find((uintptr_t)at, 4, &hint));
	assert_int_equal(munmap(at, PAGE), 0);
	at = map_two_pages();
	assert_int_equal(mprotect(at, 2u * PAGE, PROT_NONE), 0);
	assert_null(gp_nvidia_map_find((uintptr_t)at, 4, &hint));
	assert_int_equal(munmap(at, 2u * PAGE), 0);
	at = map_two_pages();
	assert_ptr_equal(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
	assert_null(gp_nvidia_map_find((uintptr_t)at, 4, &hint));
	assert_int_equal(munmap(at, 2u * PAGE), 0);
	at = map_two_pages();
	gp_nvidia_map_forget_memory(CLIENT, MEMORY);
	assert_null(gp_nvidia_map_find((uintptr_t)at, 4, &hint));
	assert_int_equal(munmap(at, 2u * PAGE), 0);
}

/* Without what it was there would be no way back. */
static void test_slice(void **state)
{
	struct gp_slot *slot = gp_slot_add(0);
	struct gp_nvidia_group *group = gp_nvidia_group_of(slot);

	(void)state;
	*group = (struct gp_nvidia_group){ .client = CLIENT };
	slot->file = gp_nvidia_file_add(ctl, CLIENT);
	gp_agent.mechanism = GP_MECHANISM_CHANNEL;
	assert_int_equal(gp_nvidia_slice(slot, 1), -EOPNOTSUPP);
	group->has_slice = true;
	group->slice_us = 2048;
	assert_int_equal(gp_nvidia_slice(slot, 10000001), -EINVAL);
	assert_int_equal(slices, 0);
	assert_int_equal(gp_nvidia_slice(slot, 1), 0);
	assert_int_equal(slices, 1);
	gp_nvidia_file_release(slot->file);
	gp_agent.mechanism = GP_MECHANISM_NONE;
}

static struct gp_slot *make_context(void)
{
	if (!count_of(CLIENT))
		make(0, CLIENT, GP_RM_CLASS_CLIENT);
	make(CLIENT, DEVICE, GP_RM_CLASS_DEVICE);
	make(DEVICE, DEVICE + 1u, GP_RM_CLASS_SUBDEVICE);
	make(DEVICE, DEVICE + 2u, GP_RM_CLASS_GROUP);
	make(DEVICE + 2u, DEVICE + 3u, 0xc86f);
	make(DEVICE + 3u, DEVICE + 4u, 0xcbc0);
	assert_int_equal(gp_slot_limit(), 1);
	return &gp_slots[0];
}

/* A context that has run nothing yet is not to be gated: setting it up would wait for a turn at each step. */
static void test_starts(void **state)
{
	const struct gp_slot *slot = make_context();

	(void)state;
	assert_true(slot->starting && slot->blind);
	gp_nvidia_client_gone(CLIENT);
	assert_int_equal(gp_slot_limit(), 0);
}

/* RM counts. Closed twice, for whatever reason, it is open after one enable. */
static void test_closed_twice(void **state)
{
	struct gp_slot *slot = make_context();
	int result = 1;

	(void)state;
	rm_count = 0;
	for (int i = 0; i < 3; i++) {
		gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, false, &result);
		assert_int_equal(result, 0);
		assert_int_equal(rm_count, 1);
	}
	gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, true, &result);
	assert_int_equal(rm_count, 0);
	gp_nvidia_client_gone(CLIENT);
}

/* The program has no descriptor to spare when it makes a context, or has some. */
static void spare(bool some)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = some ? limit.rlim_max : 20;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The agent takes none, and closes nothing without. When there are some it does, by the program's own file. */
static void test_short(void **state)
{
	struct gp_slot *slot;
	int result = 1;

	(void)state;
	spare(false);
	slot = make_context();
	rm_count = 0;
	gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, false, &result);
	assert_true(result < 0 && !rm_count);
	assert_int_equal(gp_fd(GP_NVIDIA_FD + slot->file), -1);
	spare(true);
	gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, false, &result);
	assert_int_equal(result, 0);
	assert_true(gp_fd(GP_NVIDIA_FD + slot->file) >= 0);
	gp_nvidia_change(GP_MECHANISM_CHANNEL, &slot, 1, true, &result);
	assert_int_equal(rm_count, 0);
	gp_nvidia_client_gone(CLIENT);
}

/* The agent asks the driver about the program's first context all the same: what it cannot ask, it would take for a
 * driver that it does not know, and leave alone for good. */
static void test_short_probe(void **state)
{
	const struct gp_slot *slot;

	(void)state;
	gp_nvidia.probed = false;
	spare(false);
	slot = make_context();
	spare(true);
	assert_null(gp_nvidia.refused);
	assert_int_equal(gp_nvidia_group_of(slot)->slice_us, 2048);
	gp_nvidia_client_gone(CLIENT);
}

/* A file that the agent has no descriptor of ends with the program's last one: so do its contexts. */
static void test_short_end(void **state)
{
	(void)state;
	spare(false);
	make_context();
	spare(true);
	close(ctl);
	gp_nvidia_files_tidy();
	assert_int_equal(gp_slot_limit(), 0);
	assert_int_equal(gp_nvidia.lost_files, 0);
}

/* Another thread closes the file while the agent duplicates it. It has looked for the agent's duplicate before there
 * was one, and its close is slow. */
static void race_slow(int fd, bool is_taken)
{
	if (!is_taken)
		closing = gp_nvidia_file_closes((unsigned)fd, (unsigned)fd);
}

static void test_closed_slowly(void **state)
{
	(void)state;
	racing = race_slow;
	make_context();
	racing = NULL;
	syscall(SYS_close, ctl); /* close() is the agent's here */
	gp_nvidia_file_closed(closing);
	gp_nvidia_files_tidy();
	assert_int_equal(gp_slot_limit(), 0);
}

/* Its close is done when the agent has a duplicate and has not noted it. */
static void race_fast(int fd, bool is_taken)
{
	if (!is_taken || fd != ctl)
		return;
	closing = gp_nvidia_file_closes((unsigned)fd, (unsigned)fd);
	syscall(SYS_close, fd);
	gp_nvidia_file_closed(closing);
	racing = NULL;
}

static void test_closed_fast(void **state)
{
	(void)state;
	racing = race_fast;
	make_context();
	gp_nvidia_files_tidy();
	assert_int_equal(gp_slot_limit(), 0);
}

/* The number is another file's before the agent duplicates it: the agent does not hold that one open. */
static void race_other(int fd, bool is_taken)
{
	int pipes[2];

	if (is_taken)
		return;
	racing = NULL;
	assert_int_equal(pipe2(pipes, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(dup2(pipes[1], fd), fd);
	close(pipes[1]);
	closing = (uint32_t)pipes[0];
}

static void test_another_file(void **state)
{
	char byte;

	(void)state;
	racing = race_other;
	make_context();
	close(ctl);
	assert_int_equal(read((int)closing, &byte, 1), 0); /* nobody has its other end */
	close((int)closing);
	gp_nvidia_client_gone(CLIENT);
}

/* The device's file is made anew between the program's start and its first context: the one that the program has open
 * is still the driver's. */
static void test_file_made_anew(void **state)
{
	const struct gp_slot *slot;

	(void)state;
	make(0, CLIENT, GP_RM_CLASS_CLIENT);
	unlink(path);
	slot = make_context();
	assert_true(gp_fd(GP_NVIDIA_FD + slot->file) >= 0);
	gp_nvidia_client_gone(CLIENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
		cmocka_unit_test_setup_teardown(test_again, begin, end),
		cmocka_unit_test_setup_teardown(test_of_no_client, begin, end),
		cmocka_unit_test_setup_teardown(test_bounds, begin, end),
		cmocka_unit_test_setup_teardown(test_goes, begin, end),
		cmocka_unit_test_setup_teardown(test_slice, begin, end),
		cmocka_unit_test_setup_teardown(test_starts, begin, end),
		cmocka_unit_test_setup_teardown(test_closed_twice, begin, end),
		cmocka_unit_test_setup_teardown(test_short, begin, end),
		cmocka_unit_test_setup_teardown(test_short_probe, begin, end),
		cmocka_unit_test_setup_teardown(test_short_end, begin, end),
		cmocka_unit_test_setup_teardown(test_closed_slowly, begin, end),
		cmocka_unit_test_setup_teardown(test_closed_fast, begin, end),
		cmocka_unit_test_setup_teardown(test_another_file, begin, end),
		cmocka_unit_test_setup_teardown(test_file_made_anew, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
