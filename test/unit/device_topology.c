/* SPDX-License-Identifier: MIT */
/* The driver's files: what is read, and what is refused with the file's name. */
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
#include "lib/kfd.h"

static char root[] = "/tmp/gpreempt-topology-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[160], *slash;
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	stream = fopen(path, "w");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static int begin(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/gpreempt-topology-XXXXXX");
	assert_non_null(mkdtemp(root));
	put("topology/nodes/0/gpu_id", "0\n");
	put("topology/nodes/1/gpu_id", "4711\n");
	put("topology/nodes/1/name", "aqua\n");
	put("topology/nodes/1/properties",
	    "simd_count 1216\nsimd_per_cu 4\nnum_xcc 8\nnum_cp_queues 24\nother words here\n");
	put("topology/nodes/1/mem_banks/0/properties", "size_in_bytes 1000\n");
	put("topology/nodes/1/mem_banks/1/properties", "size_in_bytes 24\n");
	return 0;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void test_reads(void **state)
{
	struct gp_kfd_node nodes[4];
	struct gp_error error;

	(void)state;
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), 1);
	assert_int_equal(nodes[0].gpu_id, 4711);
	assert_int_equal(nodes[0].node, 1);
	assert_int_equal(nodes[0].cp_queue_count, 24);
	assert_int_equal(nodes[0].memory_size, 1024);
	assert_string_equal(nodes[0].name, "aqua");
	assert_int_equal(gp_kfd_cu_count(&nodes[0]), 304);
	assert_true(nodes[0].gfx_version == GP_KFD_UNKNOWN); /* the file does not say */
	assert_true(gp_kfd_process_max(&nodes[0]) == GP_KFD_UNKNOWN);
	assert_int_equal(gp_kfd_topology("/nonexistent", nodes, 4, &error), 0);
}

/* The part's name as it is sold comes before the driver's, which is "ip discovery" for every new one. */
static void test_names(void **state)
{
	struct gp_kfd_node nodes[4];
	struct gp_error error;

	(void)state;
	put("topology/nodes/1/name", "ip discovery\n");
	put("topology/nodes/1/properties", "device_id 29857\ngfx_target_version 90402\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), 1);
	assert_string_equal(nodes[0].name, "AMD Instinct MI300X");
	put("topology/nodes/1/properties", "device_id 1\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), 1);
	assert_string_equal(nodes[0].name, "ip discovery");
	put("topology/nodes/1/name", "\n");
	put("topology/nodes/1/properties", "gfx_target_version 90010\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), 1);
	assert_string_equal(nodes[0].name, "gfx90a");
	assert_null(gp_kfd_part_name(GP_KFD_UNKNOWN));
}

/* Linux 6.12: gmc_v9_0.c, kfd_device.c. */
static void test_process_max(void **state)
{
	static const struct {
		uint64_t gfx_version, xcc_count, process_max;
	} parts[] = {
		{ 90000, 1, 8 },  /* MI25 */
		{ 90006, 1, 8 },  /* MI50 */
		{ 90008, 1, 13 }, /* MI100 */
		{ 90010, 1, 13 }, /* MI210 */
		{ 90402, 8, 13 }, /* MI300X */
		{ 90402, 1, 6 },  /* the same in CPX */
		{ 90500, 8, 13 }, /* MI350X */
		{ 90402, GP_KFD_UNKNOWN, 13 },
		{ 100300, 1, 8 },
		{ 110000, 1, 8 },
		{ GP_KFD_UNKNOWN, 1, GP_KFD_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct gp_kfd_node node = { .gfx_version = parts[i].gfx_version, .xcc_count = parts[i].xcc_count };

		assert_true(gp_kfd_process_max(&node) == parts[i].process_max);
	}
}

static void test_refuses(void **state)
{
	struct gp_kfd_node nodes[4];
	struct gp_error error;

	(void)state;
	put("topology/nodes/1/properties", "simd_count 12\nnum_cp_queues many\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), -EINVAL);
	assert_non_null(strstr(error.text, "nodes/1/properties:2: num_cp_queues is not a number"));
	put("topology/nodes/1/properties", "simd_count\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), -EINVAL);
	put("topology/nodes/1/properties", "num_cp_queues 99999999\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), -EINVAL);
	put("topology/nodes/1/properties", "num_cp_queues 99999999999999999999999\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), -EINVAL);
	put("topology/nodes/1/properties", "num_cp_queues 24\n");
	put("topology/nodes/1/gpu_id", "-1\n");
	assert_int_equal(gp_kfd_topology(root, nodes, 4, &error), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_names, begin, end),
		cmocka_unit_test(test_process_max),
		cmocka_unit_test_setup_teardown(test_reads, begin, end),
		cmocka_unit_test_setup_teardown(test_refuses, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
