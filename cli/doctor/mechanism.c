/* SPDX-License-Identifier: MIT */
/* Rule: what the daemon reached on each device. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <gpreempt/mechanism.h>
#include "cli/doctor/rule.h"

/* Programs whose queues the driver lets nobody stop. */
static void mechanism_userq(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	char names[200] = "";
	size_t used = 0;

	for (uint32_t i = 0; facts->has_daemon && i < facts->state.client_count; i++) {
		const struct gp_state_client *client = &facts->state.clients[i];

		if (gp_state_mechanism(client->mechanism) != GP_MECHANISM_USERQ)
			continue;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.40s (%" PRIu64 ")",
						 used ? ", " : "", client->name, client->pid);
	}
	if (used)
		gp_finding_advise(
			gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
				      "programs that make their queues through DRM: %s", names),
			"the agent holds back what these programs submit, but cannot stop what runs; start them without "
			"HSA_ENABLE_DRM_DEBUG=1, so that ROCr makes their queues through KFD");
}

static void mechanism_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	for (uint32_t i = 0; facts->has_daemon && i < facts->state.device_count; i++) {
		const struct gp_state_device *device = &facts->state.devices[i];
		uint32_t mechanism = gp_state_mechanism(device->mechanism);
		bool is_none = gp_mechanism_has(mechanism, GP_STOPS_NOTHING);
		bool is_stopped = device->stopped != GP_STATE_UNKNOWN && device->stopped;
		struct gp_finding *finding;

		finding = gp_report_add(report, is_none || is_stopped ? GP_SEVERITY_PROBLEM : GP_SEVERITY_OK,
					device->gpu_id, "mechanism %s%s%.300s",
					device->mechanism[0] ? device->mechanism : "?", is_stopped ? ", stopped: " : "",
					is_stopped ? device->stopped_why : "");
		if (is_stopped && !strncmp(device->stopped_why, "another gpreemptd", strlen("another gpreemptd")))
			gp_finding_advise(finding,
					  "no gpreempt resume is needed; `ps -C gpreemptd -f` shows both daemons");
		else if (is_stopped)
			gp_finding_advise(finding, "when the cause is gone: gpreempt resume %" PRIu64, device->gpu_id);
		else if (mechanism == GP_MECHANISM_CHANNEL)
			gp_finding_advise(
				finding,
				"agents do it, one program a call; with CAP_SYS_PTRACE the daemon does it, several programs a call: gpreempt status says what borrow lacks");
		else if (is_none)
			gp_finding_advise(
				finding,
				"nothing that runs is stopped; gpreempt status shows what each better mechanism lacks");
	}
	mechanism_userq(facts, report);
}

const struct gp_doctor_rule gp_rule_mechanism = { "mechanism", "what the daemon reached on each device",
						  mechanism_check };
