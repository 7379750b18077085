/* SPDX-License-Identifier: MIT */
/* User queues of DRM as they pass the agent: numbers are each open file's own, descriptors are duplicated and closed.
 * The driver is this test; two GPUs, whose render nodes are /dev/null and /dev/zero. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/driver.h"
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/sys.h"

#define GPU_NULL 11u
#define GPU_ZERO 22u

static bool forbids_kcmp;
static uint32_t next_id, topology_reads;
static int free_result;

long __real_gp_sys_call(long number, const long args[6]);
long __wrap_gp_sys_call(long number, const long args[6]);

/* The files of the topology as a machine with two GPUs has them: a pipe with the text of each. */
static long open_topology(const char *path)
{
	static const char *const texts[][2] = { { "0\n", "" },
						{ "11\n", "simd_count 1\ndrm_render_minor 3\n" },
						{ "22\n", "simd_count 1\ndrm_render_minor 5\n" } };
	uint32_t node = (uint32_t)atoi(path);
	const char *text;
	int ends[2];

	topology_reads++;
	if (node > 2)
		return -ENOENT;
	text = texts[node][!strstr(path, "gpu_id")];
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	syscall(SYS_close, ends[1]);
	return ends[0];
}

long __wrap_gp_sys_call(long number, const long args[6])
{
	static const char topology[] = "/sys/class/kfd/kfd/topology/nodes/";

	if (number == SYS_kcmp && forbids_kcmp)
		return -EPERM;
	if (number == SYS_openat && !strncmp((const char *)args[1], topology, sizeof(topology) - 1))
		return open_topology((const char *)args[1] + sizeof(topology) - 1);
	return __real_gp_sys_call(number, args);
}

int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg)
{
	union gp_drm_userq *args = arg;

	(void)fd;
	(void)request;
	if (args->in.op == GP_DRM_USERQ_CREATE)
		args->out.queue_id = next_id;
	else if (free_result) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg)
{
	struct gp_drm_version *version = arg;

	(void)fd;
	if (request != GP_DRM_IOC_VERSION)
		return 0;
	memcpy((void *)(uintptr_t)version->name, "amdgpu", 6);
	version->name_len = 6;
	return 0;
}

/* No thread: nothing happens but what a test does. */
void __wrap_gp_agent_start(void);
void __wrap_gp_agent_start(void)
{
}

static int begin(void **state)
{
	(void)state;
	setenv(GP_WIRE_SOCKET_ENV, "/nonexistent/gpreempt.sock", 1);
	assert_true(gp_agent_ready());
	gp_slots_reset();
	gp_kfd = (struct gp_kfd){ .epoch = gp_agent.epoch };
	gp_agent.driver = NULL;
	gp_agent.link = GP_LINK_DOWN;
	forbids_kcmp = false;
	free_result = 0;
	return 0;
}

/* amd_queue_t, as far as it shows that a queue is ROCr's. */
static struct fake_queue {
	_Alignas(64) uint64_t words[32];
} fakes[100];

static void make(int fd, uint32_t id, struct fake_queue *fake)
{
	union gp_drm_userq args = { .in = { .op = GP_DRM_USERQ_CREATE,
					    .ip_type = GP_DRM_IP_COMPUTE,
					    .queue_va = 0x10000,
					    .queue_size = 4096,
					    .rptr_va = (uintptr_t)&fake->words[16],
					    .wptr_va = (uintptr_t)&fake->words[7] } };

	fake->words[1] = 0x10000;
	next_id = id;
	assert_int_equal(gp_driver_ioctl(fd, GP_DRM_IOC_USERQ, &args, 'd'), 0);
}

static int release(int fd, uint32_t id)
{
	union gp_drm_userq args = { .in = { .op = GP_DRM_USERQ_FREE, .queue_id = id } };

	return gp_driver_ioctl(fd, GP_DRM_IOC_USERQ, &args, 'd');
}

/* Slots that are in use, as bits; they are filled from the first on. */
static uint32_t used(void)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		bits |= (uint32_t)gp_slots[i].used << i;
	return bits;
}

