/* SPDX-License-Identifier: MIT */
/* Files that do not close hold up their own user's, and nobody else's. close() is this test's. */
#include <fcntl.h>
#include <limits.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/closer.h"

#define STICKY       40 /* more than there are threads */
#define FINE         3
#define USER_THREADS 4 /* for one user's files */

static sem_t let_go, asked, closed;
static sem_t memory_go;
static void *sticky;   /* memory whose file somebody has locked */
static int first_fine; /* descriptors from here on close at once */

int close(int fd)
{
	int r;

	sem_post(&asked);
	if (fd < first_fine)
		sem_wait(&let_go);
	r = (int)syscall(SYS_close, fd);
	sem_post(&closed);
	return r;
}

int madvise(void *memory, size_t size, int advice)
{
	if (memory == __atomic_load_n(&sticky, __ATOMIC_SEQ_CST))
		while (sem_wait(&memory_go)) {}
	return (int)syscall(SYS_madvise, memory, size, advice);
}

static void *map(int *ret_fd)
{
	char *memory;

	*ret_fd = memfd_create("memory", MFD_CLOEXEC);
	assert_int_equal(ftruncate(*ret_fd, 4096), 0);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	memory[0] = 1;
	return memory;
}

static blkcnt_t blocks(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_blocks;
}

/* Memory whose user holds the lock of its file is not waited for, and counts as his; another user's is given back. */
static void test_memory(void **state)
{
	int fds[2];
	void *first = map(&fds[0]), *second = map(&fds[1]);

	(void)state;
	__atomic_store_n(&sticky, first, __ATOMIC_SEQ_CST);
	gp_unmap_elsewhere(first, 4096, 1001);
	gp_unmap_elsewhere(second, 4096, 1002);
	while (gp_unmap_pending_of(1002))
		usleep(1000);
	assert_int_equal(blocks(fds[1]), 0);
	assert_int_not_equal(blocks(fds[0]), 0);
	assert_int_equal(gp_unmap_pending_of(1001), 1);
	assert_int_equal(gp_close_pending(), 0);
	sem_post(&memory_go);
	while (gp_unmap_pending())
		usleep(1000);
	assert_int_equal(blocks(fds[0]), 0);
	__atomic_store_n(&sticky, NULL, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++)
		syscall(SYS_close, fds[i]);
}

static void test_users(void **state)
{
	int fds[STICKY + FINE];

	(void)state;
	for (int i = 0; i < STICKY + FINE; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	first_fine = fds[STICKY];
	for (int i = 0; i < STICKY; i++)
		gp_close_elsewhere(fds[i], 1001);
	/* The last of those that wait goes, each time, and the next one comes after those that stay. */
	for (int i = STICKY; i < STICKY + FINE; i++) {
		gp_close_elsewhere(fds[i], 1002);
		sem_wait(&closed); /* hanging is the failure */
		while (gp_close_pending_of(1002))
			usleep(1000);
	}
	assert_int_equal(gp_close_pending_of(1001), STICKY);
	assert_int_equal(gp_close_pending(), STICKY);
	for (int i = 0; i < STICKY; i++)
		sem_post(&let_go);
	for (int i = 0; i < STICKY; i++)
		sem_wait(&closed);
	while (gp_close_pending())
		usleep(1000);
	for (int i = 0; i < STICKY + FINE; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
}

/* A thread that is to end with a file has no other file of the process, though the file hangs. */
static void test_ends(void **state)
{
	int fds[GP_CLOSE_USER_MAX + 1], ends[2];
	char byte;

	(void)state;
	while (!sem_trywait(&asked)) {}
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	first_fine = INT_MAX;
	for (uint32_t i = 0; i <= GP_CLOSE_USER_MAX; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		gp_close_elsewhere(fds[i], 1003);
	}
	for (int i = 0; i < USER_THREADS + 1; i++)
		sem_wait(&asked); /* the last has a thread that is to end */
	syscall(SYS_close, ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	assert_int_equal(gp_close_pending_of(1003), GP_CLOSE_USER_MAX + 1);
	for (uint32_t i = 0; i <= GP_CLOSE_USER_MAX; i++)
		sem_post(&let_go);
	while (gp_close_pending())
		usleep(1000);
	for (uint32_t i = 0; i <= GP_CLOSE_USER_MAX; i++)
		assert_int_equal(fcntl(fds[i], F_GETFD), -1);
	syscall(SYS_close, ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_users), cmocka_unit_test(test_memory),
					    cmocka_unit_test(test_ends) };

	sem_init(&let_go, 0, 0);
	sem_init(&asked, 0, 0);
	sem_init(&closed, 0, 0);
	sem_init(&memory_go, 0, 0);
	gp_close_prepare();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
