/* SPDX-License-Identifier: MIT */
/* A server that does not answer HELLO: the agent keeps its connection, and goes to another server that makes the socket
 * anew at the same path. The agent's thread runs; both servers are this test. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include <gpreempt/wire.h>
#include "agent/agent.h"
#include "agent/sys.h"

static char folder[] = "/tmp/agent-server-XXXXXX";
static sem_t looked;

long __real_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6])
{
	long r = __real_gp_sys_call(number, arguments);

	if (number == SYS_newfstatat && !strcmp((const char *)arguments[1], gp_agent.socket_path))
		sem_post(&looked);
	return r;
}

static int serve(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, gp_agent.socket_path, sizeof(address.sun_path));
	unlink(address.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)) | listen(fd, 4), 0);
	return fd;
}

/* The connection of an agent that has said HELLO. */
static int greeted(int server)
{
	struct gp_wire_hello hello;
	int fd = accept(server, NULL, NULL); /* hanging is the failure, here as below */

	assert_true(fd >= 0);
	assert_int_equal(recv(fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(hello.header.type, GP_WIRE_HELLO);
	return fd;
}

static void test_socket_made_anew(void **state)
{
	int first, second, old, other;
	char byte, path[64];
	pthread_t thread;

	(void)state;
	sem_init(&looked, 0, 0);
	assert_non_null(mkdtemp(folder));
	snprintf(gp_agent.socket_path, sizeof(gp_agent.socket_path), "%s/s", folder);
	snprintf(path, sizeof(path), "%s/other", folder);
	gp_agent.pid = getpid();
	first = serve();
	assert_int_equal(pthread_create(&thread, NULL, gp_thread_run, NULL), 0);
	old = greeted(first);
	sem_wait(&looked); /* before it connected */
	/* Something else happens in the folder: the agent looks, and stays. */
	other = open(path, O_CREAT | O_CLOEXEC, 0600);
	sem_wait(&looked);
	assert_int_equal(recv(old, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	second = serve();
	close(greeted(second));
	assert_int_equal(recv(old, &byte, 1, 0), 0); /* it has left */
	gp_agent.exiting = true;
	gp_thread_wake();
	pthread_join(thread, NULL);
	close(old);
	close(other);
	close(first);
	close(second);
	unlink(path);
	unlink(gp_agent.socket_path);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_socket_made_anew) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
