/* SPDX-License-Identifier: MIT */
/* Opening what lies in the store of the virtual node: what the kernel says of the same names where the folder is the
 * root, links and dots included; and never EAGAIN, whatever is renamed meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "vgpu/files/store.h"

#define ROUNDS 30000u

static struct gp_vgpu_store store;

static void put_file(const char *name, const char *text)
{
	int fd = openat(store.fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int setup(void **state)
{
	static const char *const folders[] = { "sys", "sys/class", "sys/class/kfd", "sys/devices", "sys/devices/kfd" };
	static const char *const links[][2] = {
		{ "../../devices/kfd", "sys/class/kfd/kfd" },
		{ "/sys/devices/kfd", "sys/class/kfd/absolute" },
		{ "kfd/../same", "sys/class/kfd/twice" },
		{ "loop", "sys/class/kfd/loop" },
		{ "../../../../../../sys", "out" },
		{ "sys/devices/nothing", "dangling" },
		{ "/", "root" },
		{ "kfd", "sys/devices/same" },
		{ "kfd/", "sys/class/kfd/slash" },
	};

	(void)state;
	snprintf(store.path, sizeof(store.path), "/tmp/vgpu-test-XXXXXX");
	if (!mkdtemp(store.path))
		return -1;
	store.fd = open(store.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		mkdirat(store.fd, folders[i], 0755);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		assert_int_equal(symlinkat(links[i][0], store.fd, links[i][1]), 0);
	put_file("sys/devices/kfd/properties", "known");
	put_file("sys/devices/kfd/.a..b", "known");
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	close(store.fd);
	snprintf(command, sizeof(command), "rm -r '%s'", store.path);
	return system(command);
}

/* 0: the file's text is there; otherwise the error, or 1 for anything else that was opened. */
static int judge(int fd)
{
	char text[8] = "";
	ssize_t size;

	if (fd < 0)
		return fd;
	size = read(fd, text, sizeof(text) - 1u);
	close(fd);
	return size == 5 && !strcmp(text, "known") ? 0 : 1;
}

/* Whatever the kernel says of it, we say. */
static int opens(const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags, .resolve = RESOLVE_IN_ROOT };
	int r = judge(gp_store_open(&store, path, flags)), fd;

	do
		fd = (int)syscall(SYS_openat2, store.fd, *path ? path : "/", &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN);
	assert_int_equal(r, judge(fd < 0 ? -errno : fd));
	return r;
}

static void test_links(void **state)
{
	(void)state;
	assert_int_equal(opens("sys/devices/kfd/properties", O_RDONLY), 0);
	assert_int_equal(opens("sys/class/kfd/kfd/properties", O_RDONLY), 0);
	assert_int_equal(opens("sys/class/kfd/kfd/.a..b", O_RDONLY), 0);
	assert_int_equal(opens("sys/class/kfd/absolute/properties", O_RDONLY), 0);
	assert_int_equal(opens("sys/class/kfd/slash/properties", O_RDONLY), 0);
	assert_int_equal(opens("out/class/kfd/kfd/properties", O_RDONLY), 0);
	assert_int_equal(opens("root/root/sys/devices/kfd/properties", O_RDONLY), 0);
	/* By the folder that the link leads to, not by its name. */
	assert_int_equal(opens("sys/class/kfd/twice/properties", O_RDONLY), 0);
	assert_int_equal(opens("sys/class/kfd/kfd", O_RDONLY), 1);
	assert_int_equal(opens("sys/class/kfd/kfd/", O_RDONLY), 1);
	assert_int_equal(opens("", O_RDONLY), 1);
	assert_int_equal(opens("root", O_RDONLY), 1);
}

static void test_errors(void **state)
{
	char path[5000];

	(void)state;
	assert_int_equal(opens("sys/class/kfd/kfd/nothing", O_RDONLY), -ENOENT);
	assert_int_equal(opens("dangling", O_RDONLY), -ENOENT);
	assert_int_equal(opens("sys/class/kfd/loop", O_RDONLY), -ELOOP);
	assert_int_equal(opens("sys/class/kfd/loop/x", O_RDONLY), -ELOOP);
	assert_int_equal(opens("sys/class/kfd/kfd", O_RDONLY | O_NOFOLLOW), -ELOOP);
	assert_int_equal(opens("sys/class/kfd/kfd/properties", O_RDONLY | O_NOFOLLOW), 0);
	assert_int_equal(opens("sys/class/kfd/kfd/properties/", O_RDONLY), -ENOTDIR);
	assert_int_equal(opens("sys/class/kfd/kfd/properties/x", O_RDONLY), -ENOTDIR);
	assert_int_equal(opens("sys/class/kfd/kfd/properties", O_RDONLY | O_DIRECTORY), -ENOTDIR);
	memset(path, 'x', sizeof(path));
	memcpy(path, "root/", 5);
	path[sizeof(path) - 1u] = 0;
	assert_int_equal(opens(path, O_RDONLY), -ENAMETOOLONG);
	/* Long, though no name in it is. */
	for (size_t i = 0; i + 5u < sizeof(path); i += 5u)
		memcpy(path + i, "root/", 6);
	assert_int_equal(opens(path, O_RDONLY), -ENAMETOOLONG);
	path[4000] = 0;
	assert_int_equal(opens(path, O_RDONLY), -ELOOP);
}

/* The link itself, where it is asked for. */
static void test_nofollow(void **state)
{
	struct stat status;
	int fd = gp_store_open(&store, "sys/class/kfd/kfd", O_PATH | O_NOFOLLOW);

	(void)state;
	assert_true(fd >= 0 && fstat(fd, &status) == 0 && S_ISLNK(status.st_mode));
	close(fd);
	fd = gp_store_open(&store, "sys/class/kfd/kfd/", O_PATH | O_NOFOLLOW);
	assert_true(fd >= 0 && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode));
	close(fd);
}

/* The n-th processor that we may use, where there are as many: a new process would long stay on its parent's, and the
 * two take turns there. */
static void stay_on(uint32_t number)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(all), &all);
	for (uint32_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all) && !number--)
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static pid_t rename_start(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		stay_on(1);
		for (;;) {
			renameat(store.fd, "a", store.fd, "b");
			renameat(store.fd, "b", store.fd, "a");
		}
	}
	return child;
}

static void test_renames(void **state)
{
	uint32_t failures = 0;
	pid_t child;

	(void)state;
	put_file("a", "");
	child = rename_start();
	assert_true(child > 0);
	stay_on(0);
	for (uint32_t i = 0; i < ROUNDS; i++)
		failures += judge(gp_store_open(&store, "sys/class/kfd/kfd/properties", O_RDONLY)) != 0;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(failures, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_nofollow),
		cmocka_unit_test(test_renames),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
