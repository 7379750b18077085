/* SPDX-License-Identifier: MIT */
/*
 * Requests that come in pieces, beside training, on the model of an H200: for each shape and each protection how long
 * a piece takes over alone, what the batch client gets, and how often its gate moves. Agents look every 250 us, as
 * gpreemptd asks for; virtual time, so the figures are the same everywhere.
 */
#include "test/unit/sim_fixture.h"

#define AHEAD_US 1500000u /* a server that starts launches ahead for so long */

static struct gp_desc desc;

/* clang-format off */
#define TRAINING "[client train]\nkind = batch\npriority = 20\ndepth = 16\nunseen = yes\nstep = kernel full 2ms x20\n"
#define URGENT(how) "[client urgent]\nkind = service\npriority = 80\nunseen = yes\n" how
/* Sixteen tokens, an event behind a copy each, and the host's time between them. */
#define TOKENS URGENT("arrival = closed\nthink = 46us\nsession = 16\npause = 33ms\nwarm = 64\n" \
		      "step = kernel full 2.8ms\nstep = copy 64B to-host\nstep = kernel 1 2us\n")
/* Kernel by kernel, by a host that needs five times as long as the GPU. */
#define EAGER URGENT("arrival = closed\nthink = 50us\nsession = 4000\npause = 300ms\nwarm = 400\nstep = kernel full 10us\n")
/* One kernel a request, and time between them for ten switches. */
#define SEPARATE URGENT("arrival = periodic\nperiod = 20ms\nwarm = 10\nstep = kernel full 0.2ms\n")
/* The same, 2000 a second, each after the one before it. */
#define RATE URGENT("arrival = closed\nthink = 280us\nwarm = 400\nstep = kernel full 185us\n")
/* The same, each in its time, whether the one before it is done or not. */
#define OPEN URGENT("arrival = periodic\nperiod = 490us\nwarm = 400\nstep = kernel full 185us\n")
/* Kernel by kernel, by a host that does not wait for them. */
#define AHEAD URGENT("arrival = periodic\nperiod = 90us\nwarm = 400\nstep = kernel full 10us\n")
/* Phases of one server: kernel by kernel for a second, then by graphs; and the other way round. The core knows phases
 * by device, so two clients that are never at work together are one program that changes. */
#define TOKENS_LATE URGENT("start = 1s\narrival = closed\nthink = 46us\nsession = 16\npause = 33ms\n" \
			   "step = kernel full 2.8ms\nstep = copy 64B to-host\nstep = kernel 1 2us\n")
#define EAGER_FIRST "[client first]\nkind = service\npriority = 80\nunseen = yes\narrival = closed\nthink = 50us\nsession = 6000\npause = 1000s\n" \
		    "step = kernel full 10us\n"
#define EAGER_LATE URGENT("start = 1s\narrival = closed\nthink = 50us\nsession = 4000\npause = 300ms\nstep = kernel full 10us\n")
#define TOKENS_FIRST "[client first]\nkind = service\npriority = 80\nunseen = yes\narrival = closed\nthink = 46us\nsession = 320\npause = 1000s\n" \
		     "step = kernel full 2.8ms\nstep = copy 64B to-host\nstep = kernel 1 2us\n"
/* A server that starts kernel by kernel without waiting for each, and answers by graphs from then on. */
#define TOKENS_AFTER URGENT("start = 1600ms\narrival = closed\nthink = 46us\nsession = 16\npause = 33ms\n" \
			    "step = kernel full 2.8ms\nstep = copy 64B to-host\nstep = kernel 1 2us\n")
#define AHEAD_FIRST(kernel) "[client first]\nkind = service\npriority = 80\nunseen = yes\nstep = kernel " kernel "\n"
/* A kernel that never ends. */
#define ENDLESS "[client urgent]\nkind = batch\npriority = 80\nunseen = yes\nstep = kernel full 3000s\n"
/* clang-format on */

