/* SPDX-License-Identifier: MIT */
/* Owns the names of the modes, and `alone`: each client simulated by itself, the rows put together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/mode.h"

#define MODE_PARTS 256u /* a run is cut into so many parts, for the progress bar */

static const struct {
	const char *name;
	enum gp_sim_mode mode;
	enum gp_result_kind kind;
} mode_baselines[] = {
	{ "stock", GP_SIM_STOCK, GP_RESULT_STOCK },
	{ "sequential", GP_SIM_SEQUENTIAL, GP_RESULT_BASELINE },
	{ "lv1", GP_SIM_LV1, GP_RESULT_BASELINE },
	{ "reset", GP_SIM_RESET, GP_RESULT_BASELINE },
};
#define MODE_BASELINES (sizeof(mode_baselines) / sizeof(mode_baselines[0]))

/* The policies that are more than one of several: the default, and the one that closes no gate. */
static const struct {
	const char *name;
	enum gp_result_kind kind;
} mode_policies[] = {
	{ GP_MODE_DEFAULT, GP_RESULT_DEFAULT },
	{ "none", GP_RESULT_BASELINE },
};

static enum gp_result_kind mode_kind(const char *name)
{
	size_t i;

	for (i = 0; i < MODE_BASELINES; i++)
		if (!strcmp(name, mode_baselines[i].name))
			return mode_baselines[i].kind;
	for (i = 0; i < sizeof(mode_policies) / sizeof(mode_policies[0]); i++)
		if (!strcmp(name, mode_policies[i].name))
			return mode_policies[i].kind;
	return GP_RESULT_POLICY;
}

static bool mode_find(const char *name, struct gp_sim_config *config)
{
	size_t i;

	for (i = 0; i < MODE_BASELINES; i++) {
		if (!strcmp(name, mode_baselines[i].name)) {
			config->mode = mode_baselines[i].mode;
			return true;
		}
	}
	for (i = 0; gp_policy_names[i]; i++) {
		if (!strcmp(name, gp_policy_names[i])) {
			config->mode = GP_SIM_CORE;
			config->policy = gp_policy_names[i];
			return true;
		}
	}
	return false;
}

bool gp_mode_is_name(const char *name)
{
	struct gp_sim_config config;

	return !strcmp(name, "alone") || mode_find(name, &config);
}

const char *gp_mode_names(char *buffer, size_t buffer_size)
{
	size_t i, used = (size_t)snprintf(buffer, buffer_size, "alone");

	for (i = 0; i < MODE_BASELINES && used < buffer_size; i++)
		used += (size_t)snprintf(buffer + used, buffer_size - used, ", %s", mode_baselines[i].name);
	for (i = 0; gp_policy_names[i] && used < buffer_size; i++)
		used += (size_t)snprintf(buffer + used, buffer_size - used, ", %s", gp_policy_names[i]);
	return buffer;
}

struct mode_part {
	const struct gp_mode_progress *progress;
	uint64_t before, total;
};

static int mode_one(const struct gp_sim_config *config, const char *name, const struct mode_part *part,
		    struct gp_result_run *ret_run, struct gp_error *error)
{
	struct gp_sim *sim;
	uint32_t i;
	int ret;

	ret = gp_sim_create(config, &sim, error);
	if (ret)
		return ret;
	for (i = 1; i <= MODE_PARTS; i++) {
		gp_sim_run_until(sim, (uint64_t)((unsigned __int128)config->duration_ns * i / MODE_PARTS));
		if (part->progress)
			part->progress->update(part->progress->context, part->before * MODE_PARTS + i,
					       part->total * MODE_PARTS);
	}
	ret = gp_sim_result(sim, name, ret_run);
	gp_sim_destroy(sim);
	return ret ? gp_error_set(error, ret, "%s: %s", name, strerror(-ret)) : 0;
}

/* Adds the one row of a run to the whole; the first service's run gives the picture. */
static void mode_merge(struct gp_result_run *whole, struct gp_result_run *run, uint32_t client)
{
	struct gp_result_client *clients = whole->clients;
	bool has_picture = whole->slice_count;
	struct gp_result_run kept;

	clients[client] = run->clients[0];
	if (!has_picture && run->clients[0].is_service && run->slice_count) {
		kept = *whole;
		whole->slices = run->slices;
		whole->slice_count = run->slice_count;
		whole->marks = run->marks;
		whole->mark_count = run->mark_count;
		whole->window_start_ns = run->window_start_ns;
		whole->window_end_ns = run->window_end_ns;
		run->slices = kept.slices;
		run->marks = kept.marks;
	}
	whole->duration_ns = run->duration_ns;
	gp_sim_result_fini(run);
}

static int mode_alone(const struct gp_sim_config *base, const struct gp_mode_progress *progress,
		      struct gp_result_run *ret_run, struct gp_error *error)
{
	uint32_t i, count = base->workload->client_count;
	struct mode_part part = { .progress = progress, .total = count };
	struct gp_sim_config config = *base;
	struct gp_result_run whole = { .policy = "alone", .kind = GP_RESULT_ALONE }, run;
	int ret = 0;

	whole.clients = calloc(count, sizeof(*whole.clients));
	if (!whole.clients)
		return gp_error_set(error, -ENOMEM, "out of memory");
	whole.client_count = count;
	config.mode = GP_SIM_STOCK;
	config.has_only_client = true;
	for (i = 0; i < count && !ret; i++) {
		config.only_client = i;
		part.before = i;
		config.no_recording = base->no_recording || whole.slice_count;
		ret = mode_one(&config, "alone", &part, &run, error);
		if (!ret)
			mode_merge(&whole, &run, i);
	}
	if (ret) {
		gp_sim_result_fini(&whole);
		return ret;
	}
	*ret_run = whole;
	return 0;
}

int gp_mode_run(const struct gp_sim_config *base, const char *name, const struct gp_mode_progress *progress,
		struct gp_result_run *ret_run, struct gp_error *error)
{
	struct mode_part part = { .progress = progress, .total = 1 };
	struct gp_sim_config config = *base;
	char names[200];
	int ret;

	if (!strcmp(name, "alone"))
		return mode_alone(base, progress, ret_run, error);
	if (!mode_find(name, &config))
		return gp_error_set(error, -EINVAL, "there is no policy \"%.40s\"; valid names are: %s", name,
				    gp_mode_names(names, sizeof(names)));
	ret = mode_one(&config, name, &part, ret_run, error);
	if (!ret)
		ret_run->kind = mode_kind(name);
	return ret;
}