static int node(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* The first queue of each open file has the same number: each has its own slot, GPU and name, and each FREE ends its
 * own. KFD's topology is not read for that. */
static void files_have_their_own_numbers(void **state)
{
	int first = node("/dev/null"), second = node("/dev/null"), other = node("/dev/zero");
	uint32_t reads;

	(void)state;
	make(first, 1, &fakes[0]);
	make(second, 1, &fakes[1]);
	make(other, 1, &fakes[2]);
	make(first, 2, &fakes[3]);
	assert_int_equal(used(), 0xf);
	assert_int_equal(gp_slots[0].gpu_id, GPU_NULL);
	assert_int_equal(gp_slots[1].gpu_id, GPU_NULL);
	assert_int_equal(gp_slots[2].gpu_id, GPU_ZERO);
	assert_true(gp_slots[0].queue_id != gp_slots[1].queue_id && gp_slots[1].queue_id != gp_slots[2].queue_id &&
		    gp_slots[0].queue_id != gp_slots[2].queue_id);
	assert_int_equal(gp_slots[3].queue_id, gp_slots[0].queue_id + 1);
	assert_int_equal(gp_kfd.userq_count, 4);
	reads = topology_reads;
	assert_int_equal(release(second, 1), 0);
	assert_int_equal(used(), 0xd);
	assert_int_equal(release(other, 1), 0);
	assert_int_equal(used(), 0x9);
	assert_int_equal(release(first, 1), 0);
	assert_int_equal(used(), 0x8);
	assert_int_equal(topology_reads, reads);
	close(first);
	close(second);
	close(other);
}

/* A duplicate is the same file, whichever of the two is closed first. */
static void duplicates_are_one_file(void **state)
{
	int first = node("/dev/null"), second = node("/dev/null"), copy = dup(first);
	long thread = syscall(SYS_gettid);

	(void)state;
	if (syscall(SYS_kcmp, thread, thread, 0, first, second) < 0) {
		print_message("not possible here: kcmp\n");
		skip();
	}
	make(first, 1, &fakes[0]);
	make(second, 1, &fakes[1]);
	make(copy, 2, &fakes[2]);
	assert_int_equal(gp_slots[2].queue_id, gp_slots[0].queue_id + 1);
	assert_int_equal(release(copy, 1), 0);
	assert_int_equal(used(), 0x6);
	make(first, 1, &fakes[0]);
	assert_int_equal(used(), 0x7);
	close(first);
	assert_int_equal(release(copy, 1), 0);
	assert_int_equal(used(), 0x6);
	assert_int_equal(release(second, 1), 0);
	assert_int_equal(used(), 0x4);
	close(second);
	close(copy);
}

/* A number that was closed and is another file now does not lead to the old one's queues, which may still be there. */
static void a_descriptor_that_is_used_again_is_another_file(void **state)
{
	int first = node("/dev/null"), again;

	(void)state;
	make(first, 1, &fakes[0]);
	close(first);
	again = node("/dev/null");
	assert_int_equal(again, first);
	make(again, 1, &fakes[1]);
	assert_int_equal(used(), 0x3);
	assert_int_equal(release(again, 1), 0);
	assert_int_equal(used(), 0x1);
	close(again);
}

/* Closed by a system call of the application's own: a number that the driver gives out twice on one file, for all that
 * is known, shows that the first queue is gone. */
static void a_number_given_out_twice_is_the_later_one(void **state)
{
	int first = node("/dev/null"), again;

	(void)state;
	make(first, 1, &fakes[0]);
	syscall(SYS_close, first);
	again = node("/dev/null");
	assert_int_equal(again, first);
	make(again, 1, &fakes[1]);
	assert_int_equal(used(), 0x1);
	assert_int_equal(gp_slots[0].read_pointer, (uintptr_t)&fakes[1].words[16]);
	assert_int_equal(gp_kfd.userq_count, 1);
	close(again);
}

/* The memory of a queue that was closed with its file becomes that of a queue of another GPU: its doorbells are the new
 * one's. */
static void memory_of_a_closed_file_is_another_queues(void **state)
{
	int first = node("/dev/null"), other;

	(void)state;
	make(first, 1, &fakes[0]);
	close(first);
	other = node("/dev/zero");
	make(other, 1, &fakes[0]);
	assert_int_equal(__builtin_popcount(used()), 1);
	assert_int_equal(gp_slots[__builtin_ctz(used())].gpu_id, GPU_ZERO);
	assert_int_equal(gp_kfd.userq_count, 1);
	close(other);
}

/* A program that opens, makes a queue and closes again and again: each queue is kept track of under a name of its own.
 * A duplicate may keep the old ones alive, so none is forgotten. */
static void closed_files_make_room(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		int fd = node("/dev/null");

		make(fd, 1, &fakes[i]);
		close(fd);
		assert_int_equal(gp_slot_limit(), i + 1);
		assert_int_equal(gp_slots[i].read_pointer, (uintptr_t)&fakes[i].words[16]);
		for (uint32_t k = 0; k < i; k++)
			assert_true(gp_slots[k].used && gp_slots[k].queue_id != gp_slots[i].queue_id);
	}
	assert_int_equal(gp_kfd.userq_count, 100);
}