struct shape {
	const char *name, *urgent;
	enum gp_protect protect;
	uint32_t p50_permille_most;          /* over alone */
	uint32_t p50_permille_least;         /* what it would be without */
	uint32_t batch_permille_least;       /* of the device */
	uint32_t transactions_per_1000_most; /* of the urgent client's requests */
};

static const struct shape shapes[] = {
	{ "tokens, latency", TOKENS, GP_PROTECT_LATENCY, 10, 0, 390, 140 },
	{ "tokens, balanced", TOKENS, GP_PROTECT_BALANCED, 10, 0, 390, 140 },
	{ "tokens, throughput", TOKENS, GP_PROTECT_THROUGHPUT, 150, 80, 370, 0 },
	{ "separate, latency", SEPARATE, GP_PROTECT_LATENCY, 1000, 0, 960, 0 },
	{ "separate, balanced", SEPARATE, GP_PROTECT_BALANCED, 1000, 0, 960, 0 },
	{ "eager, latency", EAGER, GP_PROTECT_LATENCY, 20, 0, 200, 10 },
	{ "eager, balanced", EAGER, GP_PROTECT_BALANCED, 20, 0, 450, 10 },
	{ "rate, latency", RATE, GP_PROTECT_LATENCY, 20, 0, 3, 10 },
	{ "rate, balanced", RATE, GP_PROTECT_BALANCED, 20, 0, 250, 10 },
	{ "rate, throughput", RATE, GP_PROTECT_THROUGHPUT, 6000, 4000, 550, 0 },
	{ "open, balanced", OPEN, GP_PROTECT_BALANCED, 1000, 0, 200, 10 },
	{ "open, latency", OPEN, GP_PROTECT_LATENCY, 20, 0, 3, 10 },
	{ "ahead, balanced", AHEAD, GP_PROTECT_BALANCED, 60000, 0, 560, 10 },
	{ "ahead, throughput", AHEAD, GP_PROTECT_THROUGHPUT, 60000, 20000, 560, 0 },
	{ "endless, latency", ENDLESS, GP_PROTECT_LATENCY, 0, 0, 50, 0 },
	{ "endless, balanced", ENDLESS, GP_PROTECT_BALANCED, 0, 0, 50, 0 },
};

static const struct shape phases[] = {
	{ "eager, then tokens", TOKENS_LATE EAGER_FIRST, GP_PROTECT_BALANCED, 10, 0, 350, 20 },
	{ "tokens, then eager", EAGER_LATE TOKENS_FIRST, GP_PROTECT_BALANCED, 20, 0, 380, 10 },
};

static struct gp_result_run run_mix(const char *mix, enum gp_protect protect, const char *mode)
{
	struct gp_workload workload;
	struct gp_sim_config config;
	struct gp_result_run run;
	struct gp_error error = { "" };

	fixture_mix(mix, &desc, &workload);
	config = fixture_config(&desc, &workload);
	config.gate_cost_ns = 0; /* as the device has it */
	config.sample_ns = 250 * US;
	config.duration_ns = 5 * S;
	config.param.protect = protect;
	if (gp_mode_run(&config, mode, NULL, &run, &error))
		fail_msg("%s", error.text);
	gp_workload_fini(&workload);
	return run;
}

static struct gp_result_run run_shape(const struct shape *shape, const char *mode)
{
	char mix[2048];

	snprintf(mix, sizeof(mix), "%s%s", shape->urgent, TRAINING);
	return run_mix(mix, shape->protect, mode);
}

static void test_shapes(void **state)
{
	uint64_t alone_ns, over, transactions;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct shape *shape = &shapes[i];
		struct gp_result_run alone = run_shape(shape, "alone"), run = run_shape(shape, "hpf");

		alone_ns = gp_hist_quantile(&alone.clients[0].latency_ns, 500);
		over = alone_ns ? gp_hist_quantile(&run.clients[0].latency_ns, 500) * 1000 / alone_ns : 1000;
		transactions = run.transactions * 1000 / (run.clients[0].requests + 1);
		print_message("%s: p50 %u of alone, batch %u, transactions %u\n", shape->name, (unsigned int)over,
			      run.clients[1].gpu_share_ppm / 1000, (unsigned int)transactions);
		assert_in_range(over, 1000 + shape->p50_permille_least, 1000 + shape->p50_permille_most);
		assert_true(run.clients[1].gpu_share_ppm / 1000 >= shape->batch_permille_least);
		assert_true(transactions <= shape->transactions_per_1000_most);
		gp_sim_result_fini(&alone);
		gp_sim_result_fini(&run);
	}
}

