/* SPDX-License-Identifier: MIT */
/* What /proc/driver/nvidia says is understood, several GPUs, and what cannot be scheduled is refused with a reason. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/nvidia.h"
#include "test/unit/nvidia_root.h"

static struct nvidia_root place;
static const char *const root = place.path;

static int root_begin(void **state)
{
	(void)state;
	nvidia_root_begin(&place);
	return 0;
}

static int root_end(void **state)
{
	(void)state;
	nvidia_root_end(&place);
	return 0;
}

static void test_versions(void **state)
{
	struct gp_nvidia_driver driver;
	struct gp_error error;

	(void)state;
	assert_int_equal(gp_nvidia_parse_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May\n"
						 "GCC version: gcc 12.2.0\n",
						 &driver, &error),
			 0);
	assert_string_equal(driver.version, "535.183.01");
	assert_int_equal(driver.major, 535);
	assert_false(driver.is_open);
	assert_int_equal(
		gp_nvidia_parse_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  R",
					&driver, &error),
		0);
	assert_string_equal(driver.version, "580.159.03");
	assert_true(driver.is_open);
	assert_int_equal(gp_nvidia_parse_version("GCC version: 12.2.0\n", &driver, &error), -EINVAL);
	assert_int_equal(gp_nvidia_parse_version("NVRM version: none\n", &driver, &error), -EINVAL);
	assert_int_equal(gp_nvidia_parse_version("", &driver, &error), -EINVAL);
}

static void test_no_driver(void **state)
{
	struct gp_nvidia_driver driver;
	struct gp_nvidia_gpu gpus[2];

	(void)state;
	assert_int_equal(gp_nvidia_topology(root, &driver, gpus, 2, NULL), 0);
}

static void test_several_gpus(void **state)
{
	struct gp_nvidia_driver driver;
	struct gp_nvidia_gpu gpus[4];

	(void)state;
	nvidia_root_gpu(&place, "0000:b4:00.0", "NVIDIA H200", 1);
	nvidia_root_gpu(&place, "0001:04:1f.0", "NVIDIA H200", 0);
	assert_int_equal(gp_nvidia_topology(root, &driver, gpus, 4, NULL), 2);
	assert_string_equal(gpus[0].bdf, "0000:b4:00.0");
	assert_int_equal(gpus[0].gpu_id, 0xb400);
	assert_int_equal(gpus[0].minor, 1);
	assert_string_equal(gpus[0].model, "NVIDIA H200");
	assert_string_equal(gpus[0].uuid, "GPU-12345678-0000-0000-0000-000000000001");
	assert_int_equal(gpus[1].gpu_id, 0x1041f);
	assert_false(gpus[0].has_mig || gpus[0].is_vgpu || gpus[1].has_mig);
	/* Room for one: one. */
	assert_int_equal(gp_nvidia_topology(root, &driver, gpus, 1, NULL), 1);
}

static void test_bad_files(void **state)
{
	struct gp_nvidia_driver driver;
	struct gp_nvidia_gpu gpus[2];
	struct gp_error error;

	(void)state;
	nvidia_root_gpu(&place, "0000:b4:00.0", "NVIDIA H200", 0);
	nvidia_root_file(&place, "proc/driver/nvidia/gpus/nonsense/information", "Model: x\n");
	assert_int_equal(gp_nvidia_topology(root, &driver, gpus, 2, &error), -EINVAL);
	assert_non_null(strstr(error.text, "nonsense"));
	assert_int_equal(gp_nvidia_parse_gpu("", "0000:00:20.0", gpus, &error), -EINVAL);
	assert_int_equal(gp_nvidia_parse_gpu("", "0000:00:01.0x", gpus, &error), -EINVAL);
	assert_int_equal(gp_nvidia_parse_gpu("Device Minor: -1\n", "0000:00:01.0", gpus, &error), 0);
	assert_false(gpus[0].has_minor);
	assert_string_equal(gpus[0].model, "NVIDIA GPU");
}

static void test_vgpus_by_name(void **state)
{
	static const struct {
		const char *model;
		bool is_vgpu;
	} names[] = { { "NVIDIA H200", false },
		      { "NVIDIA A100-SXM4-80GB", false },
		      { "Tesla V100-SXM2-32GB", false },
		      { "NVIDIA H100 80GB HBM3", false },
		      { "NVIDIA GeForce RTX 4090", false },
		      { "NVIDIA H20-3e", false },
		      { "GRID T4-8C", true },
		      { "NVIDIA A40-4Q", true },
		      { "NVIDIA A100-4-20C", true },
		      { "GRID P40-1B4", true } };
	struct gp_nvidia_gpu gpu;
	char text[80];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "Model: \t %s\n", names[i].model);
		assert_int_equal(gp_nvidia_parse_gpu(text, "0000:00:01.0", &gpu, NULL), 0);
		if (gpu.is_vgpu != names[i].is_vgpu)
			fail_msg("%s", names[i].model);
	}
}

static void test_mig_and_mps(void **state)
{
	struct gp_nvidia_driver driver;
	struct gp_nvidia_gpu gpus[2];

	(void)state;
	nvidia_root_gpu(&place, "0000:b4:00.0", "NVIDIA H200", 0);
	nvidia_root_gpu(&place, "0000:b5:00.0", "NVIDIA H200", 1);
	nvidia_root_file(&place, "proc/driver/nvidia/capabilities/gpu1/mig/gi1/access", "DeviceFileMinor: 12\n");
	nvidia_root_file(&place, "proc/driver/nvidia/capabilities/gpu0/mig/config", "DeviceFileMinor: 1\n");
	assert_int_equal(gp_nvidia_topology(root, &driver, gpus, 2, NULL), 2);
	assert_false(gpus[0].has_mig);
	assert_true(gpus[1].has_mig);
	assert_int_equal(gp_nvidia_mps(root), 0);
	nvidia_root_file(&place, "proc/17/comm", "bash\n");
	assert_int_equal(gp_nvidia_mps(root), 0);
	nvidia_root_file(&place, "proc/4711/comm", "nvidia-cuda-mps\n");
	assert_int_equal(gp_nvidia_mps(root), 4711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_versions, root_begin, root_end),
		cmocka_unit_test_setup_teardown(test_no_driver, root_begin, root_end),
		cmocka_unit_test_setup_teardown(test_several_gpus, root_begin, root_end),
		cmocka_unit_test_setup_teardown(test_bad_files, root_begin, root_end),
		cmocka_unit_test_setup_teardown(test_vgpus_by_name, root_begin, root_end),
		cmocka_unit_test_setup_teardown(test_mig_and_mps, root_begin, root_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
