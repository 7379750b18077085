/* SPDX-License-Identifier: MIT */
/* Owns the list of rules and the report they fill. */
#include <stdarg.h>
#include <stdio.h>
#include "cli/doctor/rule.h"

const struct gp_doctor_rule *const gp_rules[] = {
	&gp_rule_device,
	&gp_rule_permissions,
	&gp_rule_kernel,
	&gp_rule_cwsr,
	&gp_rule_sched_policy,
	&gp_rule_safety,
	&gp_rule_max_processes,
	&gp_rule_slots,
	&gp_rule_processes,
	&gp_rule_hw_queues,
	&gp_rule_num_kcq,
	&gp_rule_copy_queues,
	&gp_rule_hip_priority,
	&gp_rule_nvidia,
	&gp_rule_daemon,
	&gp_rule_mechanism,
	&gp_rule_unmanaged,
	&gp_rule_log,
	NULL,
};

struct gp_finding *gp_report_add(struct gp_doctor_report *report, enum gp_severity severity, uint64_t gpu_id,
				 const char *format, ...)
{
	static struct gp_finding spare;
	struct gp_finding *finding = &spare;
	va_list arguments;

	if (report->count < GP_REPORT_MAX)
		finding = &report->findings[report->count++];
	else
		report->left_out++;
	finding->rule = report->rule;
	finding->severity = severity;
	finding->gpu_id = gpu_id;
	finding->advice[0] = '\0';
	va_start(arguments, format);
	(void)vsnprintf(finding->evidence, sizeof(finding->evidence), format, arguments);
	va_end(arguments);
	return finding;
}

void gp_finding_advise(struct gp_finding *finding, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(finding->advice, sizeof(finding->advice), format, arguments);
	va_end(arguments);
}
