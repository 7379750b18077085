/* SPDX-License-Identifier: MIT */
/*
 * Keeps grants between runs of the daemon in state_dir/grants, an INI text that is replaced as a whole. The file is
 * valid for one boot of the machine, because cgroups and processes do not outlive it. The daemon checks what it
 * reads as it checks a message from outside, and does not read a file that another user could have written.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/grant.h"
#include "daemon/message.h"
#include "daemon/state_file.h"
#include "lib/aside.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/units.h"

#define GRANT_FILE      "grants"
#define GRANT_FILE_SIZE (4u << 20)
#define GRANT_BOOT_SIZE 64u

struct grant_reader {
	struct gp_daemon *daemon;
	struct gp_control_grant grant;
	struct gp_wire_attr forced;
	uint64_t start, until_ns;
	const char *boot;
	bool is_this_boot, is_open; /* is_open: a grant's lines are being read */
};

static void grant_boot(char *boot)
{
	GP_AUTO_FREE char *text = NULL;
	size_t size;

	boot[0] = '\0';
	if (gp_file_read("/proc/sys/kernel/random/boot_id", 128, &text, &size, NULL))
		return;
	snprintf(boot, GRANT_BOOT_SIZE, "%.*s", (int)strcspn(text, "\n"), text);
}

static void grant_write_attr(FILE *stream, const char *prefix, const struct gp_wire_attr *attr)
{
	if (attr->valid & GP_ATTR_PRIORITY)
		fprintf(stream, "%spriority = %d\n", prefix, attr->priority);
	if (attr->valid & GP_ATTR_WEIGHT)
		fprintf(stream, "%sweight = %u\n", prefix, attr->weight);
	if (attr->valid & GP_ATTR_SHARE)
		fprintf(stream, "%sshare = %u\n", prefix, attr->share);
	if (attr->valid & GP_ATTR_DEADLINE)
		fprintf(stream, "%sdeadline_ns = %" PRIu64 "\n", prefix, attr->deadline_ns);
	if (attr->valid & GP_ATTR_BUDGET)
		fprintf(stream, "%sbudget_ns = %" PRIu64 "\n", prefix, attr->budget_ns);
	if (attr->valid & GP_ATTR_PROTECT)
		fprintf(stream, "%sprotect = %u\n", prefix, attr->protect);
	if (attr->valid & GP_ATTR_GANG)
		fprintf(stream, "%sgang = %s\n", prefix, attr->gang);
}

static void grant_write(FILE *stream, const struct gp_grant *grant)
{
	fputs("[grant]\n", stream);
	if (grant->pid)
		fprintf(stream, "pid = %d\nstart = %" PRIu64 "\n", grant->pid, grant->start);
	else
		fprintf(stream, "cgroup = %s\n", grant->cgroup);
	grant_write_attr(stream, "", &grant->terms.attr);
	grant_write_attr(stream, "forced_", &grant->terms.forced);
	if (grant->terms.ceiling >= 0)
		fprintf(stream, "ceiling = %d\n", grant->terms.ceiling);
	if (*grant->terms.tag)
		fprintf(stream, "tag = %s\n", grant->terms.tag);
	if (grant->until_ns)
		fprintf(stream, "until_ns = %" PRIu64 "\n", grant->until_ns);
}

void gp_grant_save(struct gp_daemon *daemon)
{
	struct gp_file_writer writer;
	char boot[GRANT_BOOT_SIZE];
	struct gp_error error;
	int r;

	if (!*daemon->config.state_dir)
		return;
	grant_boot(boot);
	r = gp_state_file_open(daemon, GRANT_FILE, &writer, &error);
	if (!r) {
		fprintf(writer.stream, "[boot]\nid = %s\n", boot);
		for (const struct gp_grant *grant = daemon->grants.first; grant; grant = grant->next)
			grant_write(writer.stream, grant);
		r = gp_file_commit(&writer, &error);
	}
	gp_state_file_tried("grants", r, &error, &daemon->grants.failed);
}

static int grant_number(const char *name, const char *value, uint64_t max, uint64_t *ret_value, struct gp_error *error)
{
	return gp_units_parse_count(value, name, 0, max, ret_value, error);
}

static int grant_text(char *field, size_t size, const char *name, const char *value, struct gp_error *error)
{
	if (strlen(value) >= size)
		return gp_error_set(error, -EINVAL, "%s is too long", name);
	memset(field, 0, size);
	memcpy(field, value, strlen(value));
	return 0;
}

static int grant_read_attr(struct gp_wire_attr *attr, const char *name, const char *value, struct gp_error *error)
{
	uint64_t number = 0;
	int r;

	if (!strcmp(name, "gang")) {
		attr->valid |= GP_ATTR_GANG;
		return grant_text(attr->gang, sizeof(attr->gang), name, value, error);
	}
	r = grant_number(name, value, INT64_MAX, &number, error);
	if (r)
		return r;
	if (!strcmp(name, "priority") && number <= GP_PRIORITY_MAX) {
		attr->valid |= GP_ATTR_PRIORITY;
		attr->priority = (int32_t)number;
	} else if (!strcmp(name, "weight") && number <= GP_WEIGHT_MAX) {
		attr->valid |= GP_ATTR_WEIGHT;
		attr->weight = (uint32_t)number;
	} else if (!strcmp(name, "share") && number < 1000) {
		attr->valid |= GP_ATTR_SHARE;
		attr->share = (uint16_t)number;
	} else if (!strcmp(name, "protect") && number <= GP_PROTECT_THROUGHPUT) {
		attr->valid |= GP_ATTR_PROTECT;
		attr->protect = (uint16_t)number;
	} else if (!strcmp(name, "deadline_ns")) {
		attr->valid |= GP_ATTR_DEADLINE;
		attr->deadline_ns = number;
	} else if (!strcmp(name, "budget_ns")) {
		attr->valid |= GP_ATTR_BUDGET;
		attr->budget_ns = number;
	} else {
		return gp_error_set(error, -EINVAL, "'%s' is not known, or its number is too large", name);
	}
	return 0;
}

