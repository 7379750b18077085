/* SPDX-License-Identifier: MIT */
/* Which programs have the queues: by name, the most first. */
#include <stdio.h>
#include <string.h>
#include "cli/doctor/rule.h"

#define PROGRAMS_SHOWN 4u

struct program {
	const char *name;
	uint32_t process_count, compute_count;
};

/* One program counts once, at its first process. */
static bool program_is_counted(const struct gp_doctor_facts *facts, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (facts->processes[i].compute_count && !strcmp(facts->processes[i].name, facts->processes[at].name))
			return true;
	return false;
}

static struct program program_of(const struct gp_doctor_facts *facts, uint32_t at)
{
	struct program program = { .name = facts->processes[at].name };

	for (uint32_t i = at; i < facts->process_count; i++)
		if (facts->processes[i].compute_count && !strcmp(facts->processes[i].name, program.name)) {
			program.process_count++;
			program.compute_count += facts->processes[i].compute_count;
		}
	return program;
}

void gp_report_programs(const struct gp_doctor_facts *facts, char *text, size_t size)
{
	struct program shown[PROGRAMS_SHOWN + 1] = { { NULL } };
	uint32_t count = 0, used = 0;

	for (uint32_t i = 0; i < facts->process_count; i++) {
		struct program program;
		uint32_t place = count < PROGRAMS_SHOWN ? count : PROGRAMS_SHOWN;

		if (!facts->processes[i].compute_count || program_is_counted(facts, i))
			continue;
		program = program_of(facts, i);
		for (; place && shown[place - 1].compute_count < program.compute_count; place--)
			shown[place] = shown[place - 1];
		shown[place] = program;
		count++;
	}
	text[0] = '\0';
	for (uint32_t i = 0; i < count && i < PROGRAMS_SHOWN && used < size; i++)
		used += (uint32_t)snprintf(text + used, size - used, "%s%s (%u %s, %u queues)", i ? ", " : "",
					   shown[i].name, shown[i].process_count,
					   shown[i].process_count == 1 ? "process" : "processes",
					   shown[i].compute_count);
	if (count > PROGRAMS_SHOWN && used < size)
		snprintf(text + used, size - used, " and %u more programs", count - PROGRAMS_SHOWN);
}
