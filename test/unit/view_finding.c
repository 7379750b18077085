/* SPDX-License-Identifier: MIT */
/* The sentence: what it says of complete results, and that it says less, not nonsense, of others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "test/unit/view_sample.h"
#include "view/finding.h"

static char text[GP_FINDING_SIZE];

static void expect(const struct gp_result *result, const char *sentence)
{
	assert_string_equal(gp_finding_text(result, text, sizeof(text)), sentence);
}

/* A service with 20 % of the GPU, and a batch client that has all of it alone and 76 % beside the service. */
static struct gp_result *sample(uint32_t batch_count)
{
	struct gp_result *result = view_sample_create(batch_count);

	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 1; j <= batch_count; j++) {
			struct gp_result_client *client = &result->runs[i].clients[j];

			client->gpu_share_ppm = i ? 760000u / batch_count : 1000000u;
			client->throughput_milli = i ? 38000u / batch_count : 50000u;
		}
	return result;
}

/* Alone, stock and a policy: all of it; requests that pile up are said to. */
static void test_complete(void **state)
{
	struct gp_result *result = sample(1);

	(void)state;
	expect(result,
	       "Beside train, the p99 of serve is 3.57 ms with hpf (1.06× alone); with stock scheduling it is 22.3 ms "
	       "(6.60×). train keeps 95 % of what serve leaves (95 % with stock scheduling).");
	result->runs[1].clients[0].unfinished = 9000;
	expect(result,
	       "Beside train, the p99 of serve is 3.57 ms with hpf (1.06× alone); with stock scheduling requests pile "
	       "up (p99 > 22.3 ms). train keeps 95 % of what serve leaves.");
	result->runs[2].clients[0].unfinished = 200;
	expect(result,
	       "Beside train, requests of serve pile up with hpf (p99 > 3.57 ms, > 1.06× alone); with stock scheduling "
	       "requests pile up (p99 > 22.3 ms).");
	view_sample_destroy(result);
}

/* Whoever is worse off than with stock scheduling is named, with how much; nobody else is. */
static void test_worse(void **state)
{
	struct gp_result *result = sample(1);

	(void)state;
	result->runs[2].clients[1].throughput_milli = 24000;
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, " Worse than with stock scheduling: train (63 % of its throughput)."));
	result->runs[2].clients[1].throughput_milli = 37900;
	gp_finding_text(result, text, sizeof(text));
	assert_null(strstr(text, "Worse"));
	/* A service too; one that piled up with stock scheduling cannot get worse. */
	result->runs[1].clients[0].latency_ns = result->runs[0].clients[0].latency_ns;
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, " Worse than with stock scheduling: serve (p99 3.57 ms instead of "));
	result->runs[1].clients[0].unfinished = 9000;
	gp_finding_text(result, text, sizeof(text));
	assert_null(strstr(text, "Worse"));
	view_sample_destroy(result);
}

/* A group of batch clients is told together: each alone has the whole GPU, together they share it. */
static void test_group(void **state)
{
	struct gp_result *result = sample(10);

	(void)state;
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, "Beside train ×10, the p99"));
	assert_non_null(strstr(text, ". train ×10 together keep 95 % of what serve leaves ("));
	/* Of different kinds they have no name in common. */
	for (uint32_t i = 0; i < result->run_count; i++) {
		strcpy(result->runs[i].clients[1].name, "other");
		strcpy(result->runs[i].clients[2].name, "another");
	}
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, "Beside 10 other clients, the p99"));
	assert_non_null(strstr(text, ". The batch clients together keep 95 % of what serve leaves ("));
	view_sample_destroy(result);
}

/* Without alone, stock, a policy or the others, what is left is said. */
static void test_incomplete(void **state)
{
	struct gp_result *result = sample(1);
	struct gp_result part = *result;

	(void)state;
	part.runs = &result->runs[1];
	part.run_count = 2;
	expect(&part, "Beside train, the p99 of serve is 3.57 ms with hpf; with stock scheduling it is 22.3 ms.");
	part.run_count = 1;
	expect(&part, "Beside train, the p99 of serve is 22.3 ms with stock scheduling.");
	part.runs = result->runs;
	expect(&part, "The p99 of serve is 3.38 ms with the GPU to itself.");
	part.run_count = 0;
	expect(&part, "");
	part.runs = &result->runs[2];
	part.run_count = 1;
	result->runs[2].client_count = 1;
	expect(&part, "The p99 of serve is 3.57 ms with hpf.");
	gp_hist_init(&result->runs[2].clients[0].latency_ns);
	expect(&part, "");
	result->runs[2].client_count = 2;
	view_sample_destroy(result);
}

/* Without services, what sharing costs; without alone, nothing. */
static void test_batch_only(void **state)
{
	struct gp_result *result = sample(4);

	(void)state;
	for (uint32_t i = 0; i < result->run_count; i++) {
		result->runs[i].clients++;
		result->runs[i].client_count--;
	}
	for (uint32_t i = 0; i < 4; i++)
		result->runs[1].clients[i].throughput_milli /= 2;
	expect(result,
	       "Sharing with hpf, train ×4 together keep 76 % of the throughput of a GPU that is not shared (38 % with "
	       "stock scheduling).");
	strcpy(result->runs[0].policy, "rr");
	result->runs[0].kind = GP_RESULT_POLICY;
	expect(result, "");
	for (uint32_t i = 0; i < result->run_count; i++)
		result->runs[i].clients--;
	view_sample_destroy(result);
}

/* Of several policies the best is told, of policies before baselines; one that piles up is the worst. */
static void test_choice(void **state)
{
	struct gp_result *result = sample(1);

	(void)state;
	strcpy(result->runs[1].policy, "rr");
	result->runs[1].kind = GP_RESULT_POLICY;
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, "with hpf"));
	result->runs[2].clients[0].unfinished = 5000;
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, "with rr"));
	strcpy(result->runs[1].policy, "reset");
	result->runs[1].kind = GP_RESULT_BASELINE;
	gp_finding_text(result, text, sizeof(text));
	assert_non_null(strstr(text, "with hpf"));
	view_sample_destroy(result);
}

/* Names from outside are cut and harmless, and a short buffer is enough to be safe. */
static void test_hostile(void **state)
{
	struct gp_result *result = sample(1);
	char small[20];

	(void)state;
	for (uint32_t i = 0; i < result->run_count; i++) {
		memset(result->runs[i].clients[0].name, '\033', sizeof(result->runs[i].clients[0].name) - 1);
		memset(result->runs[i].clients[1].name, '\xff', sizeof(result->runs[i].clients[1].name) - 1);
	}
	gp_finding_text(result, text, sizeof(text));
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, 0xff));
	assert_non_null(strstr(text, "…"));
	assert_true(strlen(gp_finding_text(result, small, sizeof(small))) < sizeof(small));
	/* Shares beyond all time, and clients that did nothing alone: not known, not a division by zero. */
	result->runs[2].clients[0].gpu_share_ppm = UINT32_MAX;
	gp_finding_text(result, text, sizeof(text));
	assert_null(strstr(text, "keeps"));
	result->runs[2].clients[0].gpu_share_ppm = 0;
	result->runs[0].clients[1].throughput_milli = 0;
	gp_finding_text(result, text, sizeof(text));
	assert_null(strstr(text, "keeps"));
	view_sample_destroy(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worse),      cmocka_unit_test(test_complete),   cmocka_unit_test(test_group),
		cmocka_unit_test(test_incomplete), cmocka_unit_test(test_batch_only), cmocka_unit_test(test_choice),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests_name("view/finding", tests, NULL, NULL);
}
