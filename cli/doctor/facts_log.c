/* SPDX-License-Identifier: MIT */
/* Owns the search of the kernel's log for the lines that matter here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include "cli/clean.h"
#include "cli/doctor/facts.h"
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/klog.h"

#define LOG_SIZE 1048576u
#define LOG_LINE 1024u /* as much of a line as is looked at: the kernel's are not longer */
#define LOG_READ 3     /* SYSLOG_ACTION_READ_ALL */

static void log_line(struct gp_doctor_facts *facts, const char *line)
{
	const struct gp_klog_pattern *pattern = gp_klog_is_driver(line) ? gp_klog_find(line) : NULL;

	if (!pattern)
		return;
	switch (pattern->kind) {
	case GP_KLOG_OVERSUBSCRIBED: facts->oversubscribed_lines++; break;
	case GP_KLOG_PREEMPTION_FAILED: facts->preemption_lines++; break;
	case GP_KLOG_RESET: facts->reset_lines++; break;
	default: return;
	}
	gp_clean_copy(facts->log_line, sizeof(facts->log_line), line);
}

void gp_facts_log(struct gp_doctor_facts *facts, const char *text, size_t size)
{
	const char *end = text + size;
	char line[LOG_LINE];

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);
		size_t kept = length < sizeof(line) - 1 ? length : sizeof(line) - 1;

		memcpy(line, text, kept);
		line[kept] = '\0';
		log_line(facts, line);
		text += length + 1;
	}
}

void gp_facts_add_log(struct gp_doctor_facts *facts, const char *root)
{
	GP_AUTO_FREE char *text = NULL;
	char path[512];
	size_t size = 0;
	int length;

	if (*root) {
		(void)snprintf(path, sizeof(path), "%s/dmesg", root);
		facts->is_log_known = !gp_file_read(path, LOG_SIZE, &text, &size, NULL);
	} else {
		text = malloc(LOG_SIZE);
		length = text ? klogctl(LOG_READ, text, (int)LOG_SIZE) : -1;
		facts->is_log_known = length >= 0;
		size = length > 0 ? (size_t)length : 0;
	}
	if (facts->is_log_known)
		gp_facts_log(facts, text, size);
}
