/* SPDX-License-Identifier: MIT */
/* Rule: is preempting known to hang or reset this part, with its firmware and kernel? */
#include <errno.h>
#include <stdlib.h>
#include "cli/doctor/rule.h"
#include "lib/cleanup.h"

static void safety_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	GP_AUTO_FREE struct gp_safety *safety = calloc(1, sizeof(*safety));
	struct gp_error error = { "" };
	char text[GP_SAFETY_TEXT_SIZE];
	struct gp_finding *finding;

	if (!facts->gpu_count)
		return;
	if (!safety || gp_safety_read(safety, &error)) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
					"the list of unsafe combinations cannot be read: %.300s", error.text);
		gp_finding_advise(finding, "install gpreempt again, or set GPREEMPT_SHARE_DIR");
		return;
	}
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct gp_facts_gpu *gpu = &facts->gpus[i];
		const struct gp_safety_entry *entry = gp_safety_find(safety, &gpu->part);

		if (!entry) {
			gp_report_add(report, GP_SEVERITY_OK, gpu->gpu_id,
				      "nothing is known against preempting it with this firmware and kernel");
			continue;
		}
		finding = gp_report_add(report, GP_SEVERITY_PROBLEM, gpu->gpu_id, "%s: %s; %s", entry->title,
					entry->happens, gp_safety_action_text(entry, text, sizeof(text)));
		gp_finding_advise(finding,
				  "update firmware and kernel as %s says; or, in gpreempt.conf, [safety] %s = %s",
				  entry->source, entry->name, GP_SAFETY_SENTENCE);
	}
}

const struct gp_doctor_rule gp_rule_safety = { "safety", "preempting is not known to hang this GPU", safety_check };
