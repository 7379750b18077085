/* SPDX-License-Identifier: MIT */
/* The program `gpreempt report`: reads options and traces, has them analysed, hands the result to the views. Only this
 * file prints, and only this file looks at a clock, for the progress bar. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "lib/file.h"
#include "lib/output.h"
#include "lib/plain.h"
#include "lib/progress.h"
#include "report/load.h"
#include "report/options.h"
#include "view/report_view.h"

enum { MAIN_OK = 0, MAIN_FAILED = 1, MAIN_USAGE = 2 };

struct main_bar {
	struct gp_progress progress;
	struct timespec start;
	uint64_t before_size, total_size; /* of all files */
};

static int main_refuse(const struct gp_error *error, int status)
{
	fprintf(stderr, "gpreempt report: %s\n", error->text);
	if (status == MAIN_USAGE)
		fprintf(stderr, "Try 'gpreempt report --help'.\n");
	return status;
}

static void main_update(void *context, uint64_t read_size, uint64_t total_size)
{
	struct main_bar *bar = context;
	struct timespec now;

	(void)total_size;
	clock_gettime(CLOCK_MONOTONIC, &now);
	gp_progress_update(
		&bar->progress, bar->before_size + read_size, bar->total_size,
		(uint64_t)((now.tv_sec - bar->start.tv_sec) * 1000 + (now.tv_nsec - bar->start.tv_nsec) / 1000000));
}

static uint64_t main_size(const char *path)
{
	struct stat st;

	return !(strcmp(path, "-") ? stat(path, &st) : fstat(STDIN_FILENO, &st)) && S_ISREG(st.st_mode) ?
		       (uint64_t)st.st_size :
		       0;
}

static int main_load(struct gp_run *run, char **paths, uint32_t count, struct gp_error *error)
{
	struct main_bar bar = { .before_size = 0 };
	struct gp_read_progress progress = { .context = &bar, .update = main_update };
	int r = gp_run_init(run, 0, error);

	gp_progress_init(&bar.progress, stderr, "reading");
	clock_gettime(CLOCK_MONOTONIC, &bar.start);
	for (uint32_t i = 0; i < count; i++)
		bar.total_size += main_size(paths[i]);
	for (uint32_t i = 0; i < count && !r; i++) {
		r = gp_folder_is(paths[i]) ? gp_folder_load(run, paths[i], &progress, error) :
					     gp_run_load(run, paths[i], &progress, error);
		bar.before_size += main_size(paths[i]);
	}
	gp_progress_clear(&bar.progress);
	return r;
}

/* Tables of text are short; JSON has everything unless it is asked for less. */
static uint32_t main_top(const struct gp_report_options *options)
{
	return options->has_top || !options->json_path ? options->top : 0;
}

static void main_title(struct gp_report *report, const struct gp_report_options *options, const char *path,
		       uint32_t path_count)
{
	const char *name = strrchr(path, '/');

	if (path_count > 1)
		(void)snprintf(report->title, sizeof(report->title), "%.100s and %u more", name ? name + 1 : path,
			       path_count - 1);
	else
		(void)snprintf(report->title, sizeof(report->title), "%.140s", name ? name + 1 : path);
	(void)gp_report_filter_text(&options->filter, report->filter, sizeof(report->filter));
	report->is_filtered = report->filter[0];
}

static int main_analyse(struct gp_run *run, const struct gp_report_options *options, uint32_t path_count,
			struct gp_report *report, struct gp_error *error)
{
	int r = gp_analyse(&run->store, &run->facts, &options->filter, main_top(options), report, error);

	if (!r && gp_folder_warn(run, report))
		r = gp_error_set(error, -ENOMEM, "not enough memory");
	if (!r)
		main_title(report, options, run->store.files[0].name,
			   path_count > run->store.file_count ? path_count : run->store.file_count);
	return r;
}

static struct gp_report_style main_style(const struct gp_report_options *options)
{
	bool is_terminal = isatty(STDOUT_FILENO);
	struct gp_report_style style = { .colour = is_terminal && !getenv("NO_COLOR"), .width = options->width };

	style.width = style.width ? style.width : gp_plain_width(110);
	return style;
}

