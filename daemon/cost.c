/* SPDX-License-Identifier: MIT */
/*
 * Keeps the costs of transactions between runs, per device, driver version and mechanism: state_dir/costs, one line
 * each,
 *
 *   close_ns open_ns count name|driver|mechanism
 *
 * The daemon plans with them until users have values of their own (learn.c). If it cannot read the file, or the file
 * makes no sense, it uses assumed costs and says so in the status.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/state_file.h"
#include "lib/cleanup.h"

#define COST_FILE      "costs"
#define COST_FILE_SIZE 65536u
#define COST_NS_MAX    1000000000ull

static void cost_key(const struct gp_device_entry *device, char *key, size_t size)
{
	snprintf(key, size, "%s|%s|%s", device->info.name, device->info.driver,
		 gp_mechanism_name(device->info.mechanism));
	for (; *key; key++)
		if (*key == '\n')
			*key = ' ';
}

/* One line of the file. */
static bool cost_parse(const char *line, size_t line_size, uint64_t values[3], char *key, size_t key_size)
{
	const char *at = line;
	char *end;

	for (int i = 0; i < 3; i++) {
		values[i] = strtoull(at, &end, 10);
		if (end == at || *end != ' ')
			return false;
		at = end + 1;
	}
	snprintf(key, key_size, "%.*s", (int)(line_size - (size_t)(at - line)), at);
	return values[0] && values[0] < COST_NS_MAX && values[1] && values[1] < COST_NS_MAX && *key;
}

void gp_cost_load(struct gp_daemon *daemon)
{
	GP_AUTO_FREE char *text = NULL;
	char key[256], own[256];
	size_t size, line_size;
	uint64_t values[3];

	if (gp_state_file_read(daemon, COST_FILE, COST_FILE_SIZE, &text, &size, NULL))
		return;
	for (const char *line = text; *line; line += line_size + (line[line_size] == '\n')) {
		line_size = strcspn(line, "\n");
		if (!cost_parse(line, line_size, values, key, sizeof(key)))
			continue;
		for (uint32_t i = 0; i < daemon->device_count; i++) {
			struct gp_device_entry *device = &daemon->devices[i];

			cost_key(device, own, sizeof(own));
			if (strcmp(own, key))
				continue;
			device->close_prior_ns = gp_cost_bound_ns(values[0], device->info.close_ns);
			device->open_prior_ns = gp_cost_bound_ns(values[1], device->info.open_ns);
			snprintf(device->cost_source, sizeof(device->cost_source),
				 "measured before (%" PRIu64 " transactions)", values[2]);
		}
	}
}

/* Copies the lines that the daemon has no new costs for: those of other devices, drivers and mechanisms. */
static void cost_copy_others(const struct gp_daemon *daemon, const char *text, FILE *stream)
{
	char key[256], own[256];
	uint64_t values[3];
	size_t line_size;

	for (const char *line = text; *line; line += line_size + (line[line_size] == '\n')) {
		bool replaced = false;

		line_size = strcspn(line, "\n");
		if (!cost_parse(line, line_size, values, key, sizeof(key)))
			continue;
		for (uint32_t i = 0; i < daemon->device_count; i++) {
			cost_key(&daemon->devices[i], own, sizeof(own));
			replaced |= gp_cost_is_known(&daemon->devices[i]) && !strcmp(own, key);
		}
		if (!replaced)
			fprintf(stream, "%.*s\n", (int)line_size, line);
	}
}

void gp_cost_save(struct gp_daemon *daemon)
{
	GP_AUTO_FREE char *text = NULL;
	char key[256], before[256];
	struct gp_file_writer writer;
	struct gp_error error;
	bool any = false;
	size_t size;
	int r;

	for (uint32_t i = 0; i < daemon->device_count; i++)
		any |= gp_cost_is_known(&daemon->devices[i]);
	if (!any || !*daemon->config.state_dir)
		return;
	r = gp_state_file_open(daemon, COST_FILE, &writer, &error);
	if (r) {
		gp_state_file_tried("costs", r, &error, &daemon->cost_failed);
		return;
	}
	if (!gp_state_file_read(daemon, COST_FILE, COST_FILE_SIZE, &text, &size, NULL))
		cost_copy_others(daemon, text, writer.stream);
	for (uint32_t i = 0; i < daemon->device_count; i++) {
		const struct gp_device_entry *device = &daemon->devices[i];
		bool same = false;

		cost_key(device, key, sizeof(key));
		for (uint32_t k = 0; k < i; k++) {
			cost_key(&daemon->devices[k], before, sizeof(before));
			same |= gp_cost_is_known(&daemon->devices[k]) && !strcmp(before, key);
		}
		if (gp_cost_is_known(device) && !same)
			fprintf(writer.stream, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", gp_cost_ns(device, false),
				gp_cost_ns(device, true), device->close_hist.count + device->open_hist.count, key);
	}
	r = gp_file_commit(&writer, &error);
	gp_state_file_tried("costs", r, &error, &daemon->cost_failed);
}

void gp_cost_due(struct gp_daemon *daemon, uint64_t now_ns)
{
	(void)now_ns;
	gp_cost_save(daemon);
}
