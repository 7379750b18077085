/* SPDX-License-Identifier: MIT */
/* The configuration: every refusal names file and line; drop-ins come after the main file, in order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/config.h"

static struct gp_config config;
static struct gp_error error;

/* The place of a backend in the list is its place in the configuration. */
static struct gp_device_config *device(const char *name)
{
	uint32_t place = 0;

	while (gp_backends[place] != gp_backend_find(name))
		place++;
	return &config.device[place];
}
#define KFD    (*device("kfd"))
#define NVIDIA (*device("nvidia"))

static int parse(const char *text)
{
	gp_config_init(&config);
	return gp_config_parse(&config, text, strlen(text), "x.conf", &error);
}

static void refuse(const char *text, const char *sentence)
{
	assert_int_equal(parse(text), -EINVAL);
	assert_string_equal(error.text, sentence);
}

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(parse("[daemon]\nlease = 100ms\nsample = 1ms\nsocket_mode = 0660\nauto_gang = no\n"
			       "[policy]\npolicy = wfq\nturn = 5ms\nbatch_clients = 3\nprotect = latency\n"
			       "[ceiling]\ndefault = low\nuser.7 = high\ngroup.8 = 99\nuser.7 = 81\n"
			       "[kfd]\nmechanism = self,update\ngrace = 10\nrptr = fetch\n"
			       "[unmanaged]\naction = pause\npriority = idle\n"),
			 0);
	assert_int_equal(config.lease_ns, 100000000);
	assert_int_equal(config.socket_mode, 0660);
	assert_false(config.auto_gang);
	assert_string_equal(config.policy, "wfq");
	assert_int_equal(config.param.turn_ns, 5000000);
	assert_int_equal(config.param.batch_clients, 3);
	assert_int_equal(config.param.protect, GP_PROTECT_LATENCY);
	assert_int_equal(config.param.gather_ns, 0);
	assert_int_equal(config.ceiling_default, 20);
	assert_int_equal(config.ceiling_count, 2);
	assert_int_equal(config.ceilings[0].priority, 81);
	assert_true(config.ceilings[1].is_group);
	assert_int_equal(KFD.mechanisms, GP_MECHANISM_BIT(GP_MECHANISM_SELF) | GP_MECHANISM_BIT(GP_MECHANISM_UPDATE));
	assert_true(KFD.fetch_counters);
	assert_int_equal(config.unmanaged, GP_UNMANAGED_PAUSE);
	assert_int_equal(config.unmanaged_priority, 0);
}

static void test_refusals(void **state)
{
	(void)state;
	refuse("[policy]\nprotect = speed\n", "x.conf:2: protect is latency, balanced or throughput, not 'speed'");
	refuse("[daemon]\nstream_map = low\n",
	       "x.conf:2: stream map 'low': give low=, normal=, high= at most once each, as 0..99 or relative to the process as "
	       "+N or -N: low=-10,normal=+0,high=+10");
	refuse("[daemon]\n\nno_such = 1\n", "x.conf:3: [daemon] has no 'no_such'; gpreempt.conf(5) names what it has");
	refuse("[kfd]\nrptr = never\n", "x.conf:2: rptr is 'completion' or 'fetch', not 'never'");
	refuse("[other]\n", "x.conf:1: there is no section [other]; gpreempt.conf(5) names them");
	refuse("[policy]\npolicy = best\n", "x.conf:2: there is no policy 'best' (none, rr, hpf, wfq, edf, drf)");
	refuse("[kfd]\nmechanism = magic\n",
	       "x.conf:2: mechanism 'magic': it is a list of debugger, self, update, submit, kernel, userq, or auto");
	refuse("[ceiling]\nuser.no-such-user-here = 5\n", "x.conf:2: there is no user 'no-such-user-here'");
	refuse("[ceiling]\nroot = 5\n", "x.conf:2: 'root' is not default, user.NAME or group.NAME");
	refuse("[ceiling]\nuser.5 = 100\n",
	       "x.conf:2: user.5: '100' is neither 0..99 nor idle, low, normal, high, realtime");
	refuse("[daemon]\nsocket_mode = 999\n", "x.conf:2: socket_mode '999' is not an octal mode such as 0660");
	refuse("[unmanaged]\naction = kill\n", "x.conf:2: action is 'ignore' or 'pause', not 'kill'");
	refuse("[nvidia]\nshort_slice = 500ns\n",
	       "x.conf:2: short_slice: '500ns' is not a number of whole microseconds");
	refuse("[daemon]\nauto_gang = maybe\n", "x.conf:2: auto_gang is 'yes' or 'no', not 'maybe'");
	assert_int_equal(parse("[daemon]\nlease = 1ms\n"), -ERANGE);
	assert_int_equal(parse("x = 1\n"), -EINVAL);
}