/* One that is not ROCr's: its doorbells are never seen. */
static void make_blind(int fd, uint32_t id)
{
	union gp_drm_userq args = {
		.in = { .op = GP_DRM_USERQ_CREATE, .ip_type = GP_DRM_IP_DMA, .queue_va = 0x20000, .queue_size = 4096 }
	};

	next_id = id;
	assert_int_equal(gp_driver_ioctl(fd, GP_DRM_IOC_USERQ, &args, 'd'), 0);
}

/* All slots are taken. Those of closed files whose queues nobody can ring make room: blind ones, and those whose memory
 * is gone. One with a doorbell that is withheld does not, nor one whose file is open or whose memory is there. */
static void dead_queues_make_room(void **state)
{
	size_t size = (GP_WIRE_QUEUE_MAX * sizeof(struct fake_queue) + 0xfff) & ~0xfffull;
	struct fake_queue *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int open_file = node("/dev/null"), fd;

	(void)state;
	assert_true(memory != MAP_FAILED);
	make(open_file, 1, &memory[0]);
	for (uint32_t i = 1; i < GP_WIRE_QUEUE_MAX; i++) {
		fd = node("/dev/null");
		if (i == 5)
			make_blind(fd, 1);
		else
			make(fd, 1, i == 4 ? &fakes[0] : &memory[i]);
		close(fd);
	}
	fd = node("/dev/null");
	make(fd, 1, &fakes[1]); /* the blind one */
	assert_int_equal(gp_slots[5].read_pointer, (uintptr_t)&fakes[1].words[16]);
	make(fd, 2, &fakes[2]); /* there is no room */
	for (uint32_t i = 0; i < GP_WIRE_QUEUE_MAX; i++)
		assert_true(gp_slots[i].used && gp_slots[i].read_pointer != (uintptr_t)&fakes[2].words[16]);
	gp_slot_doorbell(&gp_slots[3])->withheld = 1;
	munmap(memory, size);
	make(fd, 2, &fakes[2]);
	assert_int_equal(gp_slots[1].read_pointer, (uintptr_t)&fakes[2].words[16]);
	assert_int_equal(used(), 1u << 0 | 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5);
	assert_int_equal(gp_kfd.userq_count, 5);
	gp_slot_doorbell(&gp_slots[3])->withheld = 0;
	close(fd);
	close(open_file);
}

/* Where the kernel does not compare files, a duplicate's FREE finds the only queue that can be meant, and no other. */
static void files_that_cannot_be_compared(void **state)
{
	int first = node("/dev/null"), second = node("/dev/null"), copy = dup(first), other = node("/dev/zero");

	(void)state;
	forbids_kcmp = true;
	make(first, 1, &fakes[0]);
	assert_int_equal(release(other, 1), 0); /* the driver's affair */
	assert_int_equal(used(), 0x1);
	assert_int_equal(release(copy, 1), 0);
	assert_int_equal(used(), 0);
	make(first, 1, &fakes[0]);
	make(second, 1, &fakes[1]);
	assert_int_equal(used(), 0x3);
	assert_int_equal(release(copy, 1), 0);
	assert_int_equal(used(), 0x3);
	assert_int_equal(release(second, 1), 0);
	assert_int_equal(used(), 0x1);
	close(first);
	close(second);
	close(copy);
	close(other);
}

/* A FREE that the driver refuses leaves the queue where it is. */
static void a_refused_free_changes_nothing(void **state)
{
	int first = node("/dev/null");

	(void)state;
	make(first, 1, &fakes[0]);
	free_result = -EINVAL;
	assert_int_equal(release(first, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(used(), 0x1);
	assert_false(gp_slots[0].dying);
	assert_int_equal(gp_kfd.userq_count, 1);
	close(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(files_have_their_own_numbers, begin),
		cmocka_unit_test_setup(duplicates_are_one_file, begin),
		cmocka_unit_test_setup(a_descriptor_that_is_used_again_is_another_file, begin),
		cmocka_unit_test_setup(a_number_given_out_twice_is_the_later_one, begin),
		cmocka_unit_test_setup(memory_of_a_closed_file_is_another_queues, begin),
		cmocka_unit_test_setup(closed_files_make_room, begin),
		cmocka_unit_test_setup(dead_queues_make_room, begin),
		cmocka_unit_test_setup(files_that_cannot_be_compared, begin),
		cmocka_unit_test_setup(a_refused_free_changes_nothing, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
