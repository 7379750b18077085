/* SPDX-License-Identifier: MIT */
/* A rule looks at the facts and reports. One file per rule; the list is in rules.c. docs/doctor.md explains each. */
#ifndef GP_CLI_DOCTOR_RULE_H
#define GP_CLI_DOCTOR_RULE_H

#include "cli/doctor/facts.h"

enum gp_severity {
	GP_SEVERITY_OK,
	GP_SEVERITY_INFO,    /* worth knowing; nothing has to be done */
	GP_SEVERITY_WARNING, /* a limit is near, or something works less well than it could */
	GP_SEVERITY_PROBLEM, /* slow, unsafe or without effect now */
};
#define GP_REPORT_MAX 512u

struct gp_finding {
	const char *rule;
	enum gp_severity severity;
	uint64_t gpu_id;                 /* GP_FACTS_UNKNOWN: the machine */
	char evidence[512], advice[512]; /* advice: what to do; empty: nothing */
};
struct gp_doctor_report {
	const char *rule; /* under way */
	uint32_t count, left_out;
	struct gp_finding findings[GP_REPORT_MAX];
};

/* Adds a finding; returns it so that advice can be added. Never NULL. */
struct gp_finding *gp_report_add(struct gp_doctor_report *report, enum gp_severity severity, uint64_t gpu_id,
				 const char *format, ...) __attribute__((format(printf, 4, 5)));
void gp_finding_advise(struct gp_finding *finding, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* programs.c: those with compute queues, "serve (20 processes, 60 queues), …". */
#define GP_PROGRAMS_TEXT 256u
void gp_report_programs(const struct gp_doctor_facts *facts, char *text, size_t size);

struct gp_doctor_rule {
	const char *name, *about;
	void (*check)(const struct gp_doctor_facts *facts, struct gp_doctor_report *report);
};
extern const struct gp_doctor_rule *const gp_rules[]; /* NULL-terminated */

extern const struct gp_doctor_rule gp_rule_device, gp_rule_permissions, gp_rule_slots, gp_rule_processes,
	gp_rule_hw_queues, gp_rule_copy_queues, gp_rule_cwsr, gp_rule_sched_policy, gp_rule_num_kcq,
	gp_rule_max_processes, gp_rule_hip_priority, gp_rule_kernel, gp_rule_unmanaged, gp_rule_daemon,
	gp_rule_mechanism, gp_rule_log, gp_rule_nvidia, gp_rule_safety;

#endif