/* What was decided for one phase does not outlive it: nine of ten requests of the next are as fast as if they had been
 * the first. */
static void test_phases(void **state)
{
	uint64_t alone_ns, over, most, transactions;

	(void)state;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		const struct shape *shape = &phases[i];
		struct gp_result_run alone = run_shape(shape, "alone"), run = run_shape(shape, "hpf");
		uint32_t train = run.client_count - 1;

		alone_ns = gp_hist_quantile(&alone.clients[0].latency_ns, 500);
		over = gp_hist_quantile(&run.clients[0].latency_ns, 500) * 1000 / alone_ns;
		most = gp_hist_quantile(&run.clients[0].latency_ns, 900) * 1000 / alone_ns;
		transactions = run.transactions * 1000 / (run.clients[0].requests + run.clients[1].requests + 1);
		print_message("%s: p50 %u and p90 %u of alone, batch %u, transactions %u\n", shape->name,
			      (unsigned int)over, (unsigned int)most, run.clients[train].gpu_share_ppm / 1000,
			      (unsigned int)transactions);
		assert_in_range(over, 1000, 1000 + shape->p50_permille_most);
		assert_in_range(most, 1000, 1000 + shape->p50_permille_most);
		assert_true(run.clients[train].gpu_share_ppm / 1000 >= shape->batch_permille_least);
		assert_true(transactions <= shape->transactions_per_1000_most);
		gp_sim_result_fini(&alone);
		gp_sim_result_fini(&run);
	}
}

struct text {
	char *at;
	size_t size, used;
};

static void add(struct text *text, const char *words)
{
	text->used += (size_t)snprintf(text->at + text->used, text->size - text->used, "%s", words);
	assert_true(text->used < text->size);
}

/* Requests at these times: so many, one in so long. Each list has a line of its own. */
static void add_times(struct text *text, uint32_t from_us, uint32_t count, uint32_t every_us)
{
	char word[32];
	uint32_t i;

	for (i = 0; i < count; i++) {
		snprintf(word, sizeof(word), "%s %uus", i % 40 ? "" : "\noffsets =", from_us + i * every_us);
		add(text, word);
	}
}

static struct text text_new(const char *words)
{
	struct text text = { .at = malloc(512 * 1024), .size = 512 * 1024 };

	assert_non_null(text.at);
	add(&text, words);
	return text;
}

/* A server that launches ahead while it starts, and then answers by graphs: the limit of switches ends with the start,
 * and nearly all tokens are as fast as alone. The first token of a request waits for one switch, also before that end:
 * the limit is not for requests after a pause. */
