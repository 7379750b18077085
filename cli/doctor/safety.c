/* SPDX-License-Identifier: MIT */
/* Rule: is preempting known to hang or reset this part, with its firmware and kernel? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/doctor/rule.h"
#include "lib/cleanup.h"

/* The daemon knows what root has written; its findings say so. */
static void safety_overrule(struct gp_safety *safety, const struct gp_doctor_facts *facts)
{
	for (uint32_t i = 0; i < safety->count; i++) {
		struct gp_safety_entry *entry = &safety->entries[i];
		char text[GP_SAFETY_NAME_SIZE + sizeof(GP_SAFETY_OVERRULED)];
		int length = snprintf(text, sizeof(text), GP_SAFETY_OVERRULED, entry->name);

		for (uint32_t j = 0; facts->has_daemon && j < facts->state.device_count; j++)
			for (uint32_t k = 0; k < facts->state.devices[j].finding_count; k++)
				if (!strncmp(facts->state.devices[j].findings[k].text, text, (size_t)length))
					gp_safety_overrule(safety, entry->name);
	}
}

static void safety_gpu(const struct gp_safety *safety, const struct gp_facts_gpu *gpu, struct gp_doctor_report *report)
{
	const struct gp_safety_entry *entry = gp_safety_find(safety, &gpu->part);
	char text[GP_SAFETY_TEXT_SIZE];
	struct gp_finding *finding;
	bool is_known = entry;

	for (uint32_t i = 0; i < safety->count; i++) {
		const struct gp_safety_entry *other = &safety->entries[i];

		if (!other->is_overruled || !gp_safety_is_about(other, &gpu->part))
			continue;
		finding = gp_report_add(report, GP_SEVERITY_WARNING, gpu->gpu_id,
					"%s: %s; gpreempt.conf overrules safety/%s, so the daemon does not prevent it",
					other->title, other->happens, other->name);
		gp_finding_advise(finding, "update firmware and kernel as %s says, then remove %s from [safety]",
				  other->source, other->name);
		is_known = true;
	}
	if (!is_known)
		gp_report_add(report, GP_SEVERITY_OK, gpu->gpu_id,
			      "nothing is known against preempting it with this firmware and kernel");
	if (!entry)
		return;
	finding = gp_report_add(report, GP_SEVERITY_PROBLEM, gpu->gpu_id, "%s: %s; %s", entry->title, entry->happens,
				gp_safety_action_text(entry, text, sizeof(text)));
	gp_finding_advise(finding, "update firmware and kernel as %s says; or, in gpreempt.conf, [safety] %s = %s",
			  entry->source, entry->name, GP_SAFETY_SENTENCE);
}

static void safety_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	GP_AUTO_FREE struct gp_safety *safety = NULL;
	struct gp_error error = { "out of memory" };
	struct gp_finding *finding;

	if (!facts->gpu_count)
		return;
	safety = calloc(1, sizeof(*safety));
	if (!safety || gp_safety_read(safety, &error)) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
					"the list of unsafe combinations cannot be read: %.300s", error.text);
		gp_finding_advise(finding, "install gpreempt again, or set GPREEMPT_SHARE_DIR");
		return;
	}
	for (uint32_t i = 0; i < safety->bad_count; i++) {
		finding = gp_report_add(report, GP_SEVERITY_WARNING, GP_FACTS_UNKNOWN,
					"a file of the list of unsafe combinations is ignored: %.300s",
					safety->bad[i].text);
		gp_finding_advise(finding, "correct or remove the file, and restart gpreemptd");
	}
	safety_overrule(safety, facts);
	for (uint32_t i = 0; i < facts->gpu_count; i++)
		safety_gpu(safety, &facts->gpus[i], report);
}

const struct gp_doctor_rule gp_rule_safety = { "safety", "preempting is not known to hang this GPU", safety_check };
