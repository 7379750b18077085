/* SPDX-License-Identifier: MIT */
/* Kernel sequences: the three formats, the real files, and every refusal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/paths.h"
#include "sim/kernels.h"

static struct gp_trace_kernels kernels;
static struct gp_error error;

static int parse(const char *text)
{
	return gp_trace_kernels_parse(text, strlen(text), "k.csv", &kernels, &error);
}

/* rocprofv3's columns in any order, with a leading Guid and the older LDS name; rows sorted by start, equal starts
 * in file order. */
static void test_rocprofv3(void **state)
{
	(void)state;
	assert_int_equal(parse("\"Guid\",\"Kind\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\",\"Queue_Id\","
			       "\"Group_Segment_Size\",\"VGPR_Count\","
			       "\"Accum_VGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\","
			       "\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
			       "g,KERNEL_DISPATCH,\"late, one\",2000,2500,3,1024,12,4,64,2,1,1000,3,1\n"
			       "g,KERNEL_DISPATCH,early,1000,1001,1,0,8,0,1,1,1,1,1,1\n"
			       "g,KERNEL_DISPATCH,early2,1000,1002,1,0,8,0,1,1,1,1,1,1\n"),
			 0);
	assert_int_equal(kernels.count, 3);
	assert_true(kernels.has_times);
	assert_string_equal(kernels.kernels[0].name, "early");
	assert_string_equal(kernels.kernels[1].name, "early2");
	assert_string_equal(kernels.kernels[2].name, "late, one");
	assert_int_equal(kernels.kernels[2].duration_ns, 500);
	assert_int_equal(kernels.kernels[2].queue, 3);
	assert_int_equal(kernels.kernels[2].lds_size, 1024);
	assert_int_equal(kernels.kernels[2].vgprs, 16);
	assert_int_equal(kernels.kernels[2].workgroup_size, 128);
	assert_int_equal(kernels.kernels[2].workgroups, 16 * 2);
	assert_int_equal(kernels.kernels[2].per_cu_max, 0);
	gp_trace_kernels_fini(&kernels);
	gp_trace_kernels_fini(&kernels);
}

/* A sequence of one's own: durations, and the order of the file. */
static void test_durations(void **state)
{
	(void)state;
	assert_int_equal(parse("Kernel_Name,Duration_Ns\nb,20000000\na,10\n"), 0);
	assert_int_equal(kernels.count, 2);
	assert_false(kernels.has_times);
	assert_string_equal(kernels.kernels[0].name, "b");
	assert_int_equal(kernels.kernels[0].duration_ns, 20000000);
	assert_int_equal(kernels.kernels[0].workgroups, 0);
	gp_trace_kernels_fini(&kernels);
}

/* Orion's lists. */
static void test_orion(void **state)
{
	(void)state;
	assert_int_equal(parse("Name,Profile,Memory_footprint,SM_usage,Duration\nConv,1,0,98,100480\nx,-1,0,1,10\n"),
			 0);
	assert_int_equal(kernels.kernels[0].workgroups, 98);
	assert_int_equal(kernels.kernels[0].duration_ns, 100480);
	gp_trace_kernels_fini(&kernels);
}

/* A long name is cut at a character's end; what is not UTF-8 becomes a question mark. */
static void test_names(void **state)
{
	char text[256] = "Kernel_Name,Duration_Ns\n";

	(void)state;
	for (int i = 0; i < 40; i++)
		strcat(text, "µ");
	strcat(text, ",5\na\xff,5\n");
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(kernels.kernels[0].name), 62);
	assert_string_equal(kernels.kernels[1].name, "a?");
	gp_trace_kernels_fini(&kernels);
}

