/* SPDX-License-Identifier: MIT */
/* Device descriptions: every shipped one is complete and sourced; what is wrong in a file is refused with its place and
 * reason. */
#include "test/unit/model_fixture.h"

static const char *const shipped[] = { "mi300x", "mi300x-cpx", "mi300a", "mi308x", "mi210", "mi100", "mi50", "h200" };

/* Each file loads; every value it has carries a source and prints as a line. */
static void test_shipped(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(shipped) / sizeof(shipped[0]); i++) {
		struct fixture f;
		char line[512];

		fixture_open(&f, shipped[i], 0, NULL);
		assert_string_equal(f.desc.name, shipped[i]);
		assert_true(strlen(f.desc.title) > 0);
		for (uint32_t key = 0; key < GP_DESC_KEY_COUNT; key++) {
			const struct gp_desc_value *value = &f.desc.values[key];

			if (!value->present) {
				assert_int_equal(gp_desc_line(&f.desc, key, line, sizeof(line)), -ENOENT);
				continue;
			}
			assert_true(strlen(value->source) > 0);
			assert_true(value->min <= value->value && value->value <= value->max);
			assert_int_equal(gp_desc_line(&f.desc, key, line, sizeof(line)), 0);
		}
		fixture_close(&f);
	}
}

/* Values come out exactly: units, choices, ranges. */
static void test_values(void **state)
{
	struct fixture f;
	char line[512];

	(void)state;
	fixture_open(&f, "mi300x", 0, NULL);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_SCHEDULER), GP_SCHEDULER_CPSCH);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_CU_COUNT), 304);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_SAVE_BANDWIDTH), 5300000000000ll);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_CLOCK), 2100000000ll);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_GATE_FIXED_NS), 105 * US);
	assert_int_equal(f.desc.values[GP_DESC_GATE_FIXED_NS].min, 60 * US);
	assert_int_equal(f.desc.values[GP_DESC_GATE_FIXED_NS].max, 500 * US);
	assert_int_equal(f.desc.values[GP_DESC_CU_COUNT].kind, GP_DESC_MEASURED);
	/* The save area of one CU is what the kernel reserves. */
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_VGPR_SIZE) + gp_desc_get(&f.desc, GP_DESC_SGPR_SIZE) +
				 gp_desc_get(&f.desc, GP_DESC_LDS_SIZE) + gp_desc_get(&f.desc, GP_DESC_HWREG_SIZE),
			 610304);
	assert_int_equal(gp_desc_line(&f.desc, GP_DESC_GATE_FIXED_NS, line, sizeof(line)), 0);
	assert_non_null(strstr(line, "gate_fixed = 105 us (60 us to 500 us) | assumed | "));
	assert_int_equal(gp_desc_line(&f.desc, GP_DESC_GATE_FIXED_NS, line, 10), -ENOSPC);
	fixture_close(&f);
}

/* What the command line may change, and how it is told what it may not. */
static void test_override(void **state)
{
	static const struct {
		const char *assignment, *says;
	} refused[] = {
		{ "blocked_head", "not of the form key=value" },
		{ "=1", "not of the form key=value" },
		{ "colour=red", "unknown key \"colour\"" },
		{ "blocked_head=spin", "none of: hold, rotate" },
		{ "gate_fixed=59us", "range of this device: from 60 us to 500 us" },
		{ "gate_fixed=60", "unit" },
		{ "scheduler=tsg", "cannot be set" },
		{ "timeslice=1ms", "cannot be set" },
		{ "slot_count=0", "outside the limits" },
		{ "slot_count=23", "multiple of pipe_count" },
		{ "queue_quantum=2h", "outside the limits" },
	};
	struct gp_error error;
	struct fixture f;

	(void)state;
	fixture_open(&f, "mi300x", 0, NULL);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct gp_desc before = f.desc;

		assert_true(gp_desc_override(&f.desc, refused[i].assignment, &error) < 0);
		if (!strstr(error.text, refused[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", refused[i].assignment, error.text, refused[i].says);
		assert_memory_equal(&before, &f.desc, sizeof(before));
	}
	fixture_override(&f, "blocked_head=rotate");
	fixture_override(&f, "gate_fixed=60us");
	fixture_override(&f, "slot_count=28");
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_BLOCKED_HEAD), 1);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_GATE_FIXED_NS), 60 * US);
	assert_int_equal(gp_desc_get(&f.desc, GP_DESC_SLOT_COUNT), 28);
	assert_int_equal(f.desc.values[GP_DESC_SLOT_COUNT].kind, GP_DESC_ASSUMED);
	fixture_close(&f);
}