/* --mechanism sets the mechanisms of each vendor of which it names one; the other vendors keep theirs. */
static void test_mechanisms_of_all(void **state)
{
	static const char *const settings[] = { GP_CONFIG_MECHANISM, "update,channel" };
	static const char *const of_one[] = { GP_CONFIG_MECHANISM, "borrow" };
	static const char *const wrong[] = { GP_CONFIG_MECHANISM, "borrow,magic" };

	(void)state;
	gp_config_init(&config);
	assert_int_equal(gp_config_apply(&config, settings, 2, &error), 0);
	assert_int_equal(KFD.mechanisms, GP_MECHANISM_BIT(GP_MECHANISM_UPDATE));
	assert_int_equal(NVIDIA.mechanisms, GP_MECHANISM_BIT(GP_MECHANISM_CHANNEL));
	assert_int_equal(gp_config_apply(&config, of_one, 2, &error), 0);
	assert_int_equal(KFD.mechanisms, GP_MECHANISM_BIT(GP_MECHANISM_UPDATE));
	assert_int_equal(NVIDIA.mechanisms, GP_MECHANISM_BIT(GP_MECHANISM_BORROW));
	assert_int_equal(gp_config_apply(&config, wrong, 2, &error), -EINVAL);
	assert_non_null(strstr(error.text, "'magic'"));
}

/* Each backend has the settings of its own section, and its own defaults. */
static void test_sections_of_backends(void **state)
{
	(void)state;
	assert_int_equal(parse("[nvidia]\nclose_cost = 1ms\n[null]\nopen_cost = 2ms\n[unmanaged]\ncriu = yes\n"
			       "[kfd]\ngrace = 7\n"),
			 0);
	assert_int_equal(KFD.close_ns, 200000);
	assert_int_equal(NVIDIA.close_ns, 1000000);
	assert_int_equal(NVIDIA.open_ns, 300000);
	assert_int_equal(device("null")->open_ns, 2000000);
	/* The first key that only this backend has: grace, and the number of imaginary GPUs. */
	assert_int_equal(KFD.own[0].count, 7);
	assert_int_equal(device("null")->own[0].count, 1);
	assert_true(KFD.criu);
	refuse("[nvidia]\nrptr = fetch\n", "x.conf:2: [nvidia] has no 'rptr'; gpreempt.conf(5) names what it has");
}

/* Off is not the default. */
static void test_gather(void **state)
{
	(void)state;
	assert_int_equal(parse("[policy]\ngather = 3ms\n"), 0);
	assert_int_equal(config.param.gather_ns, 3000000);
	assert_int_equal(parse("[policy]\ngather = off\n"), 0);
	assert_int_equal(config.param.gather_ns, GP_GATHER_OFF);
	assert_int_equal(parse("[policy]\ngather = 0\n"), 0);
	assert_int_equal(config.param.gather_ns, GP_GATHER_OFF);
	assert_int_equal(parse("[policy]\ngather = 2h\n"), -ERANGE);
	assert_int_equal(parse("[policy]\ngather = often\n"), -EINVAL);
}

/* Every number has a range, and a text a length: what is beyond is refused, not cut. */
static void test_ranges(void **state)
{
	static const char *const beyond[] = {
		"[daemon]\nsample = 0\n",
		"[daemon]\nidle_sample = 0\n",
		"[daemon]\nanswer_timeout = 0\n",
		"[daemon]\nclients_max = 0\n",
		"[daemon]\nclients_max = 65537\n",
		"[daemon]\nqueues_max = 0\n",
		"[daemon]\nqueues_max = 100000000\n",
		"[daemon]\nconnections_per_user = 0\n",
		"[daemon]\nqueues_per_user = 0\n",
		"[policy]\noverhead = 1001\n",
		"[policy]\nbatch_clients = 0\n",
		"[policy]\nturn = 2h\n",
		"[kfd]\ngrace = 256\n",
		"[kfd]\nclose_cost = 0\n",
		"[unmanaged]\nscan = 1ms\n",
	};
	char text[1200];

	(void)state;
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
		if (!parse(beyond[i]))
			fail_msg("%s", beyond[i]);
	refuse("[daemon]\nsocket_mode = 4777\n", "x.conf:2: socket_mode '4777' is not an octal mode such as 0660");
	refuse("[daemon]\nsocket_group = no-such-group-here\n", "x.conf:2: there is no group 'no-such-group-here'");
	refuse("[daemon]\nsocket =\n", "x.conf:2: socket: empty or longer than 107 bytes");
	snprintf(text, sizeof(text), "[daemon]\nsocket = /%0200d\n", 0);
	assert_int_equal(parse(text), -EINVAL);
}

