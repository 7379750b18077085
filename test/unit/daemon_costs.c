/* SPDX-License-Identifier: MIT */
/* What transactions cost: no user makes it dear or cheap for others, nor for the next daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "test/unit/daemon_world.h"

#define GIVEN 200000u /* what the backend assumes */

static struct gp_daemon *machine_new(void)
{
	struct gp_daemon *daemon = calloc(1, sizeof(*daemon));

	assert_non_null(daemon);
	daemon->device_count = 1;
	daemon->devices = calloc(1, sizeof(*daemon->devices));
	assert_non_null(daemon->devices);
	daemon->devices->info.close_ns = daemon->devices->info.open_ns = GIVEN;
	daemon->devices->close_prior_ns = daemon->devices->open_prior_ns = GIVEN;
	daemon->devices->info.mechanism = GP_MECHANISM_SELF;
	snprintf(daemon->devices->info.name, sizeof(daemon->devices->info.name), "GPU");
	snprintf(daemon->config.state_dir, sizeof(daemon->config.state_dir), "%s", "/tmp/gpreempt-costs-XXXXXX");
	assert_non_null(mkdtemp(daemon->config.state_dir));
	gp_hist_init(&daemon->devices->close_hist);
	gp_hist_init(&daemon->devices->open_hist);
	return daemon;
}

static void machine_free(struct gp_daemon *daemon)
{
	char path[GP_CONFIG_PATH_SIZE + 16];

	snprintf(path, sizeof(path), "%s/costs", daemon->config.state_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/grants", daemon->config.state_dir);
	unlink(path);
	rmdir(daemon->config.state_dir);
	free(daemon->devices);
	free(daemon);
}

static void add(struct gp_daemon *daemon, uint32_t owner, uint64_t ns, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		gp_cost_add(daemon->devices, owner, false, ns);
		gp_cost_add(daemon->devices, owner, true, ns);
	}
}

static uint64_t cost(const struct gp_daemon *daemon)
{
	assert_int_equal(gp_cost_ns(daemon->devices, false), gp_cost_ns(daemon->devices, true));
	return gp_cost_ns(daemon->devices, false);
}

/* Alone, eight transactions replace what was assumed; the upper quartile counts, and only the last ones do. */
static void test_alone(void **state)
{
	struct gp_daemon *daemon = machine_new();

	(void)state;
	add(daemon, 5, 300000, 7);
	assert_int_equal(cost(daemon), GIVEN);
	add(daemon, 5, 300000, 1);
	assert_int_equal(cost(daemon), 300000);
	add(daemon, 5, 20000000, 2); /* two of ten */
	assert_int_equal(cost(daemon), 300000);
	add(daemon, 5, 400000, GP_COST_SAMPLES);
	assert_int_equal(cost(daemon), 400000);
	add(daemon, 5, 20000000, GP_COST_SAMPLES); /* his own business, but not without end */
	assert_int_equal(cost(daemon), 32 * GIVEN);
	add(daemon, 5, 1, GP_COST_SAMPLES);
	assert_int_equal(cost(daemon), GIVEN / 32);
	machine_free(daemon);
}

/* A hostile one, dear or cheap, and however many transactions he makes: nobody pays more than others do. */
static void test_hostile_among_others(void **state)
{
	static const uint64_t hostile[] = { 1, 20000000 };
	struct gp_daemon *daemon = machine_new();

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		memset(&daemon->devices->cost, 0, sizeof(daemon->devices->cost));
		add(daemon, 5, 300000, 10);
		add(daemon, 66, hostile[i], 10000);
		assert_in_range(cost(daemon), GIVEN, 300000); /* what is assumed is the third */
		add(daemon, 6, 320000, 10);
		assert_in_range(cost(daemon), 300000, 320000);
		add(daemon, 7, 310000, 10);
		assert_in_range(cost(daemon), GIVEN, 320000);
	}
	machine_free(daemon);
}

/* A second user's queue comes, who has no value yet: he does not pay what the first one showed. */
static void test_second_user(void **state)
{
	struct gp_daemon *daemon = machine_new();
	struct gp_owner owners[2] = { { .id = 66 }, { .id = 5 } };
	struct gp_client *clients = calloc(2, sizeof(*clients));
	struct gp_queue_entry *queues = calloc(2, sizeof(*queues));

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		clients[i].owner = &owners[i];
		queues[i].client = &clients[i];
	}
	daemon->devices->queues = &queues[0];
	add(daemon, 66, 20000000, 100);
	assert_int_equal(cost(daemon), 32 * GIVEN);
	queues[0].device_next = &queues[1];
	assert_int_equal(cost(daemon), GIVEN);
	daemon->devices->close_prior_ns = daemon->devices->open_prior_ns = 20 * GIVEN; /* two of his accounts, before */
	assert_int_equal(cost(daemon), GIVEN);
	add(daemon, 5, 250000, 8);
	assert_int_equal(cost(daemon), 250000);
	free(clients);
	free(queues);
	machine_free(daemon);
}

static struct gp_daemon *machine_again(struct gp_daemon *before)
{
	struct gp_daemon *daemon = machine_new();

	rmdir(daemon->config.state_dir);
	memcpy(daemon->config.state_dir, before->config.state_dir, sizeof(before->config.state_dir));
	gp_cost_load(daemon);
	free(before->devices);
	free(before);
	return daemon;
}

