/* SPDX-License-Identifier: MIT */
/* Files that do not close hold up their own user's, and nobody else's. close() is this test's. */
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/closer.h"

#define STICKY 40 /* more than there are threads */
#define FINE   3

static sem_t let_go, closed;
static int first_fine; /* descriptors from here on close at once */

int close(int fd)
{
	int r;

	if (fd < first_fine)
		sem_wait(&let_go);
	r = (int)syscall(SYS_close, fd);
	sem_post(&closed);
	return r;
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_users) };

	sem_init(&let_go, 0, 0);
	sem_init(&closed, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