static void test_many_ceilings(void **state)
{
	static char text[GP_CONFIG_CEILING_MAX * 32u];
	size_t size = (size_t)snprintf(text, sizeof(text), "[ceiling]\n");

	(void)state;
	for (uint32_t i = 0; i < GP_CONFIG_CEILING_MAX; i++)
		size += (size_t)snprintf(text + size, sizeof(text) - size, "user.%u = 7\n", i + 1);
	assert_int_equal(parse(text), 0);
	assert_int_equal(config.ceiling_count, GP_CONFIG_CEILING_MAX);
	/* One that is there already is replaced, and one more is refused. */
	snprintf(text + size, sizeof(text) - size, "user.1 = 8\n");
	assert_int_equal(parse(text), 0);
	assert_int_equal(config.ceilings[0].priority, 8);
	snprintf(text + size, sizeof(text) - size, "user.9999 = 8\n");
	refuse(text, "x.conf:258: more than 256 ceilings");
}

static void write_file(const char *path, const char *text)
{
	FILE *stream = fopen(path, "w");

	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static void test_files(void **state)
{
	char folder[] = "/tmp/gpreempt-config-XXXXXX", path[64], command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/conf.d", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/conf.d/20.conf", folder);
	write_file(path, "[policy]\nturn = 20ms\n");
	snprintf(path, sizeof(path), "%s/conf.d/10.conf", folder);
	write_file(path, "[policy]\nturn = 10ms\nburst = 7\n");
	snprintf(path, sizeof(path), "%s/conf.d/30.txt", folder);
	write_file(path, "nonsense");
	snprintf(path, sizeof(path), "%s/gpreempt.conf", folder);
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, false, &error), -ENOENT);
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, true, &error), 0);
	assert_int_equal(config.file_count, 2);
	write_file(path, "[policy]\nturn = 1ms\n");
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, false, &error), 0);
	assert_int_equal(config.file_count, 3);
	assert_int_equal(config.param.turn_ns, 20000000);
	assert_int_equal(config.param.burst, 7);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

static void test_many_files(void **state)
{
	char folder[] = "/tmp/gpreempt-config-XXXXXX", path[64], command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/conf.d", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	for (uint32_t i = 0; i < GP_CONFIG_FILE_MAX; i++) {
		snprintf(path, sizeof(path), "%s/conf.d/%03u.conf", folder, i);
		write_file(path, "[policy]\nturn = 20ms\n");
	}
	snprintf(path, sizeof(path), "%s/gpreempt.conf", folder);
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, true, &error), 0);
	assert_int_equal(config.file_count, GP_CONFIG_FILE_MAX);
	write_file(path, "[policy]\nturn = 1ms\n");
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, true, &error), -E2BIG);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

/* A folder of drop-ins that cannot be read is not taken for none, nor a file in it that cannot be named: the ceilings
 * that they set would be gone. */
static void test_unreadable(void **state)
{
	char folder[] = "/tmp/gpreempt-config-XXXXXX", path[512], command[64];

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/conf.d", folder);
	write_file(path, "");
	snprintf(path, sizeof(path), "%s/gpreempt.conf", folder);
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, true, &error), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/conf.d", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/conf.d/%0245u.conf", folder, 1u);
	write_file(path, "[ceiling]\ndefault = 10\n");
	snprintf(path, sizeof(path), "%s/gpreempt.conf", folder);
	gp_config_init(&config);
	assert_int_equal(gp_config_read(&config, path, true, &error), -ENAMETOOLONG);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_mechanisms_of_all),
		cmocka_unit_test(test_sections_of_backends),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_many_ceilings),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