/* What one user alone showed is not written; root's is, and that of two; and so is what we measured ourselves. */
static void test_what_is_kept(void **state)
{
	struct gp_daemon *daemon = machine_new();

	(void)state;
	add(daemon, 66, 20000000, 100);
	gp_cost_save(daemon);
	daemon = machine_again(daemon);
	assert_int_equal(cost(daemon), GIVEN);
	add(daemon, 66, 20000000, 100);
	add(daemon, 5, 300000, 10);
	gp_cost_save(daemon);
	daemon = machine_again(daemon);
	assert_in_range(cost(daemon), GIVEN, 300000);
	add(daemon, 0, 350000, 10);
	gp_cost_save(daemon);
	daemon = machine_again(daemon);
	assert_int_equal(cost(daemon), 350000);
	daemon->devices->info.mechanism = GP_MECHANISM_DEBUGGER;
	add(daemon, 5, 360000, 10);
	gp_cost_save(daemon);
	assert_true(gp_cost_is_known(daemon->devices));
	machine_free(daemon);
}

/* One user with two accounts against root, or one account and what an earlier daemon saved: neither decides. */
static void test_outvoted(void **state)
{
	struct gp_daemon *daemon = machine_new();

	(void)state;
	add(daemon, 0, 100000, 10);
	add(daemon, 66, 5100000, 100);
	assert_in_range(cost(daemon), 100000, GIVEN);
	add(daemon, 67, 5100000, 100);
	assert_int_equal(cost(daemon), 400000); /* four times root's */
	gp_cost_save(daemon);
	daemon = machine_again(daemon);
	assert_int_equal(cost(daemon), 400000);
	add(daemon, 5, 300000, 10);
	add(daemon, 66, 5100000, 100);
	assert_in_range(cost(daemon), GIVEN, 300000);
	machine_free(daemon);
}

/* What an earlier daemon saved has no vote beside what users' transactions show. */
static void test_saved_has_no_vote(void **state)
{
	static const uint64_t hostile[] = { 1, 20000000 };
	struct gp_daemon *daemon = machine_new();

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		daemon->devices->close_prior_ns = daemon->devices->open_prior_ns = i ? 32 * GIVEN : GIVEN / 32;
		memset(&daemon->devices->cost, 0, sizeof(daemon->devices->cost));
		add(daemon, 5, 300000, 10);
		add(daemon, 66, hostile[i], 100);
		assert_in_range(cost(daemon), GIVEN, 300000);
		add(daemon, 6, 310000, 10);
		add(daemon, 67, hostile[i], 100);
		assert_in_range(cost(daemon), GIVEN, 310000);
	}
	/* A backend that assumes nothing: the cheaper of the two in the middle. */
	daemon->devices->info.close_ns = daemon->devices->info.open_ns = 0;
	assert_int_equal(cost(daemon), 310000);
	machine_free(daemon);
}

/* A folder that cannot be written, for as long as the daemon runs: the journal has one line, and one for the next time.
 */
static void test_cannot_be_kept(void **state)
{
	struct gp_daemon *daemon = machine_new();
	int journal[2], stderr_fd = dup(STDERR_FILENO);
	char lines[4096], folder[GP_CONFIG_PATH_SIZE];
	ssize_t size;
	uint32_t costs = 0, grants = 0;

	(void)state;
	assert_int_equal(pipe(journal), 0);
	dup2(journal[1], STDERR_FILENO);
	snprintf(folder, sizeof(folder), "%s", daemon->config.state_dir);
	add(daemon, 0, 350000, 10);
	for (int i = 0; i < 8; i++) {
		snprintf(daemon->config.state_dir, sizeof(daemon->config.state_dir), "%s",
			 i == 5 ? folder : "/proc/there/is/none");
		gp_cost_save(daemon);
		gp_grant_save(daemon);
	}
	fflush(stderr);
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	close(journal[1]);
	size = read(journal[0], lines, sizeof(lines) - 1);
	close(journal[0]);
	lines[size > 0 ? size : 0] = '\0';
	for (const char *line = lines; (line = strstr(line, "costs are not kept")); line++)
		costs++;
	for (const char *line = lines; (line = strstr(line, "grants are not kept")); line++)
		grants++;
	assert_int_equal(costs, 2);
	assert_int_equal(grants, 2);
	assert_non_null(strstr(lines, "grants are kept again"));
	snprintf(daemon->config.state_dir, sizeof(daemon->config.state_dir), "%s", folder);
	machine_free(daemon);
}

/* A poisoned file: bounded, and forgotten with the eighth transaction. */
static void test_poisoned_file(void **state)
{
	struct gp_daemon *daemon = machine_new();
	char path[GP_CONFIG_PATH_SIZE + 16];
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/costs", daemon->config.state_dir);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "900000000 900000000 1000000 GPU||%s\n", gp_mechanism_name(GP_MECHANISM_SELF));
	fclose(file);
	daemon = machine_again(daemon);
	assert_int_equal(cost(daemon), 32 * GIVEN);
	add(daemon, 5, 300000, 8);
	assert_int_equal(cost(daemon), 300000);
	machine_free(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),         cmocka_unit_test(test_hostile_among_others),
		cmocka_unit_test(test_second_user),   cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_poisoned_file), cmocka_unit_test(test_cannot_be_kept),
		cmocka_unit_test(test_outvoted),      cmocka_unit_test(test_saved_has_no_vote),
	};

	return cmocka_run_group_tests_name("daemon_costs", tests, NULL, NULL);
}
