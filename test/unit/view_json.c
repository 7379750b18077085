/* SPDX-License-Identifier: MIT */
/* The JSON of a result, read back with the reader: every promised field is there with its type and value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/json.h"
#include "test/unit/view_sample.h"

static struct gp_json json;
static struct gp_error error;

static char *render(const struct gp_result *result)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(gp_view_json(stream, result), 0);
	fclose(stream);
	gp_json_init(&json, text, size, "result.json");
	return text;
}

static void next(enum gp_json_type type, const char *string)
{
	if (gp_json_next(&json, &error))
		fail_msg("%s", error.text);
	assert_int_equal(json.type, type);
	if (string)
		assert_string_equal(json.string, string);
}

static void field(const char *key, enum gp_json_type type, const char *value)
{
	next(GP_JSON_KEY, key);
	next(type, value);
}

static void check_client(bool is_service, const char *name)
{
	next(GP_JSON_OBJECT_BEGIN, NULL);
	field("name", GP_JSON_STRING, name);
	field("priority", GP_JSON_NUMBER, is_service ? "80" : "20");
	field("kind", GP_JSON_STRING, is_service ? "service" : "batch");
	field("requests", GP_JSON_NUMBER, is_service ? "10000" : "381");
	field("unfinished", GP_JSON_NUMBER, is_service ? "17" : "0");
	if (is_service) {
		field("latency_us", GP_JSON_OBJECT_BEGIN, NULL);
		field("p50", GP_JSON_NUMBER, NULL);
		field("p90", GP_JSON_NUMBER, NULL);
		field("p99", GP_JSON_NUMBER, NULL);
		field("max", GP_JSON_NUMBER, NULL);
		field("mean", GP_JSON_NUMBER, NULL);
		next(GP_JSON_OBJECT_END, NULL);
	} else {
		field("latency_us", GP_JSON_NULL, NULL);
	}
	field("throughput_per_s", GP_JSON_NUMBER, is_service ? "100.120" : "38.100");
	field("gpu_share", GP_JSON_NUMBER, NULL);
	field("wait_us", GP_JSON_NUMBER, "0.000");
	field("deadlines", GP_JSON_OBJECT_BEGIN, NULL);
	field("met", GP_JSON_NUMBER, "0");
	field("missed", GP_JSON_NUMBER, "0");
	field("refused", GP_JSON_NUMBER, "0");
	next(GP_JSON_OBJECT_END, NULL);
	next(GP_JSON_OBJECT_END, NULL);
}

static void check_run(const char *policy)
{
	next(GP_JSON_OBJECT_BEGIN, NULL);
	field("policy", GP_JSON_STRING, policy);
	field("duration_s", GP_JSON_NUMBER, "10.000000000");
	field("clients", GP_JSON_ARRAY_BEGIN, NULL);
	check_client(true, "serve");
	check_client(false, "train");
	next(GP_JSON_ARRAY_END, NULL);
	field("preemptions", GP_JSON_NUMBER, NULL);
	field("transactions", GP_JSON_NUMBER, NULL);
	field("transaction_us", GP_JSON_NUMBER, NULL);
	field("inversions", GP_JSON_OBJECT_BEGIN, NULL);
	field("count", GP_JSON_NUMBER, NULL);
	field("total_us", GP_JSON_NUMBER, NULL);
	field("max_us", GP_JSON_NUMBER, !strcmp(policy, "hpf") ? "190.000" : NULL);
	next(GP_JSON_OBJECT_END, NULL);
	field("limited", GP_JSON_NUMBER, "0");
	field("left_short", GP_JSON_NUMBER, !strcmp(policy, "hpf") ? "12" : "0");
	field("turns", GP_JSON_NUMBER, "0");
	field("aged", GP_JSON_NUMBER, "0");
	field("killed_us", GP_JSON_NUMBER, "0.000");
	next(GP_JSON_KEY, "waits");
	assert_int_equal(gp_json_skip(&json, &error), 0);
	next(GP_JSON_OBJECT_END, NULL);
}

/* Schema 1 from the first brace to the last. */
static void test_schema(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	for (uint32_t i = 0; i < result->run_count; i++)
		result->runs[i].clients[0].unfinished = 17;
	result->list_count = 1;
	result->lists[0] = (struct gp_result_list){ "vgg", "mi50", 5870000, 4824000 };
	text = render(result);
	next(GP_JSON_OBJECT_BEGIN, NULL);
	field("schema", GP_JSON_NUMBER, "1");
	field("seed", GP_JSON_NUMBER, "7");
	field("device", GP_JSON_STRING, "mi300x");
	field("device_title", GP_JSON_STRING, "AMD Instinct MI300X");
	field("devices", GP_JSON_NUMBER, "1");
	field("mix", GP_JSON_STRING, "serve+train");
	field("kernel_lists", GP_JSON_ARRAY_BEGIN, NULL);
	next(GP_JSON_OBJECT_BEGIN, NULL);
	field("name", GP_JSON_STRING, "vgg");
	field("device", GP_JSON_STRING, "mi50");
	field("model_us", GP_JSON_NUMBER, "5870.000");
	field("measured_us", GP_JSON_NUMBER, "4824.000");
	next(GP_JSON_OBJECT_END, NULL);
	next(GP_JSON_ARRAY_END, NULL);
	field("gate", GP_JSON_STRING, "process");
	field("gate_cost_us", GP_JSON_NUMBER, "150.000");
	field("dilate", GP_JSON_NUMBER, "1");
	field("command", GP_JSON_STRING, result->command);
	field("runs", GP_JSON_ARRAY_BEGIN, NULL);
	check_run("alone");
	check_run("stock");
	check_run("hpf");
	next(GP_JSON_ARRAY_END, NULL);
	next(GP_JSON_OBJECT_END, NULL);
	next(GP_JSON_END, NULL);
	free(text);
	view_sample_destroy(result);
}

