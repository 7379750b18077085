/* SPDX-License-Identifier: MIT */
/*
 * GPUs that root has paused. A pause lasts until root resumes the GPU, so state_dir/paused keeps it for the next
 * daemon, one line each,
 *
 *   GPU who and since when
 *
 * Lines of GPUs that are not here, or that another daemon has, stay as they are.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "daemon/daemon.h"
#include "daemon/state_file.h"
#include "lib/cleanup.h"

#define STOPPED_FILE      "paused"
#define STOPPED_FILE_SIZE 65536u
#define STOPPED_KEY_SIZE  (GP_DEVICE_NAME_SIZE + 16)

/* Without blanks. */
static void stopped_key(const struct gp_device_entry *device, char key[STOPPED_KEY_SIZE])
{
	if (*device->info.identity)
		snprintf(key, STOPPED_KEY_SIZE, "%s", device->info.identity);
	else
		snprintf(key, STOPPED_KEY_SIZE, "%s-%u", device->driver->ops->name, device->info.gpu_id);
}

static bool stopped_is_of(const char *line, const struct gp_device_entry *device)
{
	char key[STOPPED_KEY_SIZE];
	size_t size;

	stopped_key(device, key);
	size = strlen(key);
	return !strncmp(line, key, size) && line[size] == ' ';
}

static void stopped_copy_others(const struct gp_daemon *daemon, const char *text, FILE *stream)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		bool is_own = false;

		for (uint32_t i = 0; i < daemon->device_count; i++)
			is_own |= !daemon->devices[i].claim.is_left && stopped_is_of(line, &daemon->devices[i]);
		if (!is_own)
			fprintf(stream, "%.*s\n", (int)strcspn(line, "\n"), line);
	}
}

static void stopped_save(const struct gp_daemon *daemon)
{
	GP_AUTO_FREE char *text = NULL;
	char key[STOPPED_KEY_SIZE];
	struct gp_file_writer writer;
	struct gp_error error;
	size_t size;
	int r;

	if (!*daemon->config.state_dir)
		return;
	r = gp_state_file_open(daemon, STOPPED_FILE, &writer, &error);
	if (!r) {
		if (!gp_state_file_read(daemon, STOPPED_FILE, STOPPED_FILE_SIZE, &text, &size, NULL))
			stopped_copy_others(daemon, text, writer.stream);
		for (uint32_t i = 0; i < daemon->device_count; i++) {
			const struct gp_device_entry *device = &daemon->devices[i];

			stopped_key(device, key);
			if (device->is_paused && !device->claim.is_left)
				fprintf(writer.stream, "%s %s\n", key, device->paused_why);
		}
		r = gp_file_commit(&writer, &error);
	}
	if (r)
		gp_log("which GPUs are paused is not kept over a restart: %s", error.text);
}

void gp_device_stop(struct gp_daemon *daemon, struct gp_device_entry *device, const char *who)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	if (device->is_paused)
		return;
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &tm));
	snprintf(device->paused_why, sizeof(device->paused_why), "%s, since %s", who, when);
	device->is_paused = true;
	gp_device_halt(daemon, device, device->paused_why);
	stopped_save(daemon);
}

void gp_device_start(struct gp_daemon *daemon, struct gp_device_entry *device)
{
	bool was_paused = device->is_paused;

	device->is_paused = false;
	gp_device_go_on(daemon, device);
	if (was_paused)
		stopped_save(daemon);
}

/* What follows the name in a line of the file. */
static void stopped_take(struct gp_device_entry *device, const char *why)
{
	snprintf(device->paused_why, sizeof(device->paused_why), "%.*s", (int)strcspn(why, "\n"), why);
	for (char *at = device->paused_why; *at; at++)
		*at = isprint((unsigned char)*at) ? *at : '?';
	device->is_paused = true;
}

void gp_stopped_load(struct gp_daemon *daemon)
{
	GP_AUTO_FREE char *text = NULL;
	struct gp_error error;
	size_t size;
	int r = gp_state_file_read(daemon, STOPPED_FILE, STOPPED_FILE_SIZE, &text, &size, &error);

	if (r && r != -ENOENT)
		gp_log("every GPU is scheduled, also those that were paused: %s", error.text);
	for (const char *line = r ? "" : text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		for (uint32_t i = 0; i < daemon->device_count; i++) {
			struct gp_device_entry *device = &daemon->devices[i];

			if (device->is_paused || !stopped_is_of(line, device))
				continue;
			stopped_take(device, line + strcspn(line, " ") + 1);
			gp_device_halt(daemon, device, device->paused_why);
		}
}
