/* SPDX-License-Identifier: MIT */
/* Of the tests of a front end, those that read the driver's files as programs do: from many threads at once, while
 * signals arrive, others rename files, and the files themselves change. What real files never answer, these do not. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/e2e/vgpu_front.h"

#define TREE_KFD     "/sys/class/kfd/kfd"
#define TREE_FILE    TREE_KFD "/topology/nodes/1/properties"
#define TREE_THREADS 4u
#define TREE_TEXT    8192u
#define TREE_CROWD   600u /* more than vgpud asks about at a time (GP_SECCOMP_LENT_MAX) */

static char tree_text[TREE_TEXT]; /* what the file says */

/* Everything there is to read, as a program that takes no excuses. Negative: the error; 0: something else is wrong. */
static ssize_t tree_read(const char *path, char *ret_text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size, total = 0;

	if (fd < 0)
		return -errno;
	do {
		size = read(fd, ret_text + total, TREE_TEXT - 1u - (size_t)total);
		total = size < 0 ? -errno : total + size;
	} while (size > 0);
	close(fd);
	if (total >= 0)
		ret_text[total] = 0;
	return total;
}

/* One round: 0, or a number that says what was wrong. */
static int tree_round(void)
{
	char text[TREE_TEXT], link[128];
	struct stat status;
	ssize_t size = tree_read(TREE_FILE, text);

	if (size <= 0 || strcmp(text, tree_text) != 0)
		return size < 0 ? (int)-size : 1000;
	if (stat(TREE_FILE, &status) < 0 || access(TREE_FILE, R_OK) < 0 ||
	    readlink(TREE_KFD, link, sizeof(link)) <= 0 || lstat(TREE_KFD, &status) < 0)
		return errno;
	return front_entries(TREE_KFD "/topology/nodes") == 2 ? 0 : 1001;
}

static void *tree_reader(void *data)
{
	intptr_t failures = 0;

	for (uintptr_t i = 0; i < (uintptr_t)data; i++) {
		int r = tree_round();

		if (r && !failures++)
			printf("# round %u: %s (%d)\n", (unsigned int)i, strerror(r), r);
	}
	return (void *)failures;
}

static void tree_read_all(uint32_t rounds)
{
	pthread_t threads[TREE_THREADS];
	void *failures;

	for (size_t i = 0; i < TREE_THREADS; i++)
		CLIENT_CHECK(pthread_create(&threads[i], NULL, tree_reader, (void *)(uintptr_t)rounds) == 0);
	for (size_t i = 0; i < TREE_THREADS; i++)
		CLIENT_CHECK(pthread_join(threads[i], &failures) == 0 && !failures);
}

static void on_alarm(int number)
{
	(void)number;
}

static pid_t tree_renamer(const char *folder)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (chdir(folder) < 0 || mkdir("a", 0755) < 0)
			_exit(1);
		for (;;) {
			rename("a", "b");
			rename("b", "a");
		}
	}
	return child;
}

void front_test_tree(void)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART }, before;
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
	char folder[] = "/tmp/vgpu-front-XXXXXX", command[64];
	pid_t renamer;

	CLIENT_CHECK(tree_read(TREE_FILE, tree_text) > 0 && mkdtemp(folder));
	renamer = tree_renamer(folder);
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &timer, NULL);
	tree_read_all(FRONT_ROUNDS / 4u);
	setitimer(ITIMER_REAL, &none, NULL);
	sigaction(SIGALRM, &before, NULL);
	CLIENT_CHECK(renamer > 0 && !kill(renamer, SIGKILL) && waitpid(renamer, NULL, 0) == renamer);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CLIENT_CHECK(system(command) == 0);
	client_result("the driver's files", true);
}

/* Alone: for a node that something else is done to meanwhile. */
int front_tree_reads(void)
{
	struct client client;
	uint32_t failures = 0;

	CLIENT_CHECK(tree_read(TREE_FILE, tree_text) > 0);
	tree_read_all(FRONT_ROUNDS / 2u);
	client_open(&client);
	for (uint32_t i = 0; i < FRONT_ROUNDS; i++)
		failures += front_opens(AT_FDCWD, "/dev/kfd", O_RDWR) != 0 || front_version(client.kfd) != 0;
	CLIENT_CHECK(!failures);
	client_result("reads", true);
	return client_done();
}

/* Many new processes that all begin to read at once, so that vgpud hears of each for the first time. */
int front_tree_crowd(void)
{
	static pid_t children[TREE_CROWD];
	uint32_t failures = 0;
	int start[2] = { -1, -1 }, status; /* without a pipe the children fail */
	char byte;

	CLIENT_CHECK(tree_read(TREE_FILE, tree_text) > 0 && pipe(start) == 0);
	for (size_t i = 0; i < TREE_CROWD; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			close(start[1]);
			_exit(read(start[0], &byte, 1) || tree_round() ? 1 : 0);
		}
		CLIENT_CHECK(children[i] > 0);
	}
	close(start[1]);
	for (size_t i = 0; i < TREE_CROWD; i++)
		failures += waitpid(children[i], &status, 0) != children[i] || status;
	if (failures)
		printf("# %u of %u failed\n", failures, TREE_CROWD);
	CLIENT_CHECK(!failures);
	client_result("a crowd", true);
	return client_done();
}