/* Names with quotes, control and bad bytes come back as text; the largest numbers come back whole; no runs is an
 * empty array. */
static void test_hostile(void **state)
{
	struct gp_result *result = view_sample_create(1);
	uint32_t run_count = result->run_count;
	char *text;

	(void)state;
	strcpy(result->device, "a\"\\\n\x01\xff");
	result->seed = UINT64_MAX;
	result->gate_cost_ns = 0;
	result->run_count = 0;
	text = render(result);
	next(GP_JSON_OBJECT_BEGIN, NULL);
	field("schema", GP_JSON_NUMBER, "1");
	field("seed", GP_JSON_NUMBER, NULL);
	assert_true(json.is_u64 && json.u64 == UINT64_MAX);
	field("device", GP_JSON_STRING, "a\"\\\n\x01\xef\xbf\xbd");
	assert_non_null(strstr(text, "\"gate_cost_us\": null"));
	assert_non_null(strstr(text, "\"runs\": []\n"));
	free(text);
	result->run_count = run_count;
	view_sample_destroy(result);
}

/* A wait names its clients; an index that is none of them is a question mark, not a crash. */
static void test_waits(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	result->runs[1].waits[0].other = 99;
	text = render(result);
	assert_non_null(strstr(
		text, "\"client\": \"serve\",\n          \"other\": \"?\",\n          \"count\": 812,\n          "
		      "\"total_us\": 7900000.000"));
	free(text);
	view_sample_destroy(result);
}

/* Inversions and waits that nobody watched for are null, and none is none. */
static void test_unknown(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	for (uint32_t i = 0; i < result->run_count; i++)
		result->runs[i].wait_count = 0;
	result->runs[0].inversions_unknown = true;
	result->runs[1].inversion_count = 0;
	text = render(result);
	assert_non_null(strstr(text, "\"inversions\": null"));
	assert_null(strstr(strstr(text, "\"inversions\": null") + 1, "\"inversions\": null"));
	for (uint32_t i = 0; i < 3; i++) {
		const char *waits = strstr(i ? strstr(text, i == 1 ? "\"stock\"" : "\"hpf\"") : text, "\"waits\": ");

		assert_non_null(waits);
		assert_int_equal(!strncmp(waits + 9, "null", 4), i != 1);
	}
	free(text);
	view_sample_destroy(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests_name("view/json", tests, NULL, NULL);
}
