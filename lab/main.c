/* SPDX-License-Identifier: MIT */
/* The program `gpreempt lab`: reads options, runs experiments, hands what they found to the views. Only this file
 * prints, and only this file looks at a clock, for the progress bar. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lab/fit.h"
#include "lab/keys.h"
#include "lab/lab.h"
#include "lib/file.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/progress.h"

enum { MAIN_OK = 0, MAIN_FAILED = 1, MAIN_USAGE = 2 };

struct main_lab {
	struct lab lab;
	struct gp_lab view;
	const struct lab_experiment *wanted[GP_LAB_PART_MAX];
	uint32_t wanted_count, set_count;
	const char *sets[LAB_SET_MAX];
	const char *html_path, *device_path, *write_path;
	bool json;
	struct gp_progress progress;
	struct timespec start;
	uint64_t done, total;
};

static const char main_help[] =
	"Usage: gpreempt lab list\n"
	"       gpreempt lab keys [EXPERIMENT]\n"
	"       gpreempt lab EXPERIMENT [--set KEY=VALUE]... [--device FILE] [--json] [--html FILE]\n"
	"       gpreempt lab all [--device FILE] [--json] [--html FILE]\n"
	"       gpreempt lab fit [--device FILE] [--write FILE]\n"
	"\n"
	"Puts what was measured, what was expected and what the model says side by side: each hypothesis about several\n"
	"processes on one GPU is a switch, each experiment one command. The model is of an MI308X (ranks: of an MI300A);\n"
	"nothing here needs a GPU.\n"
	"\n"
	"  list             the experiments, and what each asks\n"
	"  keys             the switches (of one experiment), with their ranges\n"
	"  --set KEY=VALUE  changes a switch; rows that were calibrated stay marked\n"
	"  --json           JSON to standard output instead of a table\n"
	"  --html FILE      one self-contained page (\"-\": standard output)\n"
	"  fit              fits the load's numbers again and says how well each is determined\n"
	"  --device FILE    a description, such as one by `gpreempt bench device`, instead of the MI308X's\n"
	"  --write FILE     with fit: the result, in the form of share/lab/fit.ini\n"
	"  --help, --version\n"
	"\n"
	"Every figure of the model is marked: predicted, calibrated, fitted, computed or not modelled (docs/lab.md).\n";

static int main_refuse(const struct gp_error *error, int status)
{
	fprintf(stderr, "gpreempt lab: %s\n", error->text);
	if (status == MAIN_USAGE)
		fprintf(stderr, "Try 'gpreempt lab --help'.\n");
	return status;
}

static void main_progress(void *context)
{
	struct main_lab *run = context;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	run->done += run->done < run->total;
	gp_progress_update(
		&run->progress, run->done, run->total,
		(uint64_t)((now.tv_sec - run->start.tv_sec) * 1000 + (now.tv_nsec - run->start.tv_nsec) / 1000000));
}

static int main_list(void)
{
	for (uint32_t i = 0; lab_experiments[i]; i++)
		printf("  %-15s %s\n", lab_experiments[i]->name, lab_experiments[i]->question);
	printf("  %-15s %s\n", "all", "Everything above; with --html one report.");
	printf("  %-15s %s\n", "fit", "Does the fit again and says how well each parameter is determined.");
	return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
}

static int main_unknown(const char *name, struct gp_error *error)
{
	char known[360] = "";
	size_t used = 0;

	for (uint32_t i = 0; lab_experiments[i] && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s, ", lab_experiments[i]->name);
	return gp_error_set(error, -EINVAL, "there is no experiment \"%.40s\"; valid names are: %sall, fit, list, keys",
			    name, known);
}

static int main_choose(struct main_lab *run, const char *name, struct gp_error *error)
{
	const struct lab_experiment *found = lab_experiment_find(name);

	if (found)
		run->wanted[run->wanted_count++] = found;
	for (uint32_t i = 0; !strcmp(name, "all") && lab_experiments[i]; i++)
		run->wanted[run->wanted_count++] = lab_experiments[i];
	if (!run->wanted_count)
		return main_unknown(name, error);
	for (uint32_t i = 0; i < run->set_count; i++) {
		if (!found)
			return gp_error_set(error, -EINVAL, "--set goes with one experiment, not with %s", name);
		if (lab_key_set(&run->lab, found, run->sets[i], error))
			return -EINVAL;
	}
	return 0;
}

static void main_begin(struct main_lab *run, uint64_t total)
{
	run->total = total;
	clock_gettime(CLOCK_MONOTONIC, &run->start);
	gp_progress_init(&run->progress, stderr, "experiments");
	run->lab.progress = main_progress;
	run->lab.progress_context = run;
}

static int main_experiments(struct main_lab *run, struct gp_error *error)
{
	uint64_t total = 0;
	int ret = 0;

	for (uint32_t i = 0; i < run->wanted_count; i++)
		total += (uint64_t)run->wanted[i]->runs * run->lab.seeds;
	main_begin(run, total);
	for (uint32_t i = 0; i < run->wanted_count && !ret; i++) {
		ret = lab_run(&run->lab, run->wanted[i], &run->view.parts[run->view.part_count], error);
		run->view.part_count += !ret;
	}
	gp_progress_clear(&run->progress);
	lab_describe(&run->lab, &run->view);
	return ret;
}

static int main_html(const struct main_lab *run, struct gp_error *error)
{
	struct gp_file_writer writer;
	int ret = gp_file_open(&writer, run->html_path, error);

	if (ret)
		return ret;
	errno = 0;
	ret = gp_view_lab_html(writer.stream, &run->view);
	if (ret)
		gp_error_set(error, ret, "cannot write to %s: %s", writer.path, strerror(errno ? errno : -ret));
	else
		ret = gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return ret;
}

static int main_show(const struct main_lab *run, struct gp_error *error)
{
	bool quiet = run->html_path && !strcmp(run->html_path, "-");
	int ret = run->html_path ? main_html(run, error) : 0;

	if (ret || quiet)
		return ret;
	ret = run->json ? gp_view_lab_json(stdout, &run->view) : gp_view_lab_text(stdout, &run->view);
	if (ret || fflush(stdout))
		return gp_output_refuse(error);
	return 0;
}

static int main_fit(struct main_lab *run, struct gp_error *error)
{
	struct gp_file_writer writer;
	int ret;

	main_begin(run, LAB_FIT_RUNS);
	ret = lab_fit_run(&run->lab, error);
	gp_progress_clear(&run->progress);
	if (ret)
		return ret;
	ret = lab_fit_show(stdout, &run->lab.fit);
	if (ret)
		return gp_output_refuse(error);
	if (!run->write_path)
		return 0;
	ret = gp_file_open(&writer, run->write_path, error);
	if (ret)
		return ret;
	errno = 0;
	ret = lab_fit_write(writer.stream, &run->lab.fit);
	if (ret)
		gp_error_set(error, ret, "cannot write to %s: %s", writer.path, strerror(errno ? errno : -ret));
	else
		ret = gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return ret;
}

/* What cannot be written together, before minutes are spent on it. */
static bool main_refuses_outputs(const struct main_lab *run, const char *name, struct gp_error *error)
{
	bool is_fit = !strcmp(name, "fit");

	if (is_fit && (run->set_count || run->json || run->html_path))
		gp_error_set(error, -EINVAL, "fit takes --device and --write only");
	else if (!is_fit && run->write_path)
		gp_error_set(error, -EINVAL, "--write goes with fit");
	else if (run->json && run->html_path && !strcmp(run->html_path, "-"))
		gp_error_set(error, -EINVAL, "--json and --html - both go to standard output");
	else if ((run->html_path && !run->html_path[0]) || (run->write_path && !run->write_path[0]))
		gp_error_set(error, -EINVAL, "the name of an output is empty");
	else
		return false;
	return true;
}

