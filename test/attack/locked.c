/* SPDX-License-Identifier: MIT */
/* A process whose memory takes seconds to read, because its threads hold the lock of it, and which connects all the
 * time, so that the daemon looks whose it is. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/attack/attack.h"

#define LOCKED_SIZE    ((size_t)512 << 20) /* in small pages: a fork copies the tables of as many */
#define LOCKED_THREADS 8u
#define LOCKED_US      20000u

static void *locked_fork(void *unused)
{
	(void)unused;
	while (attack_now_ns() < attack.end_ns) {
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

		if (!child)
			syscall(SYS_exit_group, 0);
		if (child > 0)
			waitpid(child, NULL, 0);
	}
	return NULL;
}

void attack_locked(void)
{
	char *memory = mmap(NULL, LOCKED_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t threads[LOCKED_THREADS];
	uint32_t count = 0;

	if (memory == MAP_FAILED)
		return;
	madvise(memory, LOCKED_SIZE, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < LOCKED_SIZE; at += 4096)
		memory[at] = 1;
	while (count < LOCKED_THREADS && !pthread_create(&threads[count], NULL, locked_fork, NULL))
		count++;
	while (attack_now_ns() < attack.end_ns) {
		attack_hello(&attack.clients[0], 0);
		attack_leave(&attack.clients[0]);
		usleep(LOCKED_US);
	}
	while (count)
		pthread_join(threads[--count], NULL);
}
