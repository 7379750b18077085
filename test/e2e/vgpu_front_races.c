/* SPDX-License-Identifier: MIT */
/* Of the tests of a front end, those that use it hard or mean harm: many threads, many opens, paths and descriptors
 * that change during the call, memory that is not there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "test/e2e/vgpu_front.h"

static void *work(void *data)
{
	struct client *client = data;
	intptr_t failures = 0;

	for (uint32_t i = 0; i < 200u; i++) {
		int fd = open(i % 2u ? "/dev/kfd" : "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
		uint32_t id = front_event_make(client);

		failures += fd < 0 || !id || front_event_end(client, id) < 0;
		failures += front_version(fd) != (i % 2u ? 0 : -ENOTTY);
		close(fd);
	}
	return (void *)failures;
}

void front_test_threads(struct client *client)
{
	pthread_t threads[8];
	void *failures;

	for (size_t i = 0; i < 8u; i++)
		CLIENT_CHECK(pthread_create(&threads[i], NULL, work, client) == 0);
	for (size_t i = 0; i < 8u; i++)
		CLIENT_CHECK(pthread_join(threads[i], &failures) == 0 && !failures);
	client_result("threads", true);
}

/* The node's process, from `vgpu ls`, and how many descriptors it holds. */
static uint32_t vgpud_descriptors(const char *vgpu)
{
	const char *name = getenv("VGPU_NAME");
	char command[PATH_MAX + 64], line[256], found[128], path[64];
	uint32_t count = 0;
	FILE *stream;
	int pid;

	snprintf(command, sizeof(command), "'%s' ls", vgpu);
	stream = popen(command, "r");
	while (stream && fgets(line, sizeof(line), stream))
		if (sscanf(line, "%127s %d", found, &pid) == 2 && name && !strcmp(found, name)) {
			snprintf(path, sizeof(path), "/proc/%d/fd", pid);
			count = front_entries(path);
		}
	if (stream)
		pclose(stream);
	return count;
}

/* Opened and closed for ever: nothing is used up, here or there. */
void front_test_many(const char *vgpu)
{
	struct rlimit limit, low;
	uint32_t failures = 0, before = vgpud_descriptors(vgpu), after;
	int fd;

	for (uint32_t i = 0; i < FRONT_ROUNDS; i++)
		failures += front_opens(AT_FDCWD, i % 2u ? "/dev/kfd" : "/dev/dri/renderD128", O_RDWR) != 0;
	CLIENT_CHECK(failures == 0);
	after = vgpud_descriptors(vgpu);
	if (!before || after > before + 200u)
		printf("# vgpud has %u descriptors, had %u\n", after, before);
	CLIENT_CHECK(before && after <= before + 200u);
	/* No number is free: the error is the caller's own, and the next open is as good as the first. */
	getrlimit(RLIMIT_NOFILE, &limit);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	low = (struct rlimit){ (rlim_t)fd, limit.rlim_max };
	close(fd);
	setrlimit(RLIMIT_NOFILE, &low);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/kfd", O_RDWR) == -EMFILE);
	setrlimit(RLIMIT_NOFILE, &limit);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/kfd", O_RDWR) == 0);
	client_result("many opens", true);
}

static volatile bool racing;
static char racing_path[] = "/dev/kfd";
static volatile int racing_fd;

static void *change_path(void *data)
{
	volatile char *letter = data;

	while (racing) {
		*letter = 'x';
		*letter = 'k';
	}
	return NULL;
}

/* Another thread changes the path while it is being judged: the file is the node's, or there is none. */
void front_test_path_race(void)
{
	uint32_t good = 0, missing = 0, wrong = 0;
	pthread_t thread;

	racing = true;
	pthread_create(&thread, NULL, change_path, &racing_path[5]);
	for (uint32_t i = 0; i < FRONT_ROUNDS; i++) {
		int fd = open(racing_path, O_RDWR | O_CLOEXEC);

		if (fd < 0 && errno == ENOENT)
			missing++;
		else if (front_version(fd) == 0)
			good++;
		else
			wrong++;
		if (fd >= 0)
			close(fd);
	}
	racing = false;
	pthread_join(thread, NULL);
	printf("# %u opened, %u not there, %u wrong\n", good, missing, wrong);
	CLIENT_CHECK(!wrong && good + missing == FRONT_ROUNDS);
	client_result("a path that changes", true);
}

static void *change_fd(void *data)
{
	(void)data;
	while (racing) {
		int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

		dup2(fd, racing_fd);
		close(fd);
		usleep(20);
		close(racing_fd);
	}
	return NULL;
}

/* Another thread closes and replaces the descriptor under a call. */
void front_test_fd_race(struct client *client)
{
	uint32_t good = 0, closed = 0, wrong = 0;
	pthread_t thread;

	racing_fd = 600;
	racing = true;
	pthread_create(&thread, NULL, change_fd, NULL);
	for (uint32_t i = 0; i < FRONT_ROUNDS; i++) {
		int r = front_version(racing_fd);

		good += r == 0;
		closed += r == -EBADF;
		wrong += r != 0 && r != -EBADF;
	}
	racing = false;
	pthread_join(thread, NULL);
	printf("# %u answered, %u closed, %u wrong\n", good, closed, wrong);
	CLIENT_CHECK(!wrong && front_version(client->kfd) == 0);
	client_result("a descriptor that changes", true);
}

/* Arguments that are not there, or may not be written; a device file made unreadable by its holder. */
void front_test_bad_memory(struct client *client, bool lent)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CLIENT_CHECK(ioctl(client->kfd, AMDKFD_IOC_GET_VERSION, (void *)16) < 0 && errno == EFAULT);
	/* Through lent memory the kernel writes even what its owner may not. */
	if (!lent)
		CLIENT_CHECK(ioctl(client->kfd, AMDKFD_IOC_GET_VERSION, page) < 0 && errno == EFAULT);
	CLIENT_CHECK(ioctl(client->kfd, AMDKFD_IOC_CREATE_EVENT, (void *)16) < 0 && errno == EFAULT);
	munmap(page, 4096);
	fchmod(client->kfd, 0);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/kfd", O_RDWR) == 0 && front_version(client->kfd) == 0);
	CLIENT_CHECK(ftruncate(client->kfd, 0) < 0 || front_version(client->kfd) == 0);
	client_result("bad memory", true);
}

/* On a node that may have few descriptors: one that opens the device again and again is refused, and hinders nobody
 * from reading the driver's files. */
int front_hoard(void)
{
	uint32_t count = 0;
	int r = 0;

	while (r >= 0 && count < 5000u) {
		r = open(count % 2u ? "/dev/kfd" : "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
		count += r >= 0;
	}
	CLIENT_CHECK(r < 0 && errno == ENFILE);
	printf("# %u opened\n", count);
	for (uint32_t i = 0; i < 100u; i++)
		CLIENT_CHECK(front_opens(AT_FDCWD, "/sys/class/kfd/kfd/topology/nodes/1/properties", O_RDONLY) == 0);
	CLIENT_CHECK(system("cat /sys/class/kfd/kfd/topology/nodes/1/properties >/dev/null") == 0);
	client_result("hoarding", true);
	return client_done();
}
