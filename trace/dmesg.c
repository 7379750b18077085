/* SPDX-License-Identifier: MIT */
/* Owns what the kernel's log says about KFD: queues created, the run list oversubscribed, preemptions that failed,
 * resets, evictions, and which scheduler is at work. Other lines are passed over. */
#include <errno.h>
#include <string.h>
#include "trace/lines.h"
#include "trace/readers.h"
#include "trace/rows.h"

struct dmesg_pattern {
	const char *words, *also; /* both must be in the line, whatever their case */
	enum gp_fact_kind kind;
	const char *text; /* NULL: the line itself */
};

/* The first that fits counts. Sentences of amdkfd and amdgpu, Linux 5.x to 6.x and DKMS. */
static const struct dmesg_pattern dmesg_patterns[] = {
	{ "oversubscribed", NULL, GP_FACT_OVERSUBSCRIBED, NULL },
	{ "preemption failed", NULL, GP_FACT_PREEMPTION_FAILED, NULL },
	{ "preemption time out", NULL, GP_FACT_PREEMPTION_FAILED, NULL },
	{ "unsuccessful queues preemption", NULL, GP_FACT_PREEMPTION_FAILED, NULL },
	{ "failed to remove hardware queue", NULL, GP_FACT_PREEMPTION_FAILED, NULL },
	{ "failed to suspend gang", NULL, GP_FACT_PREEMPTION_FAILED, NULL },
	{ "fence wait loop timeout", "qcm", GP_FACT_PREEMPTION_FAILED, NULL },
	{ "gpu reset begin", NULL, GP_FACT_RESET, NULL },
	{ "evicting", "pasid", GP_FACT_EVICTION, NULL },
	{ "evicting", "queues", GP_FACT_EVICTION, NULL },
	{ "enable_mes", "=0", GP_FACT_SCHEDULER, "CPSCH" },
	{ "enable_mes", "=1", GP_FACT_SCHEDULER, "MES" },
	{ "mes", "scheduler enabled", GP_FACT_SCHEDULER, "MES" },
	{ "cpsch", NULL, GP_FACT_SCHEDULER, "CPSCH" },
	{ "kfd_ioctl_create_queue", NULL, GP_FACT_QUEUE_CREATED, NULL },
	{ "creating queue", NULL, GP_FACT_QUEUE_CREATED, NULL },
	{ "queue id", "was created successfully", GP_FACT_QUEUE_CREATED, NULL },
};

static const struct dmesg_pattern *dmesg_find(const char *line)
{
	for (size_t i = 0; i < sizeof(dmesg_patterns) / sizeof(dmesg_patterns[0]); i++) {
		const struct dmesg_pattern *pattern = &dmesg_patterns[i];

		if (strcasestr(line, pattern->words) && (!pattern->also || strcasestr(line, pattern->also)))
			return pattern;
	}
	return NULL;
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
		const struct dmesg_pattern *pattern = dmesg_find(lines.text);
		struct gp_fact fact = { .row = lines.line };

		if (!pattern)
			continue;
		fact.kind = pattern->kind;
		fact.text = pattern->text ? pattern->text : lines.text;
		fact.has_time = dmesg_time(lines.text, &fact.time_ns);
		r = sink->fact(sink->context, &fact, error);
		if (r)
			return r;
	}
	return r;
}