static int main_run(struct main_lab *run, const char *name)
{
	struct gp_error error = { "" };

	if (main_refuses_outputs(run, name, &error))
		return main_refuse(&error, MAIN_USAGE);
	if (gp_file_try(run->html_path, &error) || gp_file_try(run->write_path, &error))
		return main_refuse(&error, MAIN_FAILED);
	if (lab_init(&run->lab, run->device_path, &error))
		return main_refuse(&error, MAIN_FAILED);
	if (!strcmp(name, "fit"))
		return main_fit(run, &error) ? main_refuse(&error, MAIN_FAILED) : MAIN_OK;
	if (run->device_path)
		(void)snprintf(run->lab.settings, sizeof(run->lab.settings), " --device %s", run->device_path);
	if (main_choose(run, name, &error))
		return main_refuse(&error, MAIN_USAGE);
	(void)snprintf(run->view.command, sizeof(run->view.command), "gpreempt lab %s%s", name, run->lab.settings);
	(void)snprintf(run->view.version, sizeof(run->view.version), "%s", GP_VERSION);
	if (main_experiments(run, &error) || main_show(run, &error))
		return main_refuse(&error, MAIN_FAILED);
	return MAIN_OK;
}

static int main_keys(const char *name)
{
	const struct lab_experiment *found = name ? lab_experiment_find(name) : NULL;
	struct gp_error error = { "" };

	if (name && !found) {
		(void)main_unknown(name, &error);
		return main_refuse(&error, MAIN_USAGE);
	}
	lab_key_list(stdout, found ? found->keys : UINT64_MAX);
	return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
}

