/* SPDX-License-Identifier: MIT */
/* Owns the options of `gpreempt report`: their names, limits, and the sentences that refuse them. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/units.h"
#include "report/options.h"

/* clang-format off */
const char gp_report_help[] =
"Usage: gpreempt report [options] TRACE...\n"
"       gpreempt report --compare [options] A B\n"
"Says what happened between the application and the GPU: where the time went, layer by layer and without counting\n"
"anything twice, what the GPU waited for, and what to do about it.\n"
"\n"
"TRACE is a file of any of these, recognised by its content, a folder of them, or - for standard input; several files\n"
"of one run are joined:\n"
"  rocprof v1 (csv, stats, json, db), rocprof v2 (csv, console), rocprofv3 (csv, json), rocpd, RPD, PyTorch\n"
"  (torch.profiler, on ROCm or CUDA), JAX (jax.profiler.trace, on GPUs), other Chrome JSON, gpreempt record, Perfetto\n"
"  (as gpreempt writes it), ftrace text, dmesg. JSON and text may be gzip.\n"
"\n"
"  --compare            two runs beside each other: what changed; also as --html and --json\n"
"  --process PID        only this process                 --device N    only this device's kernels and copies\n"
"  --from TIME          from this time of the trace on    --to TIME     up to it; 10ms, 1.5s\n"
"  --top N              rows of each table; 0 is all; default 10\n"
"\n"
"What comes out (text, unless something else goes to standard output)\n"
"  --json[=FILE]        schema 1, docs/report.md          --perfetto FILE  for ui.perfetto.dev\n"
"  --html FILE          one self-contained page           --width N        columns; default: the terminal's\n"
"\n"
"Examples\n"
"  gpreempt report *_trace.csv\n"
"  gpreempt report 1234_results.db --html run.html\n"
"  gpreempt report --compare before.db after.db\n"
"  dmesg | gpreempt report 1234_results.db -\n"
"\n"
"Exit status: 0 done, 1 failed (a file could not be read or written), 2 wrong usage.\n";

enum { OPTION_JSON = 256, OPTION_HTML, OPTION_PERFETTO, OPTION_COMPARE, OPTION_PROCESS, OPTION_DEVICE, OPTION_FROM,
       OPTION_TO, OPTION_TOP, OPTION_WIDTH };

