/* SPDX-License-Identifier: MIT */
/* Rule: who uses the GPU without an agent? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

struct unmanaged_group {
	uint32_t count, queues;
	const struct gp_facts_process *first;
};

static bool unmanaged_is_managed(const struct gp_doctor_facts *facts, const struct gp_facts_process *process)
{
	bool has_hidden = false;

	if (!facts->has_daemon)
		return process->has_agent;
	for (uint32_t i = 0; i < facts->state.client_count; i++) {
		const struct gp_state_client *client = &facts->state.clients[i];

		if (client->pid == process->pid && client->managed)
			return true;
		has_hidden |= client->hidden == 1;
	}
	/* The daemon does not name other users' programs to this user, and this may be one of them. */
	return has_hidden && !process->is_environment_known;
}

static void unmanaged_add(struct unmanaged_group *group, const struct gp_facts_process *process)
{
	group->first = group->first ? group->first : process;
	group->count++;
	group->queues += process->compute_count;
}

static void unmanaged_tell(const struct gp_doctor_facts *facts, struct gp_doctor_report *report,
			   const struct unmanaged_group *group)
{
	const struct gp_facts_process *first = group->first;
	struct gp_finding *finding;

	if (!first)
		return;
	finding = gp_report_add(
		report, facts->has_daemon ? GP_SEVERITY_WARNING : GP_SEVERITY_INFO, GP_FACTS_UNKNOWN,
		"%u processes with %u compute queues %s (first: %s, pid %" PRIu64 ")", group->count, group->queues,
		first->has_agent ? "have an agent that is not connected to this daemon" : "run without an agent",
		first->name[0] ? first->name : "?", first->pid);
	gp_finding_advise(
		finding,
		first->has_agent ?
			"another gpreemptd serves them (the other GPREEMPT_SOCKET), or their agent failed: gpreempt run --check 5s -- COMMAND says whether it connects" :
			"they hold slots and are never put aside: start them with gpreempt run -p low -- COMMAND");
}

static void unmanaged_tell_cuda(const struct gp_doctor_facts *facts, struct gp_doctor_report *report,
				const struct unmanaged_group *group)
{
	struct gp_finding *finding;

	if (!group->first)
		return;
	finding = gp_report_add(report, facts->has_daemon ? GP_SEVERITY_WARNING : GP_SEVERITY_INFO, GP_FACTS_UNKNOWN,
				"%u CUDA programs run without an agent (first: %s, pid %" PRIu64 ")", group->count,
				group->first->name[0] ? group->first->name : "?", group->first->pid);
	gp_finding_advise(
		finding,
		"the driver lets them take turns with all programs, urgent ones too: start them with gpreempt run -p low -- COMMAND");
}

static void unmanaged_tell_locked(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (!facts->locked_count)
		return;
	finding = gp_report_add(
		report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
		"%u processes cannot be looked at: their folder in /proc is locked, or that of another process of their user (first: pid %" PRIu64
		")",
		facts->locked_count, facts->locked_pid);
	gp_finding_advise(
		finding,
		"who looks into such a folder hangs and cannot be killed (ps, top): a FUSE mount of some user does not answer; end its server, or write 1 to its /sys/fs/fuse/connections/N/abort");
}

static void unmanaged_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct unmanaged_group cuda = { 0 }, without = { 0 }, elsewhere = { 0 };

	for (uint32_t i = 0; i < facts->process_count; i++) {
		const struct gp_facts_process *process = &facts->processes[i];

		if ((process->compute_count || process->is_cuda) && !unmanaged_is_managed(facts, process))
			unmanaged_add(process->is_cuda ? &cuda : process->has_agent ? &elsewhere : &without, process);
	}
	unmanaged_tell_locked(facts, report);
	unmanaged_tell_cuda(facts, report, &cuda);
	unmanaged_tell(facts, report, &without);
	unmanaged_tell(facts, report, &elsewhere);
}

const struct gp_doctor_rule gp_rule_unmanaged = { "unmanaged", "processes without an agent", unmanaged_check };
