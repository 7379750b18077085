/* SPDX-License-Identifier: MIT */
/* Rule: may this user open what ROCm opens? */
#include <inttypes.h>
#include <string.h>
#include "cli/doctor/rule.h"

static void permissions_file(const struct gp_facts_file *file, struct gp_doctor_report *report)
{
	struct gp_finding *finding;

	if (!file->is_there)
		return;
	if (file->is_usable) {
		gp_report_add(report, file->mode & 0002 ? GP_SEVERITY_INFO : GP_SEVERITY_OK, GP_FACTS_UNKNOWN,
			      "%s may be used (mode %04o, group %s)%s", file->path, file->mode,
			      file->group[0] ? file->group : "?", file->mode & 0002 ? ", writable for all users" : "");
		return;
	}
	finding = gp_report_add(report, GP_SEVERITY_PROBLEM, GP_FACTS_UNKNOWN,
				"%s may not be opened by you (mode %04o, group %s, gid %u)", file->path, file->mode,
				file->group[0] ? file->group : "?", file->gid);
	gp_finding_advise(finding, "add the user to the group: usermod -a -G %s USER, then log in again",
			  file->group[0] ? file->group : "render");
}

static void permissions_check(const struct gp_doctor_facts *facts, struct gp_doctor_report *report)
{
	permissions_file(&facts->kfd, report);
	for (uint32_t i = 0; i < facts->render_count; i++)
		permissions_file(&facts->renders[i], report);
}

const struct gp_doctor_rule gp_rule_permissions = { "permissions", "/dev/kfd and the render nodes may be opened",
						    permissions_check };
