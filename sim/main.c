/* SPDX-License-Identifier: MIT */
/* The program `gpreempt sim`: reads options, runs the simulations, hands the result to the views. Only this file
 * prints, and only this file looks at a clock, for the progress bar. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "lib/file.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/paths.h"
#include "lib/progress.h"
#include "sim/mode.h"
#include "sim/options.h"

enum { MAIN_OK = 0, MAIN_FAILED = 1, MAIN_USAGE = 2 };

struct main_run {
	struct gp_options options;
	struct gp_desc desc;
	struct gp_workload workload;
	struct gp_result result;
	struct gp_result_run runs[GP_OPTIONS_RUN_MAX];
};

struct main_bar {
	struct gp_progress progress;
	struct timespec start;
	uint64_t run_index, run_count;
};

static int main_refuse(const struct gp_error *error, int status)
{
	fprintf(stderr, "gpreempt sim: %s\n", error->text);
	if (status == MAIN_USAGE)
		fprintf(stderr, "Try 'gpreempt sim --help'.\n");
	return status;
}

static uint64_t main_elapsed_ms(const struct main_bar *bar)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)((now.tv_sec - bar->start.tv_sec) * 1000 + (now.tv_nsec - bar->start.tv_nsec) / 1000000);
}

static void main_update(void *context, uint64_t done, uint64_t total)
{
	struct main_bar *bar = context;

	gp_progress_update(&bar->progress, bar->run_index * total + done, bar->run_count * total, main_elapsed_ms(bar));
}

static int main_list(void)
{
	struct gp_paths_names *names = malloc(sizeof(*names));
	struct gp_error error = { "" };
	char text[512];
	int ret;

	printf("Mixes:\n");
	ret = gp_mix_list(stdout, &error);
	printf("Devices:\n  %s\n", names && !gp_paths_list("devices", ".ini", names) ?
					   gp_paths_join(names, text, sizeof(text)) :
					   "(none found)");
	printf("Policies and baselines:\n  %s\n", gp_mode_names(text, sizeof(text)));
	free(names);
	if (!ret && fflush(stdout))
		ret = gp_output_refuse(&error);
	return ret ? main_refuse(&error, MAIN_FAILED) : MAIN_OK;
}

/* As with mixes: what looks like a path is one. */
static bool main_is_path(const char *name)
{
	size_t size = strlen(name);

	return strchr(name, '/') || (size > 4 && !strcmp(name + size - 4, ".ini"));
}

static int main_load_device(struct main_run *run, struct gp_error *error)
{
	const char *name = run->options.device;
	struct gp_paths_names *names;
	char relative[128], path[4096], known[400];
	uint32_t i;
	int ret;

	if (main_is_path(name)) {
		(void)snprintf(path, sizeof(path), "%s", name);
	} else if ((size_t)snprintf(relative, sizeof(relative), "devices/%s.ini", name) >= sizeof(relative) ||
		   gp_paths_share(relative, path, sizeof(path))) {
		names = malloc(sizeof(*names));
		ret = names ? gp_paths_list("devices", ".ini", names) : -ENOMEM;
		gp_error_set(error, -ESRCH,
			     "there is no device \"%.40s\"; valid names are: %s; or the path of a file of your own",
			     name, ret ? "(none found)" : gp_paths_join(names, known, sizeof(known)));
		free(names);
		return -ESRCH;
	}
	ret = gp_desc_load(path, &run->desc, error);
	if (ret)
		return ret;
	for (i = 0; i < run->options.override_count; i++) {
		struct gp_error why = { "" };

		if (gp_desc_override(&run->desc, run->options.overrides[i], &why))
			return gp_error_set(error, -ESRCH,
					    "--set device.%.60s: %.300s (--describe lists the keys and their ranges)",
					    run->options.overrides[i], why.text);
	}
	return 0;
}

