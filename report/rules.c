/* SPDX-License-Identifier: MIT */
/* Owns the list of rules and the order of what they find: by the share of the run that it is about. */
#include <errno.h>
#include <stdlib.h>
#include "report/analysis.h"
#include "report/rules.h"

static const struct gp_report_rule *const rules_list[] = {
	&gp_rule_cold_start,
	&gp_rule_transfers,
	&gp_rule_transfer_calls,
	&gp_rule_launch_bound,
	&gp_rule_serialised_streams,
	&gp_rule_oversubscribed,
	&gp_rule_tail,
	&gp_rule_sync_every_launch,
	&gp_rule_tiny_copies,
	&gp_rule_idle_gpu,
	&gp_rule_contention,
	&gp_rule_inversions,
	&gp_rule_preemption_failed,
	&gp_rule_allocations,
	&gp_rule_copy_waits,
	&gp_rule_copy_rate,
	&gp_rule_exposed_communication,
	&gp_rule_gpu_reset,
	&gp_rule_step_gaps,
	&gp_rule_late_start,
};

static int rules_compare(const void *a, const void *b)
{
	const struct gp_report_finding *x = a, *y = b;

	if (x->share_ppm != y->share_ppm)
		return x->share_ppm > y->share_ppm ? -1 : 1;
	return (int)y->confidence - (int)x->confidence;
}

int gp_rules(struct gp_report *report, struct gp_error *error)
{
	size_t count = sizeof(rules_list) / sizeof(rules_list[0]);

	report->findings = calloc(count, sizeof(*report->findings));
	if (!report->findings)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	for (size_t i = 0; i < count; i++) {
		struct gp_report_finding *finding = &report->findings[report->finding_count];

		*finding = (struct gp_report_finding){ .id = rules_list[i]->id };
		if (rules_list[i]->check(report, finding))
			report->finding_count++;
	}
	qsort(report->findings, report->finding_count, sizeof(*report->findings), rules_compare);
	return 0;
}
