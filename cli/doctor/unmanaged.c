/* SPDX-License-Identifier: MIT */
/* Rule: who uses the GPU without an agent? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static bool unmanaged_is_managed(const struct gp_doctor_facts *facts, const struct gp_facts_process *process)
{
	if (!facts->has_daemon)
		return process->has_agent;
	for (uint32_t i = 0; i < facts->state.client_count; i++)
		if (facts->state.clients[i].pid == process->pid && facts->state.clients[i].managed)
			return true;
	return false;
}

static void unmanaged_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	uint32_t count = 0, queues = 0, cuda = 0;
	const struct gp_facts_process *first = NULL, *first_cuda = NULL;
	struct gp_finding *finding;

	for (uint32_t i = 0; i < facts->process_count; i++) {
		const struct gp_facts_process *process = &facts->processes[i];

		if ((!process->compute_count && !process->is_cuda) || unmanaged_is_managed(facts, process))
			continue;
		if (process->is_cuda) {
			first_cuda = first_cuda ? first_cuda : process;
			cuda++;
			continue;
		}
		first = first ? first : process;
		count++;
		queues += process->compute_count;
	}
	if (first_cuda) {
		finding = gp_report_add(report, facts->has_daemon ? GP_SEVERITY_WARNING : GP_SEVERITY_INFO,
					GP_FACTS_UNKNOWN,
					"%u CUDA programs run without an agent (first: %s, pid %" PRIu64 ")", cuda,
					first_cuda->name[0] ? first_cuda->name : "?", first_cuda->pid);
		gp_finding_advise(
			finding,
			"the driver lets them take turns with all programs, urgent ones too: start them with gpreempt run -p low -- COMMAND");
	}
	if (!first)
		return;
	finding = gp_report_add(report, facts->has_daemon ? GP_SEVERITY_WARNING : GP_SEVERITY_INFO, GP_FACTS_UNKNOWN,
				"%u processes with %u compute queues run without an agent (first: %s, pid %" PRIu64 ")",
				count, queues, first->name[0] ? first->name : "?", first->pid);
	gp_finding_advise(finding,
			  "they hold slots and are never put aside: start them with gpreempt run -p low -- COMMAND");
}

const struct gp_doctor_rule gp_rule_unmanaged = { "unmanaged", "processes without an agent", unmanaged_check };
