/* SPDX-License-Identifier: MIT */
/* How fast the simulator is: virtual seconds per second on one core, and how run time grows with queues and devices.
 * Prints ratios within this one run; judges nothing. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "lib/paths.h"
#include "sim/mix.h"
#include "sim/mode.h"

#define BENCH_REPEATS 3u

struct bench_case {
	const char *mix, *device, *mode; /* mix: a name, or with a line end in it the text itself */
	uint32_t device_count;
	uint64_t duration_ns;
	const char *settings[2]; /* NULL: unused */
};

static double bench_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int bench_fail(const struct gp_error *error)
{
	fprintf(stderr, "bench-sim: %s\n", error->text);
	return -1;
}

/* Seconds for one run, the shortest of several; negative: it could not be run. ret_queues: compute queues of the
 * workload, per device. */
static double bench_run(const struct bench_case *c, uint64_t *ret_queues, uint64_t *ret_requests)
{
	struct gp_mix_options options = { .device_count = c->device_count };
	struct gp_sim_config config = { .seed = 7,
					.duration_ns = c->duration_ns,
					.gate_cost_ns = 150000,
					.unit = GP_UNIT_PROCESS,
					.notice_ns = GP_SIM_DEFAULT_NS,
					.decide_ns = GP_SIM_DEFAULT_NS,
					.sample_ns = GP_SIM_DEFAULT_NS,
					.no_recording = true };
	struct gp_workload workload = { .name = "" };
	struct gp_desc desc;
	struct gp_error error = { "" };
	char path[4096], relative[64];
	double best_s = -1;
	uint32_t i;

	(void)snprintf(relative, sizeof(relative), "devices/%s.ini", c->device);
	if (gp_paths_share(relative, path, sizeof(path)) || gp_desc_load(path, &desc, &error))
		return bench_fail(&error);
	options.desc = &desc;
	for (i = 0; i < 2 && c->settings[i]; i++)
		options.settings[options.setting_count++] = c->settings[i];
	if (strchr(c->mix, '\n') ? gp_mix_parse(c->mix, strlen(c->mix), "bench", &options, &workload, &error) :
				   gp_mix_load(c->mix, &options, &workload, &error))
		return bench_fail(&error);
	config.workload = &workload;
	config.desc = &desc;
	config.device_count = workload.device_count;
	*ret_queues = 0;
	for (i = 0; i < workload.client_count; i++)
		*ret_queues += workload.clients[i].queue_count;
	for (i = 0; i < BENCH_REPEATS; i++) {
		struct gp_result_run run;
		double start_s = bench_now_s(), took_s;
		uint32_t j;

		if (gp_mode_run(&config, c->mode, NULL, &run, &error)) {
			gp_workload_fini(&workload);
			return bench_fail(&error);
		}
		took_s = bench_now_s() - start_s;
		best_s = best_s < 0 || took_s < best_s ? took_s : best_s;
		*ret_requests = 0;
		for (j = 0; j < run.client_count; j++)
			*ret_requests += run.clients[j].requests;
		gp_sim_result_fini(&run);
	}
	gp_workload_fini(&workload);
	return best_s;
}

static void bench_speed(void)
{
	static const char *const modes[] = { "stock", "hpf" };
	uint64_t queues, requests;
	uint32_t i;

	printf("10 s of serve+train on mi300x, one core (aim: at most 10 s)\n");
	for (i = 0; i < 2; i++) {
		double took_s = bench_run(
			&(struct bench_case){ "serve+train", "mi300x", modes[i], 1, 10000000000ull, { NULL } }, &queues,
			&requests);

		printf("  %-6s %9.3f s   %7.0f virtual seconds per second\n", modes[i], took_s, 10 / took_s);
	}
}

static void bench_queues(void)
{
	static const char *const clients[] = { "clients=1", "clients=25", "clients=250", "clients=2500" };
	double first_s = 0;
	uint32_t i;

	printf("\n1 s of many-small on mi300x with hpf: the same rate of requests spread over more queues\n");
	printf("  %8s %10s %10s %14s %8s\n", "queues", "seconds", "requests", "us per request", "ratio");
	for (i = 0; i < 4; i++) {
		uint64_t queues, requests;
		double took_s = bench_run(
			&(struct bench_case){ "many-small", "mi300x", "hpf", 1, 1000000000ull, { clients[i] } },
			&queues, &requests);

		first_s = i ? first_s : took_s / (double)requests;
		printf("  %8llu %10.3f %10llu %14.1f %8.1f\n", (unsigned long long)queues, took_s,
		       (unsigned long long)requests, took_s / (double)requests * 1e6,
		       took_s / (double)requests / first_s);
	}
}

static void bench_devices(void)
{
	double first_s = 0;
	uint32_t devices;

	printf("\n10 s of a service beside a trainer on each of N mi300x with hpf, one scheduler for all\n");
	printf("  %8s %10s %10s %8s\n", "devices", "seconds", "requests", "ratio");
	for (devices = 1; devices <= 8; devices *= 2) {
		uint64_t queues, requests;
		double took_s;
		char text[512];

		(void)snprintf(
			text, sizeof(text),
			"[mix]\ntitle = bench\nduration = 10s\ndevices = %u\n"
			"[client serve]\nkind = service\npriority = 80\ncount = %u\ndevices = each\narrival = poisson\nrate = 150/s\n"
			"step = kernel full 0.2ms x10\n"
			"[client train]\nkind = batch\npriority = 20\ncount = %u\ndevices = each\nstep = kernel full 20ms\n",
			devices, devices, devices);
		took_s = bench_run(&(struct bench_case){ text, "mi300x", "hpf", devices, 10000000000ull, { NULL } },
				   &queues, &requests);
		first_s = devices > 1 ? first_s : took_s;
		printf("  %8u %10.3f %10llu %8.1f\n", devices, took_s, (unsigned long long)requests, took_s / first_s);
	}
}

int main(void)
{
	bench_speed();
	bench_queues();
	bench_devices();
	return 0;
}
