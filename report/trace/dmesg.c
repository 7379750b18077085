/* SPDX-License-Identifier: MIT */
/* Owns what the kernel's log says about KFD: queues created, the run list oversubscribed, preemptions that failed,
 * resets, evictions, and which scheduler is at work (lib/klog.c). Other lines are passed over. */
#include <errno.h>
#include <string.h>
#include "lib/klog.h"
#include "report/trace/lines.h"
#include "report/trace/readers.h"
#include "report/trace/rows.h"

static enum gp_fact_kind dmesg_fact(enum gp_klog_kind kind)
{
	switch (kind) {
	case GP_KLOG_OVERSUBSCRIBED: return GP_FACT_OVERSUBSCRIBED;
	case GP_KLOG_PREEMPTION_FAILED: return GP_FACT_PREEMPTION_FAILED;
	case GP_KLOG_RESET: return GP_FACT_RESET;
	case GP_KLOG_EVICTION: return GP_FACT_EVICTION;
	case GP_KLOG_SCHEDULER: return GP_FACT_SCHEDULER;
	case GP_KLOG_QUEUE_CREATED: break;
	}
	return GP_FACT_QUEUE_CREATED;
}

/* "[  123.456789] ..." */
static bool dmesg_time(const char *line, uint64_t *ret_ns)
{
	const char *at = strchr(line, '[');
	uint64_t seconds = 0, part = 0, scale = 100000000;
	size_t whole;

	if (!at)
		return false;
	at += 1 + strspn(at + 1, " ");
	whole = strspn(at, "0123456789");
	if (at[whole] != '.' || !gp_rows_u64(at, whole, &seconds) || seconds > 10000000000ull)
		return false;
	for (at += whole + 1; *at >= '0' && *at <= '9'; at++, scale /= 10)
		part += (uint64_t)(*at - '0') * scale;
	*ret_ns = seconds * 1000000000ull + part;
	return true;
}

int gp_read_dmesg(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	struct gp_lines lines;
	int r;

	gp_lines_init(&lines, input);
	while ((r = gp_lines_next(&lines, error)) > 0) {
		const struct gp_klog_pattern *pattern = gp_klog_find(lines.text);
		struct gp_fact fact = { .row = lines.line };

		if (!pattern)
			continue;
		fact.kind = dmesg_fact(pattern->kind);
		fact.text = pattern->text ? pattern->text : lines.text;
		fact.has_time = dmesg_time(lines.text, &fact.time_ns);
		r = sink->fact(sink->context, &fact, error);
		if (r)
			return r;
	}
	return r;
}
