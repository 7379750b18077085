/* SPDX-License-Identifier: MIT */
/* The bench of the agent's tests: a client to command, a fake daemon to command it with. */
#ifndef GP_TEST_E2E_AGENT_TEST_H
#define GP_TEST_E2E_AGENT_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include "test/e2e/agent_daemon.h"

struct test {
	struct fake fake;
	char **client; /* program and arguments */
	const char *agent;
	char path[100];
	uint32_t mechanism;
	pid_t pid;
	bool ended;
	int status;
	FILE *to, *from;
	char answer[256];
};

struct test_case {
	const char *name;
	void (*run)(struct test *test);
};
extern const struct test_case test_cases[], test_hsa_cases[], test_guest_cases[];

void test_fail(const char *file, int line, const char *what);
#define CHECK(condition)                                           \
	do {                                                       \
		if (!(condition))                                  \
			test_fail(__FILE__, __LINE__, #condition); \
	} while (0)
#define MUST(condition)                                            \
	do {                                                       \
		if (!(condition)) {                                \
			test_fail(__FILE__, __LINE__, #condition); \
			exit(1);                                   \
		}                                                  \
	} while (0)

bool test_start(struct test *test,
		bool with_tool); /* the client, with the agent; with_tool: an HSA program, no commands */
const char *test_ask(struct test *test, const char *format, ...) __attribute__((format(printf, 2, 3)));
long test_number(struct test *test, const char *verb, uint32_t a); /* the number after "ok" */
bool test_stands_still(struct test *test, uint32_t lane);
bool test_moves(struct test *test, uint32_t lane);
bool test_has_ended(struct test *test);
int test_end(struct test *test); /* exit status; 1000 and more: a signal */
void test_meet(struct test *test, uint32_t mechanism, uint32_t lease_ms, uint32_t queues);

#endif
