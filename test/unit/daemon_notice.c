/* SPDX-License-Identifier: MIT */
/* What a user tries, the journal says with his number: once for each kind, not for root, and not for what happens to
 * everyone now and then. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/daemon.h"

static uint64_t clock_ns = 1000000000000ull;

uint64_t gp_now_ns(void)
{
	return clock_ns;
}

uint64_t gp_used_ns(void)
{
	return 0;
}

static struct gp_daemon world;

/* How many lines that contain text were written. */
static uint32_t lines(void (*act)(struct gp_owner *owner), struct gp_owner *owner, const char *text)
{
	char path[] = "/tmp/daemon-notice-XXXXXX", line[1024];
	int fd = mkstemp(path), kept = dup(2);
	uint32_t count = 0;
	FILE *stream;

	assert_true(fd >= 0 && kept >= 0);
	dup2(fd, 2);
	act(owner);
	fflush(stderr);
	dup2(kept, 2);
	stream = fopen(path, "r");
	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream))
		count += strstr(line, text) != NULL;
	fclose(stream);
	unlink(path);
	close(fd);
	close(kept);
	return count;
}

static void many_late(struct gp_owner *owner)
{
	for (int i = 0; i < 100; i++)
		gp_notice(&world, owner, GP_NOTICE_LATE);
}

static void few_late(struct gp_owner *owner)
{
	for (int i = 0; i < 100; i++, clock_ns += 5000000000ull)
		gp_notice(&world, owner, GP_NOTICE_LATE);
}

static void each_kind(struct gp_owner *owner)
{
	for (int kind = 0; kind < GP_NOTICE_COUNT; kind++)
		for (int i = 0; i < 1000; i++)
			gp_notice(&world, owner, (enum gp_notice)kind);
}

static void test_once(void **state)
{
	struct gp_owner owner = { .id = 7, .key = 7, .uid = 4242 };

	(void)state;
	assert_int_equal(lines(many_late, &owner, "user 4242 has programs that answer orders late"), 1);
	assert_int_equal(lines(many_late, &owner, ""), 0);
	clock_ns += 601000000000ull;
	assert_int_equal(lines(many_late, &owner, "user 4242"), 1);
}

static void test_now_and_then(void **state)
{
	struct gp_owner owner = { .id = 7, .key = 7, .uid = 4242 };

	(void)state;
	assert_int_equal(lines(few_late, &owner, ""), 0);
}

static void test_each_kind(void **state)
{
	struct gp_owner owner = { .id = 7, .key = 7, .uid = 4242 }, root = { .id = 0 };

	(void)state;
	assert_int_equal(lines(each_kind, &owner, "user 4242"), GP_NOTICE_COUNT);
	assert_int_equal(lines(each_kind, &root, ""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_now_and_then),
		cmocka_unit_test(test_each_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
