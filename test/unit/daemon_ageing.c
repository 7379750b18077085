/* SPDX-License-Identifier: MIT */
/* A client that claims work and completes nothing when it is given the GPU: the journal says whose it is, and the
 * status counts it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent urgent, fake;

static void pass(uint32_t ms)
{
	for (uint32_t i = 0; i < ms; i++) {
		world_wait(&world, 1);
		agent_work(&world, &fake);
		agent_work(&world, &urgent);
	}
}

static uint32_t count(FILE *file, const char *text)
{
	char line[2048];
	uint32_t found = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		found += strstr(line, text) != NULL;
	return found;
}

static void test_journal_says_who(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_STATUS);
	FILE *journal = tmpfile();
	int stderr_copy = dup(STDERR_FILENO), result;
	uint32_t lines;
	char *status;

	(void)state;
	assert_non_null(journal);
	assert_true(dup2(fileno(journal), STDERR_FILENO) >= 0);
	world_begin(&world, "[policy]\nage_window = 20ms\nage_turn = 2ms\nage_share = 1000\noverhead = 1000\n");
	agent_connect(&world, &urgent, 80);
	agent_connect(&world, &fake, 20);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &fake, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &fake, 0, 1000);
	agent_doorbell(&world, &urgent, 0, 1000);
	pass(30); /* its first aged turn is beside the urgent one: nothing is held against it */
	fflush(stderr);
	assert_int_equal(count(journal, "completed nothing"), 0);
	pass(300);
	fflush(stderr);
	lines = count(journal, "had the GPU to itself and completed nothing");
	status = world_ask(&world, &request, &result);
	assert_true(dup2(stderr_copy, STDERR_FILENO) >= 0);
	close(stderr_copy);
	fclose(journal);
	assert_in_range(lines, 2, 5); /* after 40, 80, 160 ms */
	assert_non_null(status);
	assert_non_null(strstr(status, "\"back_offs\":"));
	assert_null(strstr(status, "\"back_offs\":0"));
	free(status);
	agent_leave(&world, &urgent);
	agent_leave(&world, &fake);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_journal_says_who) };

	return cmocka_run_group_tests_name("daemon_ageing", tests, NULL, NULL);
}