/* Each malformed file is refused with its line, and nothing is returned. */
static void test_refuses(void **state)
{
#define HEADER "Kernel_Name,Start_Timestamp,End_Timestamp"
#define GRID   "Kernel_Name,Duration_Ns,Workgroup_Size_X,Workgroup_Size_Y,Grid_Size_X,Grid_Size_Y,VGPR_Count\n"
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "k.csv:1: the file is empty" },
		{ "\n\n", "k.csv:1: the file is empty" },
		{ "A,B\n1,2\n", "k.csv:1: not a list of kernels" },
		{ "Kernel_Name,Start_Timestamp\na,1\n", "k.csv:1: not a list of kernels" },
		{ HEADER "\n", "k.csv:1: there is no kernel" },
		{ HEADER "\na,1\n", "k.csv:2: the row has 2 columns" },
		{ HEADER "\na,1,2\nb,3,", "k.csv:3: column 3" },
		{ HEADER "\na,1,2\n\"b", "k.csv:3: a quoted field never ends" },
		{ HEADER "\na,5,5\n", "not after" },
		{ HEADER "\na,5,4\n", "not after" },
		{ HEADER "\n,1,2\n", "no name" },
		{ HEADER "\na,x,2\n", "k.csv:2: column 2" },
		{ HEADER "\na,1,9999999999999999\n", "longer than an hour" },
		{ HEADER ",Kind\na,1,2,MEMORY_COPY\n", "not a KERNEL_DISPATCH" },
		{ "Kernel_Name,Duration_Ns\na,0\n", "at least 1 ns" },
		{ GRID "a,1,0,1,1,1,1\n", "size is 0" },
		{ GRID "a,1,1,1,4294967295,4294967295,1\n", "more than 4294967295" },
		{ GRID "a,1,1,1,4294967296,1,1\n", "Grid_Size_X is above" },
		{ GRID "a,1,1,1,1,1,70000\n", "register count" },
		{ GRID "a,1,x,1,1,1,1\n", "column 3" },
		{ GRID "a,1,1,1,1,1,x\n", "column 7" },
		{ "Kernel_Name,Duration_Ns,Queue_Id\na,1,x\n", "column 3" },
		{ "Kernel_Name,Duration_Ns,LDS_Block_Size\na,1,x\n", "column 3" },
		{ "Kernel_Name,Duration_Ns,Accum_VGPR_Count\na,1,x\n", "column 3" },
		{ "Name,SM_usage,Duration\na,x,1\n", "column 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kernels.count = 77;
		assert_true(parse(cases[i].text) < 0);
		if (!strstr(error.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].says);
		assert_int_equal(kernels.count, 77);
	}
	assert_int_equal(gp_trace_kernels_load("/nowhere.csv", &kernels, &error), -ENOENT);
}

/* A real trace cut at every byte either gives whole rows or a sentence; never half a kernel. */
static void test_truncated_anywhere(void **state)
{
	static const char text[] =
		"\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\",\"Queue_Id\"\n\"a\",\"100\",\"200\","
		"\"1\"\n\"b\",\"300\",\"400\",\"1\"\n";

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		int r = gp_trace_kernels_parse(text, i, "k.csv", &kernels, &error);

		if (r == 0) {
			assert_true(kernels.count >= 1 && kernels.kernels[0].duration_ns == 100);
			gp_trace_kernels_fini(&kernels);
		} else {
			assert_ptr_equal(strstr(error.text, "k.csv:"), error.text);
		}
	}
}

/* The files that come with the program: as many kernels as they have lines, with the figures of their first one. */
static void test_shipped(void **state)
{
	static const struct {
		const char *file;
		uint32_t count, workgroups;
	} files[] = {
		{ "data/orion-v100/bert_2_fwd.csv", 572, 1 },
		{ "data/orion-v100/bert_8_fb1.csv", 4777, 2862 },
		{ "data/orion-v100/mobilenetv2_4_fwd.csv", 152, 49 },
		{ "data/orion-v100/resnet50_32_fb1.csv", 946, 2 },
		{ "data/orion-v100/resnet50_4_fwd.csv", 175, 98 },
		{ "data/orion-v100/transformer_xl_8_fb1.csv", 4354, 40 },
		{ "data/rocprofv3-llama/decode_kernel_trace.csv", 144, 96 },
	};
	char path[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(gp_paths_share(files[i].file, path, sizeof(path)), 0);
		assert_int_equal(gp_trace_kernels_load(path, &kernels, &error), 0);
		assert_int_equal(kernels.count, files[i].count);
		assert_int_equal(kernels.kernels[0].workgroups, files[i].workgroups);
		gp_trace_kernels_fini(&kernels);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rocprofv3), cmocka_unit_test(test_durations),
		cmocka_unit_test(test_orion),     cmocka_unit_test(test_names),
		cmocka_unit_test(test_refuses),   cmocka_unit_test(test_truncated_anywhere),
		cmocka_unit_test(test_shipped),
	};

	return cmocka_run_group_tests_name("sim/kernels", tests, NULL, NULL);
}