/* Each way a file can be wrong, with the line it is on. */
static void test_refusals(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "[gpu]\n", "x.ini:1: the only section is [device]" },
		{ "cu_count = 1 count | assumed | me\n", "x.ini:1: the only section is [device]" },
		{ "[device]\nflavour = 3 count | assumed | me\n", "x.ini:2: unknown key \"flavour\"" },
		{ "[device]\ncu_count = 304 count\n", "x.ini:2: cu_count: write it as VALUE | kind | source" },
		{ "[device]\ncu_count = 304 count | measured\n", "VALUE | kind | source" },
		{ "[device]\ncu_count = 304 count | measured |  \n",
		  "x.ini:2: cu_count: a value without a source is refused" },
		{ "[device]\ncu_count = 304 count | guessed | me\n",
		  "x.ini:2: cu_count: kind \"guessed\" is none of: specified" },
		{ "[device]\n\ncu_count = 304 | measured | me\n", "x.ini:3: cu_count: \"304\" is not a count" },
		{ "[device]\ncu_count = 304 us | measured | me\n", "not a count" },
		{ "[device]\ncu_count = 0 count | measured | me\n", "outside the limits: from 1 count to 4096 count" },
		{ "[device]\ncu_count = 99999999999999999999 count | measured | me\n", "outside the limits" },
		{ "[device]\npacket = 4 KiB | assumed | me\n", "unknown unit" },
		{ "[device]\npacket = 4 | assumed | me\n", "no unit" },
		{ "[device]\nvgpr_size = 1 us | assumed | me\n", "unknown unit" },
		{ "[device]\nclock = fast | assumed | me\n", "not a frequency" },
		{ "[device]\nclock = 2 GB | assumed | me\n", "no known unit" },
		{ "[device]\nclock = 20 GHz | assumed | me\n", "outside the limits" },
		{ "[device]\npacket = 2..4 us | assumed | me\n", "not a range" },
		{ "[device]\npacket = 2..4 us default 5 | assumed | me\n", "default must lie within the range" },
		{ "[device]\npacket = 4..2 us default 3 | assumed | me\n", "default must lie within the range" },
		{ "[device]\nblocked_head = hold..rotate default hold | assumed | me\n", "not a range" },
		{ "[device]\nblocked_head = maybe | assumed | me\n", "none of: hold, rotate" },
		{ "[device]\nscheduler = none | assumed | me\n", "none of: cpsch, mes, tsg" },
		{ "[device]\nse_count = 4 count | assumed | me\nse_count = 4 count | assumed | me\n",
		  "x.ini:3: se_count is given twice" },
		{ "[device]\ntitle = a\ntitle = b\n", "x.ini:3: title is given twice" },
		{ "[device]\ntitle =\n", "title: 1 to" },
		{ "[device]\nse_count = 4 count | assumed | me\n", "x.ini:2: scheduler is missing" },
		{ "[device]\nscheduler = tsg | assumed | me\n", "xcc_count is missing; scheduler tsg needs it" },
		{ "[device]\nscheduler = tsg | assumed | me\npipe_count = 4 count | assumed | me\n", "missing" },
		{ "", "x.ini:1: scheduler is missing" },
	};
	struct gp_error error;
	struct gp_desc desc;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(gp_desc_parse(rows[i].text, strlen(rows[i].text), "x.ini", &desc, &error) < 0);
		if (!strstr(error.text, rows[i].says))
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, error.text, rows[i].says);
	}
	assert_true(gp_desc_load("/nonexistent/x.ini", &desc, &error) < 0);
}

/* Taking any one value out of a good file makes it incomplete, except the clock, which nothing depends on. */
static void test_every_value_is_needed(void **state)
{
	char path[4096], *text, *copy;
	struct gp_error error;
	struct gp_desc desc;
	size_t size;

	(void)state;
	assert_int_equal(gp_paths_share("devices/mi300x.ini", path, sizeof(path)), 0);
	assert_int_equal(gp_file_read(path, 1u << 20, &text, &size, &error), 0);
	copy = malloc(size + 1);
	assert_non_null(copy);
	for (char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		size_t before = (size_t)(line - text), length = (size_t)(strchr(line, '\n') - line);
		bool is_value = strchr(line, '|') && strchr(line, '|') < line + length;

		memcpy(copy, text, before);
		memcpy(copy + before, line + length, size - before - length);
		copy[size - length] = '\0';
		if (is_value)
			assert_true((gp_desc_parse(copy, size - length, "x.ini", &desc, &error) < 0) ==
				    !!strncmp(line, "clock", 5));
	}
	free(copy);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_override),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_every_value_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