static void test_starts_ahead(void **state)
{
	static const struct {
		const char *first;
		uint32_t count, every_us, quantile, max_permille; /* of one in so many thousand, and of all */
	} starts[] = {
		{ AHEAD_FIRST("full 3us"), 290, 90, 990, 1100 },   { AHEAD_FIRST("full 3us"), 400, 70, 990, 1100 },
		{ AHEAD_FIRST("full 10us"), 400, 70, 990, 1100 },  { AHEAD_FIRST("1 10us"), 500, 55, 990, 1100 },
		{ AHEAD_FIRST("full 10us"), 200, 130, 980, 3000 }, { AHEAD_FIRST("full 10us"), 150, 180, 980, 1100 },
		{ AHEAD_FIRST("full 20us"), 100, 260, 980, 3000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		uint32_t token_us = starts[i].count * starts[i].every_us + 2000, at_us;
		struct text mix = text_new(TOKENS_AFTER);
		struct gp_result_run run;
		uint64_t p50_ns, most_ns, max_ns;

		add(&mix, starts[i].first);
		for (at_us = 0; at_us < AHEAD_US; at_us += token_us)
			add_times(&mix, at_us, starts[i].count, starts[i].every_us);
		add(&mix, "\n" TRAINING);
		run = run_mix(mix.at, GP_PROTECT_BALANCED, "hpf");
		free(mix.at);
		p50_ns = gp_hist_quantile(&run.clients[0].latency_ns, 500);
		most_ns = gp_hist_quantile(&run.clients[0].latency_ns, starts[i].quantile);
		max_ns = gp_hist_quantile(&run.clients[0].latency_ns, 1000);
		print_message("%u launches, one in %u us, then tokens: nearly all %u and max %u of p50, batch %u\n",
			      starts[i].count, starts[i].every_us, (unsigned int)(most_ns * 1000 / p50_ns),
			      (unsigned int)(max_ns * 1000 / p50_ns), run.clients[2].gpu_share_ppm / 1000);
		assert_in_range(most_ns * 1000 / p50_ns, 1000, 1100);
		assert_in_range(max_ns * 1000 / p50_ns, 1000, starts[i].max_permille);
		gp_sim_result_fini(&run);
	}
}

/* A server that launches ahead and answers by graphs in turns, and requests beside short bursts of launches: both keep
 * changing, and the batch client keeps its share. */
static void test_to_and_fro(void **state)
{
	static const char urgent[] =
		"[client urgent]\nkind = service\npriority = 80\nunseen = yes\nstep = kernel full ";
	static const struct {
		const char *name, *kernel;
		uint32_t period_us, ahead_us, every_us;     /* it launches ahead for the first part of each period */
		uint32_t from_us, count, apart_us, then_us; /* and then so many requests, and a pause, until its end */
		uint32_t batch_permille_least;
	} cases[] = {
		{ "200 ms each", "2.5ms", 400000, 200000, 60, 200000, 16, 2900, 20000, 330 },
		{ "100 ms each", "2.5ms", 200000, 100000, 60, 100000, 16, 2900, 20000, 330 },
		{ "bursts of 6 ms", "185us", 50000, 6000, 40, 0, 107, 465, 0, 150 },
		{ "bursts of 12 ms", "185us", 100000, 12000, 40, 0, 215, 465, 0, 150 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text mix = text_new(urgent);
		struct gp_result_run run;
		uint32_t at_us, us, end_us;

		add(&mix, cases[i].kernel);
		for (at_us = 0; at_us < 5000000; at_us += cases[i].period_us) {
			end_us = at_us + cases[i].period_us;
			for (us = at_us + cases[i].from_us; us + cases[i].count * cases[i].apart_us <= end_us;
			     us += cases[i].count * cases[i].apart_us + cases[i].then_us)
				add_times(&mix, us, cases[i].count, cases[i].apart_us);
		}
		add(&mix, "\n" AHEAD_FIRST("full 10us"));
		for (at_us = 0; at_us < 5000000; at_us += cases[i].period_us)
			add_times(&mix, at_us, cases[i].ahead_us / cases[i].every_us, cases[i].every_us);
		add(&mix, "\n" TRAINING);
		run = run_mix(mix.at, GP_PROTECT_BALANCED, "hpf");
		free(mix.at);
		print_message("%s: p50 %u us, batch %u\n", cases[i].name,
			      (unsigned int)(gp_hist_quantile(&run.clients[0].latency_ns, 500) / 1000),
			      run.clients[2].gpu_share_ppm / 1000);
		assert_true(run.clients[2].gpu_share_ppm / 1000 >= cases[i].batch_permille_least);
		gp_sim_result_fini(&run);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_phases),
		cmocka_unit_test(test_starts_ahead),
		cmocka_unit_test(test_to_and_fro),
	};

	fixture_desc("h200", &desc);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
