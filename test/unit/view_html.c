/* SPDX-License-Identifier: MIT */
/* The report: well-formed, self-contained, escaped, and small whatever was recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "test/unit/view_sample.h"

static char *render(const struct gp_result *result)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_int_equal(gp_view_html(stream, result), 0);
	fclose(stream);
	return text;
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t found = 0;

	for (; (text = strstr(text, what)); text++)
		found++;
	return found;
}

static bool is_void(const char *name)
{
	return !strcmp(name, "meta") || !strcmp(name, "!doctype");
}

/* Every tag that opens closes in order; scripts and styles are passed over. */
static void check_balance(const char *text)
{
	static char stack[64][32];
	uint32_t depth = 0;

	while ((text = strchr(text, '<'))) {
		bool is_end = text[1] == '/';
		const char *end = strchr(text, '>');
		char name[32];

		assert_non_null(end);
		text += is_end ? 2 : 1;
		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, " >/\n"), text);
		if (is_end) {
			assert_true(depth > 0);
			assert_string_equal(stack[--depth], name);
		} else if (end[-1] != '/' && !is_void(name)) {
			assert_true(depth < 64);
			strcpy(stack[depth++], name);
			if (!strcmp(name, "script") || !strcmp(name, "style"))
				end = strstr(text, !strcmp(name, "script") ? "</script" : "</style") - 1;
		}
		text = end;
	}
	assert_int_equal(depth, 0);
}

/* The sample: balanced, every section there, nothing fetched from anywhere, no number that is not one. */
static void test_sample(void **state)
{
	static const char *const needed[] = {
		"simulated, not measured",
		"What it saves, and what it costs",
		"Beside train, the p99 of serve is 3.57 ms with hpf (1.06× alone); with stock "
		"scheduling it is",
		"class=\"most\"",
		"Who had the GPU",
		"How latencies spread",
		"Who waited for whom",
		"gpreempt sim --mix serve+train",
		"prefers-color-scheme:dark",
		"name=\"viewport\"",
		"<polyline",
		"train closed: more urgent work is waiting",
		"serve waited 150 µs for train",
		"then preempted"
	};
	static const char *const banned[] = { "http:", "https:", "//",  "url(", "@import",
					      "src=",  "href=",  "nan", "-nan", "undefined" };
	struct gp_result *result = view_sample_create(1);
	char *text = render(result), *script;

	(void)state;
	check_balance(text);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!strstr(text, needed[i]))
			fail_msg("\"%s\" is missing", needed[i]);
	for (size_t i = 0; i < sizeof(banned) / sizeof(banned[0]); i++)
		if (strstr(text, banned[i]))
			fail_msg("\"%s\" must not be there", banned[i]);
	assert_int_equal(count(text, "<svg viewBox=\"0 0"), 2 + 3 + 1);
	script = strstr(text, "<script");
	assert_non_null(script);
	assert_null(strstr(script + 1, "<script"));
	free(text);
	view_sample_destroy(result);
}

/* Names that are markup stay text, in the page, in attributes and in titles. */
static void test_escapes(void **state)
{
	static const char evil[] = "<script>\"'&</title><b>";
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	strcpy(result->mix, evil);
	strcpy(result->device, evil);
	strcpy(result->device_title, evil);
	strcpy(result->command, evil);
	for (uint32_t i = 0; i < result->run_count; i++) {
		strcpy(result->runs[i].clients[0].name, evil);
		strcpy(result->runs[i].clients[1].name, "b<c\xff");
		(void)snprintf(result->runs[i].policy, sizeof(result->runs[i].policy), "p<%u>", i);
		for (uint32_t j = 0; j < result->runs[i].mark_count; j++)
			result->runs[i].marks[j].why = evil;
	}
	text = render(result);
	check_balance(text);
	assert_int_equal(count(text, "<script"), 1);
	assert_null(strchr(text, 0xff));
	free(text);
	view_sample_destroy(result);
}

/* A hundred thousand slices and marks, on hundreds of queues, still make a page of a few thousand shapes. */
static void test_caps_shapes(void **state)
{
	enum { COUNT = 100000 };
	struct gp_result *result = view_sample_create(1);
	struct gp_result_run *run = &result->runs[2];
	char *text;

	(void)state;
	for (uint32_t queues = 1; queues <= 200; queues += 199) {
		free(run->slices);
		free(run->marks);
		run->slices = calloc(COUNT, sizeof(*run->slices));
		run->marks = calloc(COUNT, sizeof(*run->marks));
		run->slice_count = run->mark_count = COUNT;
		run->window_start_ns = 0;
		run->window_end_ns = COUNT * 1000ull;
		for (uint32_t i = 0; i < COUNT; i++) {
			run->slices[i] = (struct gp_result_slice){ .start_ns = i * 1000ull,
								   .end_ns = i * 1000ull + 700,
								   .client = i % 2,
								   .queue = i % queues,
								   .preempted = i % 3 == 0 };
			run->marks[i] = (struct gp_result_mark){ .type = (enum gp_result_mark_type)(i % 8),
								 .start_ns = i * 1000ull,
								 .end_ns = i * 1000ull + i % 900,
								 .client = 0,
								 .other = 1,
								 .why = "x" };
		}
		text = render(result);
		check_balance(text);
		assert_true(count(text, "<rect") < 9000);
		assert_true(count(text, "<path") < 5000);
		assert_true(strlen(text) < 3000000);
		assert_int_equal(strstr(text, "more queues are not drawn") != NULL, queues > 48);
		free(text);
	}
	view_sample_destroy(result);
}