/* What the simulation takes the device to be, value by value. */
static int main_describe(struct main_run *run)
{
	struct gp_error error = { "" };
	char line[700];
	int ret, key;

	ret = main_load_device(run, &error);
	if (ret)
		return main_refuse(&error, ret == -ESRCH ? MAIN_USAGE : MAIN_FAILED);
	printf("%s: %s\n", run->desc.name, run->desc.title);
	for (key = 0; key < GP_DESC_KEY_COUNT; key++) {
		if (run->desc.values[key].present &&
		    !gp_desc_line(&run->desc, (enum gp_desc_key)key, line, sizeof(line)))
			printf("%s\n", line);
	}
	return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
}

static int main_load_workload(struct main_run *run, struct gp_error *error)
{
	struct gp_options *options = &run->options;
	struct gp_workload *workload = &run->workload;
	int ret = 0;

	options->mix_options.desc = &run->desc;
	if (options->mix)
		ret = gp_mix_load(options->mix, &options->mix_options, workload, error);
	/* With settings of the command line a refusal is as likely theirs as the file's. */
	if (ret)
		return options->mix_options.setting_count ? -ESRCH : ret;
	if (!options->mix && options->mix_options.setting_count)
		return gp_error_set(error, -ESRCH, "a trace has no parameters (--load, --request, --set mix.NAME)");
	if (!options->mix) {
		workload->device_count = options->mix_options.device_count ? options->mix_options.device_count : 1;
		snprintf(workload->name, sizeof(workload->name), "trace");
	}
	if (options->trace)
		ret = gp_mix_add_trace(workload, options->trace, &run->desc, error);
	if (!ret)
		ret = gp_workload_check(workload, &run->desc, error);
	return ret;
}

static enum gp_unit main_default_gate(const struct gp_desc *desc)
{
	return gp_desc_get(desc, GP_DESC_SCHEDULER) == GP_SCHEDULER_MES ? GP_UNIT_QUEUE : GP_UNIT_PROCESS;
}

static void main_fill_result(struct main_run *run)
{
	const struct gp_options *options = &run->options;
	struct gp_result *result = &run->result;

	result->seed = options->config.seed;
	snprintf(result->device, sizeof(result->device), "%s", run->desc.name);
	snprintf(result->device_title, sizeof(result->device_title), "%s", run->desc.title);
	snprintf(result->mix, sizeof(result->mix), "%s", run->workload.name);
	snprintf(result->mix_title, sizeof(result->mix_title), "%s", run->workload.title);
	snprintf(result->gate, sizeof(result->gate), "%s", gp_gate_names[options->config.unit]);
	snprintf(result->command, sizeof(result->command), "%s", options->command);
	result->device_count = options->config.device_count;
	result->gate_cost_ns = options->config.gate_cost_ns;
	result->dilate = options->config.dilate;
	result->runs = run->runs;
	for (uint32_t i = 0; i < run->workload.list_count && i < GP_RESULT_LIST_MAX; i++) {
		const struct gp_work_list *list = &run->workload.lists[i];
		struct gp_result_list *shown = &result->lists[result->list_count++];

		snprintf(shown->name, sizeof(shown->name), "%s", list->name);
		snprintf(shown->device, sizeof(shown->device), "%s", list->device);
		shown->model_ns = list->model_ns;
		shown->measured_ns = list->measured_ns;
	}
}

