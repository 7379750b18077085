/* SPDX-License-Identifier: MIT */
/* Rule: which ways to stop a queue does this kernel have? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void kernel_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (!facts->gpu_count)
		return;
	if (facts->kfd_major == GP_FACTS_UNKNOWN) {
		gp_report_add(report, GP_SEVERITY_INFO, GP_FACTS_UNKNOWN,
			      "Linux %s; KFD's version is not known (/dev/kfd could not be asked)", facts->kernel);
		return;
	}
	if (facts->kfd_major > 1 || facts->kfd_minor >= 13) {
		gp_report_add(report, GP_SEVERITY_OK, GP_FACTS_UNKNOWN,
			      "Linux %s, KFD %" PRIu64 ".%" PRIu64
			      ": DBG_TRAP is there, so all queues of a process stop in one transaction",
			      facts->kernel, facts->kfd_major, facts->kfd_minor);
		return;
	}
	finding =
		gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
			      "Linux %s, KFD %" PRIu64 ".%" PRIu64
			      ": no DBG_TRAP (KFD 1.13, Linux 6.5); queues stop one by one, each stop halts the device",
			      facts->kernel, facts->kfd_major, facts->kfd_minor);
	gp_finding_advise(
		finding,
		"use a kernel of 6.5 or newer (Debian 12: linux-image-amd64 from backports); until then: gpreempt run --hw-queues 1");
}

const struct gp_doctor_rule gp_rule_kernel = { "kernel", "kernel and KFD version, and the mechanisms they allow",
					       kernel_check };