/* -1: go on; else the exit status. */
static int main_options(int argc, char **argv, struct main_lab *run)
{
	static const struct option options[] = {
		{ "set", required_argument, NULL, 's' },   { "json", no_argument, NULL, 'j' },
		{ "html", required_argument, NULL, 'o' },  { "device", required_argument, NULL, 'd' },
		{ "write", required_argument, NULL, 'w' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },     { NULL, 0, NULL, 0 },
	};
	struct gp_error error = { "" };
	int option;

	while ((option = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		switch (option) {
		case 's':
			if (run->set_count == LAB_SET_MAX) {
				gp_error_set(&error, -EINVAL, "more than %u --set", LAB_SET_MAX);
				return main_refuse(&error, MAIN_USAGE);
			}
			run->sets[run->set_count++] = optarg;
			break;
		case 'j': run->json = true; break;
		case 'o': run->html_path = optarg; break;
		case 'd': run->device_path = optarg; break;
		case 'w': run->write_path = optarg; break;
		case 'h': fputs(main_help, stdout); return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
		case 'V': printf("gpreempt lab %s\n", GP_VERSION); return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
		default: fprintf(stderr, "Try 'gpreempt lab --help'.\n"); return MAIN_USAGE;
		}
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct main_lab *run = calloc(1, sizeof(*run));
	int status;

	gp_output_start("gpreempt lab", MAIN_FAILED);
	gp_plain_stdout();
	if (!run)
		return MAIN_FAILED;
	status = main_options(argc, argv, run);
	argc -= optind;
	argv += optind;
	if (status >= 0) {
		free(run);
		return status;
	}
	if (argc < 1 || argc > 2 || (argc == 2 && strcmp(argv[0], "keys"))) {
		fprintf(stderr, "gpreempt lab: one experiment is needed; `gpreempt lab list` names them\n");
		status = MAIN_USAGE;
	} else if (!strcmp(argv[0], "list")) {
		status = main_list();
	} else if (!strcmp(argv[0], "keys")) {
		status = main_keys(argv[1]);
	} else {
		status = main_run(run, argv[0]);
	}
	for (uint32_t i = 0; i < run->view.part_count; i++)
		free(run->view.parts[i]);
	free(run);
	return status;
}