/* Adds the grant whose lines have been read, unless its process has ended or its time is over. */
/* False: the process has ended, or another one has its pid by now. */
static bool grant_find_process(const struct grant_reader *reader, struct gp_grant_process *ret_process)
{
	pid_t pid = reader->grant.pid;
	int r = gp_grant_process_find(pid, GP_ASIDE_GRANT(pid), ret_process);

	if (r && r != -ESRCH)
		gp_log("the grant for process %d is lost: %s", (int)pid, gp_grant_why(r));
	return !r && ret_process->start == reader->start;
}

static int grant_close(struct grant_reader *reader, struct gp_error *error)
{
	uint64_t now_ns = gp_now_ns();
	struct gp_grant_process process = { .pidfd = -1 };
	struct gp_grant *grant;
	int r;

	if (!reader->is_open)
		return 0;
	reader->is_open = false;
	r = gp_message_check_grant(&reader->grant, error);
	if (!r)
		r = gp_message_check_attr(&reader->forced, error);
	if (r)
		return r;
	if (reader->until_ns && reader->until_ns <= now_ns)
		return 0;
	reader->grant.for_ns = reader->until_ns ? reader->until_ns - now_ns : 0;
	if (!reader->grant.pid || grant_find_process(reader, &process)) {
		if (!gp_grant_add(reader->daemon, &reader->grant, &process, &grant))
			gp_attr_overlay(&grant->terms.forced, &reader->forced);
	}
	gp_grant_process_drop(&process);
	return 0;
}

static int grant_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
		       struct gp_error *error)
{
	struct grant_reader *reader = context;
	uint64_t number = 0;
	int r;

	(void)line;
	if (!name) {
		r = grant_close(reader, error);
		reader->is_open = !strcmp(section, "grant");
		reader->grant = (struct gp_control_grant){ .verb = GP_GRANT_ADD, .ceiling = GP_GRANT_NO_CEILING };
		memset(&reader->forced, 0, sizeof(reader->forced));
		reader->start = reader->until_ns = 0;
		if (!r && strcmp(section, "grant") && strcmp(section, "boot"))
			return gp_error_set(error, -EINVAL, "there is no section [%s]", section);
		if (!r && reader->is_open && !reader->is_this_boot)
			return gp_error_set(error, -EINVAL, "a grant before the boot it belongs to");
		return r;
	}
	if (!strcmp(section, "boot") && !strcmp(name, "id")) {
		reader->is_this_boot = !strcmp(reader->boot, value);
		/* No line in the journal: what was granted before this boot is void. */
		return reader->is_this_boot ? 0 : gp_error_set(error, -ESTALE, "of an earlier boot");
	}
	if (!reader->is_open)
		return gp_error_set(error, -EINVAL, "an entry before a section");
	if (!strcmp(name, "cgroup"))
		return grant_text(reader->grant.cgroup, sizeof(reader->grant.cgroup), name, value, error);
	if (!strcmp(name, "tag"))
		return grant_text(reader->grant.tag, sizeof(reader->grant.tag), name, value, error);
	if (!strcmp(name, "pid") || !strcmp(name, "ceiling")) {
		r = grant_number(name, value, INT32_MAX, &number, error);
		*(*name == 'p' ? &reader->grant.pid : &reader->grant.ceiling) = (int32_t)number;
		return r;
	}
	if (!strcmp(name, "start"))
		return grant_number(name, value, INT64_MAX, &reader->start, error);
	if (!strcmp(name, "until_ns"))
		return grant_number(name, value, INT64_MAX, &reader->until_ns, error);
	if (!strncmp(name, "forced_", 7))
		return grant_read_attr(&reader->forced, name + 7, value, error);
	return grant_read_attr(&reader->grant.attr, name, value, error);
}

int gp_grant_parse(struct gp_daemon *daemon, const char *text, size_t size, const char *boot, struct gp_error *error)
{
	struct grant_reader reader = { .daemon = daemon, .boot = boot };
	int r = gp_ini_parse(text, size, "grants", grant_entry, &reader, error);

	return r ? r : grant_close(&reader, error);
}

void gp_grant_load(struct gp_daemon *daemon)
{
	GP_AUTO_FREE char *text = NULL;
	char boot[GRANT_BOOT_SIZE];
	struct gp_error error;
	size_t size;
	int r = gp_state_file_read(daemon, GRANT_FILE, GRANT_FILE_SIZE, &text, &size, &error);

	if (r == -ENOENT)
		return;
	grant_boot(boot);
	if (r)
		gp_log("the grants of the daemon before are lost: %s", error.text);
	else
		r = gp_grant_parse(daemon, text, size, boot, &error);
	if (r && r != -ESTALE && text)
		gp_log("%s/" GRANT_FILE ": %s; what follows there is lost", daemon->config.state_dir, error.text);
	if (daemon->grants.count)
		gp_log("%u grants are in force", daemon->grants.count);
}
