/* SPDX-License-Identifier: MIT */
/* ioctl() of an application to KFD as it passes the agent: what cannot be understood is the driver's alone, and what
 * would wait for a closed gate finds it open. The driver is this test. */
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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "agent/fds.h"
#include "agent/kfd/kfd.h"
#include "agent/next.h"

static uint32_t forwarded;     /* calls of the application's that reached the driver */
static uint32_t traps;         /* DBG_TRAP of the agent's own */
static uint32_t percent = 100; /* of the queue, as the driver has it */
static uint32_t percent_at_destroy;

int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_ioctl(int fd, unsigned long request, void *arg)
{
	(void)fd;
	(void)arg;
	forwarded++;
	if (_IOC_NR(request) == _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE))
		percent_at_destroy = percent;
	return 0;
}

int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg);
int __wrap_gp_next_own_ioctl(int fd, unsigned long request, void *arg)
{
	(void)fd;
	switch (_IOC_NR(request)) {
	case _IOC_NR(AMDKFD_IOC_GET_VERSION):
		*(struct kfd_ioctl_get_version_args *)arg = (struct kfd_ioctl_get_version_args){ 1, 14 };
		break;
	case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
		percent = ((struct kfd_ioctl_update_queue_args *)arg)->queue_percentage;
		break;
	case GP_KFD_NR_DBG_TRAP: traps++; break;
	default: break;
	}
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
	gp_agent.mechanism = GP_MECHANISM_UPDATE;
	forwarded = traps = 0;
	percent = 100;
	return 0;
}

static int make_queue(int fd)
{
	struct kfd_ioctl_create_queue_args args = { .queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
						    .queue_percentage = 100,
						    .queue_priority = 7,
						    .ring_size = 4096 };

	return gp_kfd_ioctl(fd, AMDKFD_IOC_CREATE_QUEUE, &args);
}

/* A structure that ends where memory does, of a size that the driver may know and we do not. */
static void test_short(void **state)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + 4096, 4096), 0);
	assert_int_equal(
		gp_kfd_ioctl(3, _IOC(_IOC_READ | _IOC_WRITE, 'K', _IOC_NR(AMDKFD_IOC_CREATE_QUEUE), 8), pages + 4088),
		0);
	assert_int_equal(forwarded, 1);
	assert_int_equal(gp_slot_limit(), 0);
	munmap(pages, 4096);
}

static void test_long(void **state)
{
	static uint8_t large[8192];

	(void)state;
	memset(large, 0xaa, sizeof(large));
	assert_int_equal(
		gp_kfd_ioctl(3, _IOC(_IOC_READ | _IOC_WRITE, 'K', _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE), sizeof(large)),
			     large),
		0);
	assert_int_equal(forwarded, 1);
}

/* An address that is none is the driver's to refuse. */
static void test_nowhere(void **state)
{
	(void)state;
	assert_int_equal(gp_kfd_ioctl(3, AMDKFD_IOC_CREATE_QUEUE, (void *)64), 0);
	assert_int_equal(gp_kfd_ioctl(3, AMDKFD_IOC_DESTROY_QUEUE, NULL), 0);
	assert_int_equal(forwarded, 2);
	assert_int_equal(gp_slot_limit(), 0);
}

/* The driver would wait until it is resumed, for ever. */
static void test_destroy(void **state)
{
	struct kfd_ioctl_destroy_queue_args destroy = { 0 };
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), result = 1;
	struct gp_slot *slot = &gp_slots[0];

	(void)state;
	assert_int_equal(make_queue(fd), 0);
	assert_int_equal(gp_slot_limit(), 1);
	gp_kfd_driver.change(GP_MECHANISM_UPDATE, &slot, 1, false, &result);
	assert_int_equal(result, 0);
	assert_int_equal(percent, 0);
	slot->closed = true;
	slot->closed_by = GP_MECHANISM_UPDATE;
	assert_int_equal(gp_kfd_ioctl(fd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), 0);
	assert_int_equal(percent_at_destroy, 100);
	assert_int_equal(gp_slot_limit(), 0);
	close(fd);
}