/* Nothing recorded, nobody waited, no request, no run, an empty window: a page all the same. */
static void test_empty(void **state)
{
	struct gp_result *result = view_sample_create(0);
	uint32_t run_count = result->run_count;
	char *text;

	(void)state;
	for (uint32_t i = 0; i < run_count; i++) {
		gp_hist_init(&result->runs[i].clients[0].latency_ns);
		result->runs[i].window_end_ns = i ? result->runs[i].window_start_ns : 0;
	}
	text = render(result);
	check_balance(text);
	assert_non_null(strstr(text, "No client waited"));
	assert_null(strstr(text, "class=\"lede\""));
	assert_null(strstr(text, "<div class=\"card\">"));
	free(text);
	result->run_count = 0;
	text = render(result);
	check_balance(text);
	free(text);
	result->run_count = run_count;
	view_sample_destroy(result);
}

/* Ends of the range: latencies of 0, 1 and the largest value, and indices that are no client. */
static void test_extremes(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	gp_hist_add(&result->runs[0].clients[0].latency_ns, 0);
	gp_hist_add(&result->runs[1].clients[0].latency_ns, UINT64_MAX);
	gp_hist_init(&result->runs[2].clients[0].latency_ns);
	gp_hist_add(&result->runs[2].clients[0].latency_ns, 1);
	result->runs[2].slices[0].client = 1000;
	result->runs[2].marks[0].client = UINT32_MAX;
	result->runs[2].waits[0].client = 1000;
	result->device_count = 2;
	text = render(result);
	check_balance(text);
	free(text);
	view_sample_destroy(result);
}

/* Requests that pile up: lower bounds in the table, arrows in the figure, a note at the curve. */
static void test_unfinished(void **state)
{
	static const char *const needed[] = { "&gt; ",
					      "6,000 requests unfinished at the end",
					      "Unfinished: still waiting",
					      "60.0 % of the requests were unfinished",
					      "M-6-7h4l8 7-8 7h-4z",
					      "requests pile up (p99 &gt; " };
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	result->runs[1].clients[0].requests = 4000;
	result->runs[1].clients[0].unfinished = 6000;
	text = render(result);
	check_balance(text);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!strstr(text, needed[i]))
			fail_msg("\"%s\" is missing", needed[i]);
	free(text);
	view_sample_destroy(result);
}

/* Many batch clients share one card and one row; waits beyond the first few are counted. */
static void test_groups(void **state)
{
	struct gp_result *result = view_sample_create(15);
	struct gp_result_run *run = &result->runs[1];
	char *text;

	(void)state;
	free(run->waits);
	run->waits = calloc(15, sizeof(*run->waits));
	run->wait_count = 15;
	for (uint32_t i = 0; i < 15; i++)
		run->waits[i] = (struct gp_result_wait){ 0, 1 + i, 3, 1000000u * (i + 1u), 5000 };
	text = render(result);
	check_balance(text);
	assert_int_equal(count(text, "<h3>train ×15"), 1);
	assert_int_equal(count(text, "<td class=\"n\">train ×15</td>"), 3);
	assert_int_equal(count(text, "each 2.54"), 2);
	assert_non_null(strstr(text, "one alone)"));
	assert_non_null(strstr(text, "and 10 more, none of them longer in all"));
	free(text);
	view_sample_destroy(result);
}

/* What there is of it has a row above the lanes, and only that. */
static void test_mark_rows(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text = render(result);

	(void)state;
	assert_int_equal(count(text, ">requests arrive</text>"), 3);
	assert_int_equal(count(text, ">gates closed</text>"), 1);
	assert_int_equal(count(text, ">inversions</text>"), 2);
	assert_int_equal(count(text, ">turns</text>"), 0);
	free(text);
	view_sample_destroy(result);
}

/* Programs on a virtual node: nobody saw what ran when, nor, in the baselines, who waited. None of it is shown as
 * none. */
static void test_emulated(void **state)
{
	struct gp_result *result = view_sample_create(1);
	char *text;

	(void)state;
	result->is_emulated = true;
	for (uint32_t i = 0; i < result->run_count; i++) {
		result->runs[i].slice_count = result->runs[i].wait_count = 0;
		result->runs[i].inversions_unknown = i < 2;
	}
	result->runs[0].inversion_count = 0;
	text = render(result);
	check_balance(text);
	assert_int_equal(count(text, " inversions"), 1); /* hpf's 803 */
	assert_null(strstr(text, "0 inversions"));
	assert_null(strstr(text, "Who had the GPU"));
	assert_null(strstr(text, "No client waited"));
	free(text);
	result->runs[2].slice_count = 1;
	text = render(result);
	assert_non_null(strstr(text, "Who had the GPU"));
	free(text);
	view_sample_destroy(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample), cmocka_unit_test(test_escapes),   cmocka_unit_test(test_caps_shapes),
		cmocka_unit_test(test_empty),  cmocka_unit_test(test_extremes),  cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_groups), cmocka_unit_test(test_mark_rows), cmocka_unit_test(test_emulated),
	};

	return cmocka_run_group_tests_name("view/html", tests, NULL, NULL);
}