static int main_simulate(struct main_run *run, struct gp_error *error)
{
	struct gp_options *options = &run->options;
	struct main_bar bar = { .run_count = options->run_count };
	struct gp_mode_progress progress = { .context = &bar, .update = main_update };
	uint32_t i;
	int ret = 0;

	options->config.workload = &run->workload;
	options->config.desc = &run->desc;
	options->config.device_count = run->workload.device_count;
	if (!options->has_gate)
		options->config.unit = main_default_gate(&run->desc);
	if (!options->has_duration)
		options->config.duration_ns = gp_workload_duration_ns(&run->workload, options->config.seed);
	/* Pictures need the window; numbers do not. */
	options->config.no_recording = !options->html_path && !options->perfetto_path;
	main_fill_result(run);
	clock_gettime(CLOCK_MONOTONIC, &bar.start);
	gp_progress_init(&bar.progress, stderr, "simulating");
	for (i = 0; i < options->run_count && !ret; i++) {
		bar.run_index = i;
		ret = gp_mode_run(&options->config, options->runs[i], &progress, &run->runs[i], error);
		if (!ret)
			run->result.run_count++;
	}
	gp_progress_clear(&bar.progress);
	return ret;
}

static int main_write_file(const struct main_run *run, const char *path,
			   int (*view)(FILE *stream, const struct gp_result *result), struct gp_error *error)
{
	struct gp_file_writer writer;
	int ret;

	if (!path)
		return 0;
	ret = gp_file_open(&writer, path, error);
	if (ret)
		return ret;
	errno = 0;
	ret = view(writer.stream, &run->result);
	if (ret)
		gp_error_set(error, ret, "cannot write to %s: %s", writer.path, strerror(errno ? errno : -ret));
	else
		ret = gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return ret;
}

static bool main_is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int main_show(const struct main_run *run, struct gp_error *error)
{
	const struct gp_options *options = &run->options;
	bool quiet = main_is_stdout(options->json_path) || main_is_stdout(options->html_path) ||
		     main_is_stdout(options->perfetto_path);
	int ret;

	ret = main_write_file(run, options->json_path, gp_view_json, error);
	if (!ret)
		ret = main_write_file(run, options->perfetto_path, gp_view_perfetto, error);
	if (!ret)
		ret = main_write_file(run, options->html_path, gp_view_html, error);
	if (ret || quiet)
		return ret;
	ret = gp_view_table(stdout, &run->result, isatty(STDOUT_FILENO), gp_plain_width(0));
	if (ret || fflush(stdout))
		return gp_output_refuse(error);
	return 0;
}

static int main_run(struct main_run *run)
{
	struct gp_error error = { "" };
	int ret;

	ret = main_load_device(run, &error);
	if (!ret)
		ret = main_load_workload(run, &error);
	if (ret)
		return main_refuse(&error, ret == -ESRCH ? MAIN_USAGE : MAIN_FAILED);
	if (gp_file_try(run->options.json_path, &error) || gp_file_try(run->options.html_path, &error) ||
	    gp_file_try(run->options.perfetto_path, &error))
		return main_refuse(&error, MAIN_FAILED);
	ret = main_simulate(run, &error);
	if (ret)
		return main_refuse(&error, ret == -EINVAL ? MAIN_USAGE : MAIN_FAILED);
	ret = main_show(run, &error);
	return ret ? main_refuse(&error, MAIN_FAILED) : MAIN_OK;
}

int main(int argc, char **argv)
{
	struct main_run *run = calloc(1, sizeof(*run));
	struct gp_error error = { "" };
	uint32_t i;
	int status;

	gp_output_start("gpreempt sim", MAIN_FAILED);
	gp_plain_stdout();
	if (!run)
		return MAIN_FAILED;
	if (gp_options_parse(argc, argv, &run->options, &error)) {
		status = main_refuse(&error, MAIN_USAGE);
	} else if (run->options.help) {
		fputs(gp_options_help, stdout);
		status = fflush(stdout) ? MAIN_FAILED : MAIN_OK;
	} else if (run->options.version) {
		printf("gpreempt sim %s\n", GP_VERSION);
		status = MAIN_OK;
	} else if (run->options.list) {
		status = main_list();
	} else if (run->options.describe) {
		status = main_describe(run);
	} else {
		status = main_run(run);
	}
	for (i = 0; i < run->result.run_count; i++)
		gp_sim_result_fini(&run->runs[i]);
	gp_workload_fini(&run->workload);
	free(run);
	return status;
}