static const struct option options_long[] = {
	{ "json", optional_argument, NULL, OPTION_JSON }, { "html", required_argument, NULL, OPTION_HTML },
	{ "perfetto", required_argument, NULL, OPTION_PERFETTO }, { "compare", no_argument, NULL, OPTION_COMPARE },
	{ "process", required_argument, NULL, OPTION_PROCESS }, { "device", required_argument, NULL, OPTION_DEVICE },
	{ "from", required_argument, NULL, OPTION_FROM }, { "to", required_argument, NULL, OPTION_TO },
	{ "top", required_argument, NULL, OPTION_TOP }, { "width", required_argument, NULL, OPTION_WIDTH },
	{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
};
/* clang-format on */

static int options_count(const char *text, const char *what, uint64_t max, uint32_t *ret_value, struct gp_error *error)
{
	uint64_t value;
	int r = gp_units_parse_count(text, what, 0, max, &value, error);

	if (!r)
		*ret_value = (uint32_t)value;
	return r;
}

static int options_one(struct gp_report_options *options, int option, int argc, char **argv, struct gp_error *error)
{
	struct gp_filter *filter = &options->filter;

	switch (option) {
	case 'h': options->help = true; return 0;
	case 'V': options->version = true; return 0;
	case OPTION_COMPARE: options->compare = true; return 0;
	case OPTION_HTML: options->html_path = optarg; return 0;
	case OPTION_PERFETTO: options->perfetto_path = optarg; return 0;
	case OPTION_JSON:
		/* Only "--json=FILE": behind a blank a trace may follow. */
		options->json_path = optarg ? optarg : "-";
		return 0;
	case OPTION_PROCESS:
		filter->has_pid = true;
		return gp_units_parse_count(optarg, "--process", 0, UINT64_MAX, &filter->pid, error);
	case OPTION_DEVICE:
		filter->has_device = true;
		return gp_units_parse_count(optarg, "--device", 0, UINT64_MAX, &filter->device, error);
	case OPTION_FROM:
		filter->has_from = true;
		return gp_units_parse_ns(optarg, "--from", 0, UINT64_MAX / 2, &filter->from_ns, error);
	case OPTION_TO:
		filter->has_to = true;
		return gp_units_parse_ns(optarg, "--to", 0, UINT64_MAX / 2, &filter->to_ns, error);
	case OPTION_TOP: options->has_top = true; return options_count(optarg, "--top", 100000, &options->top, error);
	case OPTION_WIDTH: return options_count(optarg, "--width", 1000, &options->width, error);
	default: break;
	}
	return gp_error_set(error, -EINVAL, "unknown option or missing value: %s",
			    argv[optind - 1 < argc ? optind - 1 : 0]);
}

static bool options_is_file(const struct stat *a, const struct stat *b)
{
	return S_ISREG(a->st_mode) && a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The same thing under two names. Devices and pipes may be written to twice; what is not there yet goes by its name. */
static bool options_is_same(const char *a, const char *b)
{
	struct stat x, y;

	if (stat(a, &x) || stat(b, &y))
		return !strcmp(a, b);
	return options_is_file(&x, &y);
}

/* An input's "-" is standard input, which may be a file too. */
static bool options_is_input(const char *output, const char *input)
{
	struct stat x, y;

	if (strcmp(input, "-"))
		return options_is_same(output, input);
	return !stat(output, &x) && !fstat(STDIN_FILENO, &y) && options_is_file(&x, &y);
}

static int options_outputs(const struct gp_report_options *options, struct gp_error *error)
{
	const char *const outputs[] = { options->json_path, options->html_path, options->perfetto_path };

	for (int i = 0; i < 3; i++) {
		if (!outputs[i])
			continue;
		if (!outputs[i][0])
			return gp_error_set(error, -EINVAL, "the name of an output is empty");
		for (int j = 0; j < i; j++)
			if (outputs[j] && options_is_same(outputs[i], outputs[j]))
				return gp_error_set(error, -EINVAL, "two outputs go to %s",
						    strcmp(outputs[i], "-") ? outputs[i] : "standard output");
		for (uint32_t j = 0; strcmp(outputs[i], "-") && j < options->path_count; j++)
			if (options_is_input(outputs[i], options->paths[j]))
				return gp_error_set(error, -EINVAL, "%s is a trace to read; write to another file",
						    outputs[i]);
	}
	return 0;
}

static int options_inputs(const struct gp_report_options *options, struct gp_error *error)
{
	uint32_t standard_count = 0;

	if (!options->path_count)
		return gp_error_set(error, -EINVAL, "name at least one trace");
	if (options->compare && options->path_count != 2)
		return gp_error_set(error, -EINVAL, "--compare takes two traces");
	for (uint32_t i = 0; i < options->path_count; i++)
		standard_count += !strcmp(options->paths[i], "-");
	if (standard_count > 1)
		return gp_error_set(error, -EINVAL, "standard input can be read only once");
	return 0;
}

int gp_report_options_parse(int argc, char **argv, struct gp_report_options *ret_options, struct gp_error *error)
{
	struct gp_report_options options = { .top = 10 };
	int option, r;

	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "hV", options_long, NULL)) != -1) {
		r = options_one(&options, option, argc, argv, error);
		if (r)
			return r;
	}
	options.paths = argv + optind;
	options.path_count = (uint32_t)(argc - optind);
	if (options.filter.has_from && options.filter.has_to && options.filter.from_ns >= options.filter.to_ns)
		return gp_error_set(error, -EINVAL, "--from is not before --to");
	if (!options.help && !options.version) {
		r = options_inputs(&options, error);
		if (r)
			return r;
		if (options.compare && options.perfetto_path)
			return gp_error_set(error, -EINVAL, "--compare writes text, --json or --html");
		r = options_outputs(&options, error);
		if (r)
			return r;
	}
	*ret_options = options;
	return 0;
}

const char *gp_report_filter_text(const struct gp_filter *filter, char *buffer, size_t buffer_size)
{
	char from[GP_UNITS_TEXT_SIZE], to[GP_UNITS_TEXT_SIZE], part[96];
	size_t used = 0;

	buffer[0] = '\0';
	for (int i = 0; i < 4; i++) {
		part[0] = '\0';
		if (i == 0 && filter->has_pid)
			(void)snprintf(part, sizeof(part), "process %" PRIu64, filter->pid);
		if (i == 1 && filter->has_device)
			(void)snprintf(part, sizeof(part), "device %" PRIu64, filter->device);
		if (i == 2 && filter->has_from)
			(void)snprintf(part, sizeof(part), "from %s",
				       gp_units_format_ns(filter->from_ns, from, sizeof(from)));
		if (i == 3 && filter->has_to)
			(void)snprintf(part, sizeof(part), "up to %s",
				       gp_units_format_ns(filter->to_ns, to, sizeof(to)));
		if (part[0] && used < buffer_size)
			used += (size_t)snprintf(buffer + used, buffer_size - used, "%s%s", used ? ", " : "", part);
	}
	return buffer;
}
