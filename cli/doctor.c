/* SPDX-License-Identifier: MIT */
/* `gpreempt doctor`: asks every rule and prints what they found. Owns its options and the form of the report. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/aside.h"
#include "lib/json_writer.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/units.h"
#include "cli/doctor/rule.h"

/* clang-format off */
static const char doctor_help[] =
"Usage: gpreempt doctor [--json] [-v] [RULE...]\n"
"Examines the driver, the kernel, processes and the daemon; says what is wrong or near a limit, and what to do.\n"
"It needs no daemon and no root. As root it also sees other users' processes and the kernel's log.\n"
"\n"
"      --json      print JSON (docs/doctor.md)\n"
"  -v, --verbose   also show what is in order\n"
"  -l, --list      list the rules\n"
"\n"
"Exit status: 0 all is well; 1 it found a problem or a warning; 2 the check itself failed, or wrong usage.\n";
/* clang-format on */

enum { DOCTOR_OK = 0, DOCTOR_FOUND = 1, DOCTOR_FAILED = 2, OPTION_JSON = 256 };
static const struct option doctor_options[] = {
	{ "json", no_argument, NULL, OPTION_JSON }, { "verbose", no_argument, NULL, 'v' },
	{ "list", no_argument, NULL, 'l' },         { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },      { NULL, 0, NULL, 0 },
};

static const char *const doctor_words[] = { "ok", "info", "warning", "problem" };

static void doctor_json(const struct gp_doctor_report *report, enum gp_severity worst)
{
	struct gp_json_writer json;

	gp_json_writer_init(&json, stdout);
	gp_json_writer_begin(&json, NULL, '{');
	gp_json_writer_u64(&json, "schema", 1);
	gp_json_writer_string(&json, "worst", doctor_words[worst]);
	gp_json_writer_begin(&json, "findings", '[');
	for (uint32_t i = 0; i < report->count; i++) {
		const struct gp_finding *finding = &report->findings[i];

		gp_json_writer_begin(&json, NULL, '{');
		gp_json_writer_string(&json, "rule", finding->rule);
		gp_json_writer_string(&json, "severity", doctor_words[finding->severity]);
		if (finding->gpu_id == GP_FACTS_UNKNOWN)
			gp_json_writer_null(&json, "gpu_id");
		else
			gp_json_writer_u64(&json, "gpu_id", finding->gpu_id);
		gp_json_writer_string(&json, "evidence", finding->evidence);
		gp_json_writer_string(&json, "advice", finding->advice);
		gp_json_writer_end(&json, '}');
	}
	gp_json_writer_end(&json, ']');
	gp_json_writer_end(&json, '}');
	putchar('\n');
}

static void doctor_show(const struct gp_doctor_report *report, bool verbose)
{
	static const char *const colours[] = { "\033[32m", "", "\033[33m", "\033[1;31m" };
	const char *no_colour = getenv("NO_COLOR");
	bool colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
	uint32_t shown = 0, counts[4] = { 0 };

	for (uint32_t i = 0; i < report->count; i++) {
		const struct gp_finding *finding = &report->findings[i];

		counts[finding->severity]++;
		if (finding->severity == GP_SEVERITY_OK && !verbose)
			continue;
		shown++;
		printf("%s%-7s%s  %-13s  ", colour ? colours[finding->severity] : "", doctor_words[finding->severity],
		       colour && *colours[finding->severity] ? "\033[0m" : "", finding->rule);
		if (finding->gpu_id != GP_FACTS_UNKNOWN)
			printf("GPU %llu: ", (unsigned long long)finding->gpu_id);
		printf("%s\n", finding->evidence);
		if (finding->advice[0])
			printf("%-7s  %-13s  -> %s\n", "", "", finding->advice);
	}
	if (report->left_out)
		printf("%u more findings are not shown\n", report->left_out);
	printf("%s%u %s, %u %s, %u %s, %u in order%s\n", shown ? "\n" : "", counts[GP_SEVERITY_PROBLEM],
	       gp_units_word(counts[GP_SEVERITY_PROBLEM], "problem", "problems"), counts[GP_SEVERITY_WARNING],
	       gp_units_word(counts[GP_SEVERITY_WARNING], "warning", "warnings"), counts[GP_SEVERITY_INFO],
	       gp_units_word(counts[GP_SEVERITY_INFO], "note", "notes"), counts[GP_SEVERITY_OK],
	       verbose ? "" : " (-v shows them)");
}

static bool doctor_wants(const struct gp_doctor_rule *rule, char **names)
{
	bool is_any = !*names;

	for (; *names; names++)
		is_any |= !strcmp(*names, rule->name);
	return is_any;
}

static bool doctor_knows(char **names)
{
	for (; *names; names++) {
		const struct gp_doctor_rule *const *rule = gp_rules;

		while (*rule && strcmp((*rule)->name, *names) != 0)
			rule++;
		if (!*rule) {
			fprintf(stderr, "gpreempt doctor: no rule '%s' (gpreempt doctor --list)\n", *names);
			return false;
		}
	}
	return true;
}

static int doctor_go(char **names, bool json, bool verbose)
{
	static struct gp_doctor_report report;
	static struct gp_doctor_facts facts;
	enum gp_severity worst = GP_SEVERITY_OK;
	struct gp_error error;

	/* Without helpers it looks itself. */
	(void)gp_aside_start();
	if (gp_facts_gather(&facts, &error)) {
		fprintf(stderr, "gpreempt doctor: %s\n", error.text);
		return DOCTOR_FAILED;
	}
	for (const struct gp_doctor_rule *const *rule = gp_rules; *rule; rule++) {
		report.rule = (*rule)->name;
		if (doctor_wants(*rule, names))
			(*rule)->check(&facts, &report);
	}
	for (uint32_t i = 0; i < report.count; i++)
		worst = report.findings[i].severity > worst ? report.findings[i].severity : worst;
	if (json)
		doctor_json(&report, worst);
	else
		doctor_show(&report, verbose);
	gp_facts_fini(&facts);
	gp_aside_stop();
	if (fflush(stdout) || ferror(stdout))
		return DOCTOR_FAILED;
	return worst >= GP_SEVERITY_WARNING ? DOCTOR_FOUND : DOCTOR_OK;
}

int main(int argc, char **argv)
{
	bool json = false, verbose = false;
	int option;

	gp_output_start("gpreempt doctor", DOCTOR_FAILED);
	gp_plain_stdout();
	while ((option = getopt_long(argc, argv, "vlhV", doctor_options, NULL)) != -1) {
		switch (option) {
		case OPTION_JSON: json = true; break;
		case 'v': verbose = true; break;
		case 'l':
			for (const struct gp_doctor_rule *const *rule = gp_rules; *rule; rule++)
				printf("%-14s  %s\n", (*rule)->name, (*rule)->about);
			return DOCTOR_OK;
		case 'h': fputs(doctor_help, stdout); return DOCTOR_OK;
		case 'V': printf("gpreempt %s\n", GP_VERSION); return DOCTOR_OK;
		default: fputs("gpreempt doctor: see gpreempt doctor --help\n", stderr); return DOCTOR_FAILED;
		}
	}
	if (!doctor_knows(argv + optind))
		return DOCTOR_FAILED;
	return doctor_go(argv + optind, json, verbose);
}