static int main_write_file(const struct gp_report *report, const char *path,
			   int (*view)(FILE *stream, const struct gp_report *report), struct gp_error *error)
{
	struct gp_file_writer writer;
	int r;

	if (!path)
		return 0;
	r = gp_file_open(&writer, path, error);
	if (r)
		return r;
	errno = 0;
	r = view(writer.stream, report);
	if (r)
		gp_error_set(error, r, "cannot write to %s: %s", writer.path, strerror(errno ? errno : -r));
	else
		r = gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return r;
}

static bool main_is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int main_text(int r, struct gp_error *error)
{
	return r ? gp_output_refuse(error) : 0;
}

static int main_perfetto(struct gp_run *run, const struct gp_report_options *options, struct gp_error *error)
{
	struct gp_file_writer writer;
	int r;

	if (!options->perfetto_path)
		return 0;
	r = gp_file_open(&writer, options->perfetto_path, error);
	if (r)
		return r;
	r = gp_export_perfetto(&run->store, &run->facts, &options->filter, writer.stream, error);
	if (!r)
		r = gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return r;
}

static int main_one(const struct gp_report_options *options, struct gp_error *error)
{
	struct gp_report_style style = main_style(options);
	struct gp_report report = { .title = "" };
	struct gp_run run = { 0 };
	int r = main_load(&run, options->paths, options->path_count, error);

	if (!r)
		r = main_analyse(&run, options, options->path_count, &report, error);
	if (!r)
		r = main_write_file(&report, options->json_path, gp_report_json, error);
	if (!r)
		r = main_perfetto(&run, options, error);
	if (!r)
		r = main_write_file(&report, options->html_path, gp_report_html, error);
	if (!r && !main_is_stdout(options->json_path) && !main_is_stdout(options->html_path) &&
	    !main_is_stdout(options->perfetto_path)) {
		report.top = options->top;
		r = main_text(gp_report_text(stdout, &report, &style), error);
	}
	gp_report_fini(&report);
	gp_run_fini(&run);
	return r;
}

static int main_compare_file(const struct gp_report *reports, const char *path,
			     int (*view)(FILE *stream, const struct gp_report *a, const struct gp_report *b),
			     struct gp_error *error)
{
	struct gp_file_writer writer;
	int r;

	if (!path)
		return 0;
	r = gp_file_open(&writer, path, error);
	if (r)
		return r;
	errno = 0;
	r = view(writer.stream, &reports[0], &reports[1]);
	if (r)
		gp_error_set(error, r, "cannot write to %s: %s", writer.path, strerror(errno ? errno : -r));
	else
		r = gp_file_commit(&writer, error);
	gp_file_abandon(&writer);
	return r;
}

static int main_compare(const struct gp_report_options *options, struct gp_error *error)
{
	struct gp_report_style style = main_style(options);
	struct gp_report reports[2] = { { .title = "" }, { .title = "" } };
	struct gp_run runs[2] = { { .facts = { 0 } }, { .facts = { 0 } } };
	int r = 0;

	for (int i = 0; i < 2 && !r; i++) {
		r = main_load(&runs[i], &options->paths[i], 1, error);
		if (!r)
			r = main_analyse(&runs[i], options, 1, &reports[i], error);
	}
	if (!r)
		r = main_compare_file(reports, options->json_path, gp_report_compare_json, error);
	if (!r)
		r = main_compare_file(reports, options->html_path, gp_report_compare_html, error);
	if (!r && !main_is_stdout(options->json_path) && !main_is_stdout(options->html_path))
		r = main_text(gp_report_compare_text(stdout, &reports[0], &reports[1], &style), error);
	for (int i = 0; i < 2; i++) {
		gp_report_fini(&reports[i]);
		gp_run_fini(&runs[i]);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct gp_report_options options;
	struct gp_error error = { "" };
	int r;

	gp_output_start("gpreempt report", MAIN_FAILED);
	gp_plain_stdout();
	if (gp_report_options_parse(argc, argv, &options, &error))
		return main_refuse(&error, MAIN_USAGE);
	if (options.help) {
		fputs(gp_report_help, stdout);
		return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
	}
	if (options.version) {
		printf("gpreempt report %s\n", GP_VERSION);
		return fflush(stdout) ? MAIN_FAILED : MAIN_OK;
	}
	r = options.compare ? main_compare(&options, &error) : main_one(&options, &error);
	return r ? main_refuse(&error, MAIN_FAILED) : MAIN_OK;
}
