/* SPDX-License-Identifier: MIT */
/* Servers that do not answer HELLO, that end, and that have no room for one more connection: the agent keeps its
 * connection while there is no other server, and finds each later one. The agent's thread runs, without a guard; the
 * servers are this test. */
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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include <gpreempt/wire.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/sys.h"

static char folder[32], inner[48];
static pthread_t thread;
static sem_t looked; /* at the socket's file */
static sem_t tried;  /* to connect */
static sem_t slept;  /* without an end */
static bool hurries; /* the agent's waits end at once; atomic */
static uint64_t ahead_ns;

uint64_t __real_gp_sys_now_ns(void);
uint64_t __wrap_gp_sys_now_ns(void);
uint64_t __wrap_gp_sys_now_ns(void)
{
	return __real_gp_sys_now_ns() + __atomic_load_n(&ahead_ns, __ATOMIC_ACQUIRE);
}

void __wrap_gp_guard_start(void);
void __wrap_gp_guard_start(void)
{
}

long __real_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6]);
long __wrap_gp_sys_call(long number, const long arguments[6])
{
	const struct timespec *wait = number == SYS_ppoll ? (const struct timespec *)arguments[2] : NULL;
	long at_once[6], r;

	if (number == SYS_ppoll && !wait)
		sem_post(&slept);
	if (!wait || !__atomic_load_n(&hurries, __ATOMIC_ACQUIRE)) {
		r = __real_gp_sys_call(number, arguments);
	} else {
		memcpy(at_once, arguments, sizeof(at_once));
		at_once[2] = (long)&(struct timespec){ 0 };
		r = __real_gp_sys_call(number, at_once);
		if (!r)
			__atomic_fetch_add(&ahead_ns, (uint64_t)wait->tv_sec * 1000000000u + (uint64_t)wait->tv_nsec,
					   __ATOMIC_RELEASE);
	}
	if (number == SYS_newfstatat && !strcmp((const char *)arguments[1], gp_agent.socket_path))
		sem_post(&looked);
	if (number == SYS_connect)
		sem_post(&tried);
	return r;
}

static void hurry(bool now)
{
	__atomic_store_n(&hurries, now, __ATOMIC_RELEASE);
	gp_thread_wake(); /* out of a wait that began before */
}

static int begin(void **state)
{
	(void)state;
	sem_init(&looked, 0, 0);
	sem_init(&tried, 0, 0);
	sem_init(&slept, 0, 0);
	snprintf(folder, sizeof(folder), "/tmp/agent-server-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(inner, sizeof(inner), "%s/inner", folder);
	assert_int_equal(mkdir(inner, 0700), 0);
	snprintf(gp_agent.socket_path, sizeof(gp_agent.socket_path), "%s/s", inner);
	gp_agent.pid = getpid();
	gp_agent.exiting = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	hurry(false);
	gp_agent.exiting = true;
	gp_thread_wake();
	pthread_join(thread, NULL);
	gp_link_down("end of a test");
	gp_fds_drop_all();
	unlink(gp_agent.socket_path);
	assert_int_equal(rmdir(inner) | rmdir(folder), 0);
	return 0;
}

static void start(void)
{
	assert_int_equal(pthread_create(&thread, NULL, gp_thread_run, NULL), 0);
}

static int serve_at(const char *path, int queue)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(address.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)) | listen(fd, queue), 0);
	return fd;
}

static int serve(int queue)
{
	return serve_at(gp_agent.socket_path, queue);
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

	(void)state;
	snprintf(path, sizeof(path), "%s/other", inner);
	first = serve(4);
	start();
	old = greeted(first);
	sem_wait(&looked); /* before it connected */
	/* Something else happens in the folder: the agent looks, and stays. */
	other = open(path, O_CREAT | O_CLOEXEC, 0600);
	sem_wait(&looked);
	assert_int_equal(recv(old, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	second = serve(4);
	close(greeted(second));
	assert_int_equal(recv(old, &byte, 1, 0), 0); /* it has left */
	close(old);
	close(other);
	close(first);
	close(second);
	unlink(path);
}

/* Serves until the agent waits for a change of the socket's folder, and then once more. */
static void serve_twice(int connection, int server)
{
	hurry(true);
	close(connection);
	close(server);
	sem_wait(&slept);
	hurry(false);
	server = serve(4);
	close(greeted(server));
	close(server);
}

/* The folder is made anew while HELLO is not answered; the old server keeps what is left of the old one. The new server
 * ends too: the agent finds the third. */
static void test_folder_made_anew(void **state)
{
	int first, second, old, connection;

	(void)state;
	first = serve(4);
	start();
	old = greeted(first);
	unlink(gp_agent.socket_path);
	assert_int_equal(rmdir(inner) | mkdir(inner, 0700), 0);
	second = serve(4);
	hurry(true);
	connection = greeted(second);
	hurry(false);
	serve_twice(connection, second);
	close(old);
	close(first);
}

/* The folder goes while HELLO is not answered, then the server, whose socket is in another folder. */
static void test_folder_gone(void **state)
{
	int server, connection;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/elsewhere", folder);
	server = serve_at(path, 4);
	assert_int_equal(symlink(path, gp_agent.socket_path), 0);
	start();
	connection = greeted(server);
	sem_wait(&looked); /* before it connected */
	unlink(gp_agent.socket_path);
	gp_agent_lock(); /* the agent learns at once of all that happens to the folder */
	assert_int_equal(rmdir(inner), 0);
	gp_agent_unlock();
	sem_wait(&looked);
	assert_int_equal(mkdir(inner, 0700) | unlink(path), 0);
	serve_twice(connection, server);
}

/* More want to connect than the server accepts. It is there: the agent tries again and again. */
static void test_full(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int server, fds[8], count = 0;

	(void)state;
	memcpy(address.sun_path, gp_agent.socket_path, sizeof(address.sun_path));
	server = serve(0);
	do {
		assert_true(count < 8);
		fds[count] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (!connect(fds[count++], (struct sockaddr *)&address, sizeof(address)));
	assert_int_equal(errno, EAGAIN);
	hurry(true);
	start();
	for (int i = 0; i < 9; i++)
		sem_wait(&tried);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	for (int i = 1; i < count; i++)
		close(accept(server, NULL, NULL));
	close(greeted(server));
	close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_socket_made_anew, begin, end),
		cmocka_unit_test_setup_teardown(test_folder_made_anew, begin, end),
		cmocka_unit_test_setup_teardown(test_folder_gone, begin, end),
		cmocka_unit_test_setup_teardown(test_full, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