/* The application debugs itself: its place, until it gives that back. */
static void test_foreign(void **state)
{
	struct gp_kfd_dbg_trap trap = { .pid = (uint32_t)getpid(), .op = GP_KFD_DBG_ENABLE };
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), result = 1, ends[2];
	struct gp_slot *slot = &gp_slots[0];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(gp_fd_take(GP_FD_DEBUG_OUT, ends[0]) | gp_fd_take(GP_FD_DEBUG_IN, ends[1]), 0);
	assert_int_equal(make_queue(fd), 0);
	assert_int_equal(gp_kfd_ioctl(fd, GP_KFD_IOC_DBG_TRAP, &trap), 0);
	gp_kfd_self_change(&slot, 1, false, &result);
	assert_int_equal(result, -EPERM);
	assert_int_equal(traps, 0);
	trap.op = GP_KFD_DBG_DISABLE;
	assert_int_equal(gp_kfd_ioctl(fd, GP_KFD_IOC_DBG_TRAP, &trap), 0);
	gp_kfd_self_change(&slot, 1, false, &result);
	assert_int_equal(result, 0);
	assert_int_not_equal(traps, 0);
	gp_kfd_self_release();
	gp_fds_drop_all();
	close(fd);
}

static struct gp_wire_share shares[64];
static uint32_t share_count;

int __wrap_gp_link_send(const void *message, uint32_t size);
int __wrap_gp_link_send(const void *message, uint32_t size)
{
	if (size == sizeof(shares[0]) && share_count < 64)
		memcpy(&shares[share_count++], message, size);
	return 0;
}

static void told(uint32_t kind, uint64_t key0, uint64_t key1)
{
	assert_int_equal(share_count, 1);
	assert_int_equal(shares[0].header.type, GP_WIRE_SHARE);
	assert_int_equal(shares[0].kind, kind);
	assert_int_equal(shares[0].key[0], key0);
	assert_int_equal(shares[0].key[1], key1);
	share_count = 0;
}

/* Memory for other processes and from them is told by its name, each once; again to another daemon. */
static void test_shares(void **state)
{
	struct gp_kfd_ipc_export export = { .key = { 1, 2, 3, 4 } };
	struct gp_kfd_ipc_import import = { .key = { 5, 6, 7, 8 } };
	char path[] = "/tmp/gp-shares-XXXXXX";
	int file = mkstemp(path), fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct gp_kfd_export_dmabuf given = { .fd = (uint32_t)file };
	struct kfd_ioctl_import_dmabuf_args taken = { .dmabuf_fd = (uint32_t)file };
	struct kfd_ioctl_alloc_memory_of_gpu_args memory = { .flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR };
	struct stat status;
	void *pages;

	(void)state;
	assert_int_equal(ftruncate(file, 4096) | fstat(file, &status) | unlink(path), 0);
	gp_agent.link = GP_LINK_UP;
	gp_agent.version = 3;
	share_count = 0;
	assert_int_equal(gp_kfd_ioctl(fd, _IOWR('K', GP_KFD_NR_IPC_EXPORT, export), &export), 0);
	told(GP_SHARE_KFD_IPC, 1 | 2ull << 32, 3 | 4ull << 32);
	assert_int_equal(gp_kfd_ioctl(fd, _IOWR('K', GP_KFD_NR_IPC_IMPORT, import), &import), 0);
	told(GP_SHARE_KFD_IPC, 5 | 6ull << 32, 7 | 8ull << 32);
	assert_int_equal(gp_kfd_ioctl(fd, _IOWR('K', GP_KFD_NR_EXPORT_DMABUF, given), &given), 0);
	told(GP_SHARE_DMABUF, status.st_dev, status.st_ino);
	assert_int_equal(gp_kfd_ioctl(fd, AMDKFD_IOC_IMPORT_DMABUF, &taken), 0);
	assert_int_equal(share_count, 0);
	/* Pages of the program's own: those of a file that it shares, to read and write. */
	pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	memory.mmap_offset = (uintptr_t)pages;
	assert_int_equal(gp_kfd_ioctl(fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &memory), 0);
	memory.mmap_offset = (uintptr_t)mmap(pages, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
	assert_int_equal(gp_kfd_ioctl(fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &memory), 0);
	assert_int_equal(share_count, 0);
	assert_ptr_equal(mmap(pages, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), pages);
	assert_int_equal(gp_kfd_ioctl(fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &memory), 0);
	assert_int_equal(share_count, 1);
	assert_int_equal(shares[0].kind, GP_SHARE_MEMORY);
	assert_int_equal(shares[0].key[1], status.st_ino);
	share_count = 0;
	gp_share_unsent();
	gp_share_flush();
	assert_int_equal(share_count, 4);
	/* A daemon that does not know the message is not told. */
	share_count = 0;
	gp_agent.version = 2;
	gp_share_unsent();
	gp_share_flush();
	assert_int_equal(share_count, 0);
	gp_share_forget();
	munmap(pages, 4096);
	close(file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_short, begin),   cmocka_unit_test_setup(test_long, begin),
		cmocka_unit_test_setup(test_nowhere, begin), cmocka_unit_test_setup(test_destroy, begin),
		cmocka_unit_test_setup(test_foreign, begin), cmocka_unit_test_setup(test_shares, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
