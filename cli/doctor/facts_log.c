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

#define LOG_SIZE 1048576u
#define LOG_READ 3 /* SYSLOG_ACTION_READ_ALL */

static bool log_has(const char *line, size_t size, const char *word)
{
	return memmem(line, size, word, strlen(word)) != NULL;
}

void gp_facts_log(struct gp_facts *facts, const char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((stop ? stop : end) - text);
		char copy[256];
		bool matters = false;

		if (log_has(text, length, "amdgpu") || log_has(text, length, "kfd") ||
		    log_has(text, length, "unlist")) {
			bool over = log_has(text, length, "oversubscribed");
			bool failed = log_has(text, length, "reemption failed") || log_has(text, length, "hws hang") ||
				      log_has(text, length, "HWS hang") || log_has(text, length, "preempt queue");
			bool reset = log_has(text, length, "GPU reset begin") || log_has(text, length, "MODE1 reset");

			facts->oversubscribed_lines += over;
			facts->preemption_lines += failed;
			facts->reset_lines += reset;
			matters = over || failed || reset;
		}
		if (matters) {
			size_t kept = length < sizeof(copy) - 1 ? length : sizeof(copy) - 1;

			memcpy(copy, text, kept);
			copy[kept] = '\0';
			gp_clean_copy(facts->log_line, sizeof(facts->log_line), copy);
		}
		text += length + 1;
	}
}

void gp_facts_add_log(struct gp_facts *facts, const char *root)
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
