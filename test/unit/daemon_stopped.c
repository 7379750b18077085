/* SPDX-License-Identifier: MIT */
/* A GPU that root has paused stays paused when the daemon ends, however it ends, until root resumes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static char path[128];

static int begin(void **state)
{
	(void)state;
	world_begin(&world, NULL);
	snprintf(path, sizeof(path), "%s/paused", world.folder);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

static void command(uint32_t flags, int want)
{
	struct gp_control_request request = world_request(GP_CONTROL_PAUSE);
	int result;

	request.flags = flags;
	free(world_ask(&world, &request, &result));
	assert_int_equal(result, want);
}

/* Another daemon, which knows nothing but the file. */
static bool is_paused_after_restart(void)
{
	struct gp_device_entry *device = &world.daemon.devices[0];

	device->is_paused = false;
	gp_device_go_on(&world.daemon, device);
	gp_stopped_load(&world.daemon);
	assert_int_equal(device->is_paused, device->stopped);
	return device->is_paused;
}

static void put(const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static bool file_has(const char *words)
{
	char text[1024] = "";
	FILE *file = fopen(path, "r");
	size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		fclose(file);
	return size && strstr(text, words);
}

/* status says by whom and since when, before and after. */
static void test_outlives_the_daemon(void **state)
{
	const struct gp_device_entry *device = &world.daemon.devices[0];
	char why[GP_WHY_TEXT], who[64];

	(void)state;
	if (getuid())
		skip();
	assert_false(is_paused_after_restart());
	command(0, 0);
	snprintf(who, sizeof(who), "asked for by uid 0, process %d, since 2", getpid());
	snprintf(why, sizeof(why), "%s", device->stopped_why);
	if (strncmp(why, who, strlen(who)) != 0 || !strstr(why, " UTC"))
		fail_msg("%s", why);
	assert_true(is_paused_after_restart());
	assert_string_equal(device->stopped_why, why);
	command(0, 0); /* the first pause counts */
	assert_string_equal(device->stopped_why, why);
	command(GP_CONTROL_PAUSE_END, 0);
	assert_false(device->stopped);
	assert_false(is_paused_after_restart());
}

/* A GPU that stopped by itself is scheduled after a restart. If root pauses it meanwhile, it is not. */
static void test_a_reason_that_ends(void **state)
{
	struct gp_device_entry *device = &world.daemon.devices[0];

	(void)state;
	if (getuid())
		skip();
	gp_device_halt(&world.daemon, device, "a reset");
	assert_false(is_paused_after_restart());
	gp_device_halt(&world.daemon, device, "a reset");
	command(0, 0);
	assert_string_equal(device->stopped_why, "a reset");
	assert_true(is_paused_after_restart());
	command(GP_CONTROL_PAUSE_END, 0);
	assert_false(is_paused_after_restart());
}

/* A GPU that is not there, and one that another daemon has: their lines mean nothing here, and stay. */
static void test_other_gpus(void **state)
{
	struct gp_device_entry *device = &world.daemon.devices[0];

	(void)state;
	if (getuid())
		skip();
	put("nvidia-0000:01:00.0 asked for by uid 0, process 7, since then\nnull-11 x\nnull-1\n\n \n", 0600);
	assert_false(is_paused_after_restart());
	command(0, 0);
	assert_true(is_paused_after_restart());
	assert_true(file_has("nvidia-0000:01:00.0 asked for by uid 0, process 7, since then\n"));
	command(GP_CONTROL_PAUSE_END, 0);
	assert_true(file_has("nvidia-0000:01:00.0 asked for"));
	put("null-1 asked for by uid 0\033[2J\n", 0600);
	device->claim.is_left = true;
	gp_stopped_load(&world.daemon);
	assert_string_equal(device->stopped_why, "asked for by uid 0?[2J");
	command(GP_CONTROL_PAUSE_END, -EBUSY);
	device->is_paused = false;
	command(0, 0);
	assert_true(file_has("null-1 asked for by uid 0\033"));
	device->claim.is_left = false;
	command(GP_CONTROL_PAUSE_END, 0);
	assert_false(file_has("null-1 "));
}

/* Who can write the file of another user stops no GPU. */
static void test_not_the_daemons_file(void **state)
{
	(void)state;
	put("null-1 somebody\n", 0600);
	assert_true(is_paused_after_restart());
	put("null-1 somebody\n", 0666);
	assert_false(is_paused_after_restart());
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_false(is_paused_after_restart());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_outlives_the_daemon, begin, end),
		cmocka_unit_test_setup_teardown(test_a_reason_that_ends, begin, end),
		cmocka_unit_test_setup_teardown(test_other_gpus, begin, end),
		cmocka_unit_test_setup_teardown(test_not_the_daemons_file, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
