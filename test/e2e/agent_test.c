/* SPDX-License-Identifier: MIT */
/* The agent inside a client of the virtual node, under a daemon that is a test: agent-test CASE AGENT CLIENT [ARG...].
 * Run inside `vgpu run`. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/e2e/agent_test.h"

static int failures;

void test_fail(const char *file, int line, const char *what)
{
	printf("# %s:%d: not so: %s\n", file, line, what);
	failures++;
}

bool test_start(struct test *test, bool with_tool)
{
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		return false;
	test->ended = false;
	test->pid = fork();
	if (test->pid == 0) {
		dup2(to[0], 0);
		if (!with_tool)
			dup2(from[1], 1);
		close(to[0]);
		close(to[1]);
		close(from[0]);
		close(from[1]);
		setenv("LD_PRELOAD", test->agent, 1);
		setenv(GP_WIRE_SOCKET_ENV, test->path, 1);
		if (with_tool)
			setenv("HSA_TOOLS_LIB", test->agent, 1);
		execv(test->client[0], test->client);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	test->to = fdopen(to[1], "w");
	test->from = fdopen(from[0], "r");
	return test->pid > 0;
}

const char *test_ask(struct test *test, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vfprintf(test->to, format, list);
	va_end(list);
	fputc('\n', test->to);
	fflush(test->to);
	if (!fgets(test->answer, sizeof(test->answer), test->from))
		return "end";
	test->answer[strcspn(test->answer, "\n")] = 0;
	return test->answer;
}

long test_number(struct test *test, const char *verb, uint32_t a)
{
	const char *answer = test_ask(test, "%s %u", verb, a);

	return strncmp(answer, "ok ", 3) ? -9999 : strtol(answer + 3, NULL, 10);
}

bool test_stands_still(struct test *test, uint32_t lane)
{
	long before = test_number(test, "sum", lane);

	usleep(20000);
	return test_number(test, "sum", lane) == before;
}

bool test_moves(struct test *test, uint32_t lane)
{
	long before = test_number(test, "sum", lane);

	for (int i = 0; i < AGENT_WAIT_MS; i++) {
		if (test_number(test, "sum", lane) != before)
			return true;
		usleep(1000);
	}
	return false;
}

bool test_has_ended(struct test *test)
{
	test->ended = test->ended || waitpid(test->pid, &test->status, WNOHANG) == test->pid;
	return test->ended;
}

int test_end(struct test *test)
{
	fclose(test->to);
	if (!test->ended)
		waitpid(test->pid, &test->status, 0);
	fclose(test->from);
	return WIFEXITED(test->status) ? WEXITSTATUS(test->status) : 1000 + WTERMSIG(test->status);
}

/* A client with so many queues under the fake daemon. */
void test_meet(struct test *test, uint32_t mechanism, uint32_t lease_ms, uint32_t queues)
{
	MUST(fake_listen(&test->fake, test->path));
	MUST(test_start(test, false));
	for (uint32_t i = 0; i < queues; i++)
		MUST(test_number(test, "queue", 0) >= 0);
	MUST(fake_accept(&test->fake));
	MUST(fake_welcome(&test->fake, mechanism, lease_ms));
	MUST(fake_until_queues(&test->fake, queues));
}

int main(int argc, char **argv)
{
	const char *folder = getenv("TMPDIR"), *mechanism = getenv("MECHANISM");
	const struct test_case *const tables[] = { test_cases, test_hsa_cases, test_guest_cases };
	static struct test test;

	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4)
		return 2;
	test.agent = argv[2];
	test.client = argv + 3;
	snprintf(test.path, sizeof(test.path), "%s/gp-agent-test-%d.sock", folder ? folder : "/tmp", (int)getpid());
	test.mechanism = mechanism ? (uint32_t)atoi(mechanism) : GP_MECHANISM_UPDATE;
	for (uint32_t i = 0; i < 3u; i++)
		for (const struct test_case *c = tables[i]; c->name; c++) {
			if (strcmp(c->name, argv[1]) != 0)
				continue;
			c->run(&test);
			unlink(test.path);
			printf("%s %s: %d failures\n", failures ? "not ok" : "ok", argv[1], failures);
			return failures != 0;
		}
	printf("no case %s\n", argv[1]);
	return 2;
}
