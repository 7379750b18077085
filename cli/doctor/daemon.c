/* SPDX-License-Identifier: MIT */
/* Rule: does gpreemptd run, and how is it? */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "cli/doctor/rule.h"

/* A daemon that runs is not helped by being started, nor is a user whom it refuses: the reason says what helps. */
static const char *daemon_advice(int error)
{
	switch (error) {
	case -ENOTCONN:
		return "without it nothing is scheduled: systemctl enable --now gpreemptd; if it runs, its socket was "
		       "removed: systemctl reload gpreemptd";
	case -ETIMEDOUT: return "it hangs, and programs run without priorities: systemctl restart gpreemptd";
	case -EACCES: return "ask the administrator for the group of socket_group in gpreempt.conf";
	default: return "see gpreempt status, and the daemon's log: journalctl -u gpreemptd";
	}
}

static void daemon_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	const struct gp_state_daemon *daemon = &facts->state.daemon;
	struct gp_finding *finding;

	if (!facts->has_daemon) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN, "gpreemptd: %.440s",
					facts->daemon_why);
		gp_finding_advise(finding, "%s", daemon_advice(facts->daemon_error));
		return;
	}
	gp_report_add(report, GP_SEVERITY_OK, GP_FACTS_UNKNOWN, "gpreemptd %s, policy %s", daemon->version,
		      daemon->policy);
	if (*daemon->config_refused) {
		finding = gp_report_add(
			report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
			"gpreemptd refused the configuration at its last reload and keeps the settings from "
			"before: %.380s",
			daemon->config_refused);
		gp_finding_advise(
			finding,
			"gpreemptd would not start again with this file: correct it, gpreemptd --check-config, then "
			"systemctl reload gpreemptd");
	}
	if (daemon->leases_lost != GP_STATE_UNKNOWN && daemon->leases_lost) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
					"%" PRIu64 " %s ran out: gates opened by themselves", daemon->leases_lost,
					gp_units_word(daemon->leases_lost, "lease", "leases"));
		gp_finding_advise(
			finding,
			"the daemon was late by more than its lease: is the machine overloaded? See gpreempt events");
	}
	if (daemon->driver_calls_stuck != GP_STATE_UNKNOWN && daemon->driver_calls_stuck) {
		finding = gp_report_add(report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
					"%" PRIu64
					" calls of gpreemptd into the driver have not come back for over a second",
					daemon->driver_calls_stuck);
		gp_finding_advise(finding,
				  "a GPU hangs, or another program holds it stopped: see the kernel's log (dmesg)");
	}
	if (daemon->order_failures != GP_STATE_UNKNOWN && daemon->order_failures) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN, "%" PRIu64 " gate orders failed",
					daemon->order_failures);
		gp_finding_advise(finding,
				  "gpreempt events tells which and why; a queue that cannot be stopped is quarantined");
	}
}

const struct gp_doctor_rule gp_rule_daemon = { "daemon", "gpreemptd runs", daemon_check };
