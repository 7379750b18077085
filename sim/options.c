/* SPDX-License-Identifier: MIT */
/* Owns the options of `gpreempt sim`: their names, limits, and the sentences that refuse them. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "lib/units.h"
#include "sim/mode.h"
#include "sim/options.h"

const char *const gp_gate_names[] = { "device", "process", "queue", NULL };

/* clang-format off */
const char gp_options_help[] =
"Usage: gpreempt sim --mix MIX --device DEVICE [options]\n"
"Simulates GPUs and the processes that share them, in virtual time. Same options, same result, byte for byte.\n"
"\n"
"What runs, and on what\n"
"  --mix MIX            a built-in mix (--list shows them) or the path of your own (docs/mixes.md);\n"
"                       default serve+train\n"
"  --trace FILE         replays a rocprofv3 kernel_trace.csv, beside the mix if one is given\n"
"  --device DEVICE      a device description, or the path of your own (gpreempt bench device writes one); default mi300x\n"
"  --devices N          so many of them; default: what the mix asks for\n"
"  --load PERCENT       load of the mix's service          --request TIME   its length: 0.2ms, 2ms or 20ms\n"
"  --seed N             default 1                          --duration TIME  virtual time; default: the mix's\n"
"\n"
"How it is scheduled\n"
"  --policy NAME        alone, stock, sequential, lv1, reset, or a policy of the scheduler; default hpf\n"
"  --compare A,B,...    several of them, in one table\n"
"  --gate UNIT          what one gate transaction can change: device, process or queue; default by device\n"
"  --gate-cost TIME     what one transaction costs; default: from the device description\n"
"  --dilate K           the device is K times slower than the host: host delays shrink to 1/K\n"
"  --rptr WHEN          read counters move at fetch or at completion (default)\n"
"  --set NAME=VALUE     policy parameters: turn, min_open, linger_max, age_window, age_turn, hint_grace, overhead,\n"
"                       burst, batch_clients, fail_max, age_share, rest, protect, gather;\n"
"                       device.KEY of the description; mix.NAME of the mix;\n"
"                       sim.notice, sim.decide, sim.sample, sim.lv1_depth, sim.reset_depth, sim.reset_cost,\n"
"                       sim.window, sim.hold_out, sim.lower_slice, sim.middle_slice\n"
"\n"
"What comes out (a table, unless --json goes to standard output)\n"
"  --json [FILE]        schema 1, docs/json.md             --perfetto FILE  for ui.perfetto.dev\n"
"  --html FILE          one self-contained page            --list           mixes, devices, policies\n"
"                       (pages and traces show 200 ms of each run; --set sim.window=1s shows more)\n"
"  --describe           every value of the device with its unit, range, kind and source\n"
"\n"
"Priorities are 0 to 99; 99 = most urgent.\n"
"\n"
"Examples\n"
"  gpreempt sim --mix serve+train --device mi300x --compare alone,stock,hpf --seed 7\n"
"  gpreempt sim --mix urgent+15 --device mi308x --policy hpf --set turn=40ms --gate-cost 150us --html turns.html\n"
"  gpreempt sim --mix disb-a --device mi100 --compare stock,sequential,lv1,reset,hpf --duration 20s\n"
"  gpreempt sim --trace kernel_trace.csv --mix ./mine.ini --device mi210 --json result.json\n"
"\n"
"Exit status: 0 done, 1 failed (a file could not be read or written), 2 wrong usage.\n";

enum { OPTION_MIX = 256, OPTION_DEVICE, OPTION_DEVICES, OPTION_POLICY, OPTION_SET, OPTION_GATE, OPTION_GATE_COST,
       OPTION_DILATE, OPTION_SEED, OPTION_DURATION, OPTION_COMPARE, OPTION_JSON, OPTION_PERFETTO, OPTION_HTML,
       OPTION_LOAD, OPTION_REQUEST, OPTION_TRACE, OPTION_LIST, OPTION_DESCRIBE, OPTION_RPTR };

static const struct option options_long[] = {
	{ "mix", required_argument, NULL, OPTION_MIX }, { "device", required_argument, NULL, OPTION_DEVICE },
	{ "devices", required_argument, NULL, OPTION_DEVICES }, { "policy", required_argument, NULL, OPTION_POLICY },
	{ "set", required_argument, NULL, OPTION_SET }, { "gate", required_argument, NULL, OPTION_GATE },
	{ "gate-cost", required_argument, NULL, OPTION_GATE_COST },
	{ "dilate", required_argument, NULL, OPTION_DILATE },
	{ "seed", required_argument, NULL, OPTION_SEED }, { "duration", required_argument, NULL, OPTION_DURATION },
	{ "compare", required_argument, NULL, OPTION_COMPARE }, { "json", optional_argument, NULL, OPTION_JSON },
	{ "perfetto", required_argument, NULL, OPTION_PERFETTO }, { "html", required_argument, NULL, OPTION_HTML },
	{ "load", required_argument, NULL, OPTION_LOAD }, { "request", required_argument, NULL, OPTION_REQUEST },
	{ "trace", required_argument, NULL, OPTION_TRACE }, { "list", no_argument, NULL, OPTION_LIST },
	{ "describe", no_argument, NULL, OPTION_DESCRIBE },
	{ "rptr", required_argument, NULL, OPTION_RPTR }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { NULL, 0, NULL, 0 },
};
/* clang-format on */

/* Options that change what is computed, with their values: what someone else must type to see the same. */
static void options_remember(struct gp_options *options, const char *name, const char *value)
{
	size_t used = strlen(options->command);

	snprintf(options->command + used, sizeof(options->command) - used, " --%s %s", name, value);
}

static int options_count(const char *text, const char *what, uint64_t min, uint64_t max, uint32_t *ret_value,
			 struct gp_error *error)
{
	uint64_t value;
	int ret = gp_units_parse_count(text, what, min, max, &value, error);

	if (!ret)
		*ret_value = (uint32_t)value;
	return ret;
}

/* 0 turns these off, as in gpreempt.conf; in the configuration 0 is what was not set. */
static int options_time(const char *value, const char *name, uint64_t *ret_ns, struct gp_sim_config *config,
			struct gp_error *error)
{
	bool is_off = ret_ns == &config->param.gather_ns && !strcmp(value, "off");
	int ret = is_off ? 0 : gp_units_parse_ns(value, name, 0, GP_DURATION_NS_MAX, ret_ns, error);

	if (!ret && ret_ns == &config->middle_slice_ns && !*ret_ns)
		*ret_ns = SIM_SLICE_NONE;
	if (!ret && ret_ns == &config->param.gather_ns && (is_off || !*ret_ns))
		*ret_ns = GP_GATHER_OFF;
	return ret;
}

/* Everything that --set can reach directly: times, counts, and permille that may be written as a percentage. */
static int options_set_number(struct gp_options *options, const char *name, const char *value, struct gp_error *error)
{
	struct gp_sim_config *c = &options->config;
	/* clang-format off */
	const struct { const char *name; uint64_t *time_ns; uint32_t *count; uint64_t max; } keys[] = {
		{ "turn", &c->param.turn_ns, NULL, 0 }, { "min_open", &c->param.min_open_ns, NULL, 0 },
		{ "linger_max", &c->param.linger_max_ns, NULL, 0 }, { "age_window", &c->param.age_window_ns, NULL, 0 },
		{ "age_turn", &c->param.age_turn_ns, NULL, 0 }, { "hint_grace", &c->param.hint_grace_ns, NULL, 0 },
		{ "rest", &c->param.rest_ns, NULL, 0 }, { "gather", &c->param.gather_ns, NULL, 0 },
		{ "burst", NULL, &c->param.burst, 100000 }, { "batch_clients", NULL, &c->param.batch_clients, GP_BATCH_MAX },
		{ "fail_max", NULL, &c->param.fail_max, 1000 }, { "sim.notice", &c->notice_ns, NULL, 0 },
		{ "sim.decide", &c->decide_ns, NULL, 0 }, { "sim.sample", &c->sample_ns, NULL, 0 },
		{ "sim.lv1_depth", NULL, &c->lv1_depth, 65536 }, { "sim.reset_depth", NULL, &c->reset_depth, 65536 },
		{ "sim.reset_cost", &c->reset_cost_ns, NULL, 0 }, { "sim.window", &c->window_ns, NULL, 0 },
		{ "sim.hold_out", NULL, &c->hold_out, 1 }, { "sim.lower_slice", &c->lower_slice_ns, NULL, 0 },
		{ "sim.middle_slice", &c->middle_slice_ns, NULL, 0 },
		{ "overhead", NULL, &c->param.overhead_permille, 1000 },
		{ "age_share", NULL, &c->param.age_permille, 1000 },
	};
	/* clang-format on */
	size_t i;

	if (!strcmp(name, "protect")) {
		for (i = GP_PROTECT_LATENCY; gp_protect_names[i] && strcmp(gp_protect_names[i], value); i++)
			;
		c->param.protect = (enum gp_protect)i;
		return gp_protect_names[i] ? 0 :
					     gp_error_set(error, -EINVAL,
							  "--set: protect is latency, balanced or "
							  "throughput, not \"%.40s\"",
							  value);
	}
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(name, keys[i].name))
			continue;
		if (keys[i].time_ns)
			return options_time(value, name, keys[i].time_ns, c, error);
		return options_count(value, name, 1, keys[i].max, keys[i].count, error);
	}
	return gp_error_set(
		error, -EINVAL,
		"--set: there is no \"%.40s\"; there are turn, min_open, linger_max, age_window, "
		"age_turn, age_share (per mille), hint_grace, rest, overhead (per mille), burst, batch_clients, fail_max, protect, gather, device.KEY, "
		"mix.NAME, "
		"sim.notice, sim.decide, sim.sample, sim.lv1_depth, sim.reset_depth, sim.reset_cost, sim.window, "
		"sim.hold_out, sim.lower_slice, sim.middle_slice",
		name);
}

static int options_add_setting(struct gp_options *options, const char *name, const char *value, struct gp_error *error)
{
	uint32_t i = options->mix_options.setting_count;
	int size;

	if (i == GP_MIX_SETTING_MAX)
		return gp_error_set(error, -EINVAL, "more than %u settings", GP_MIX_SETTING_MAX);
	size = snprintf(options->setting_texts[i], sizeof(options->setting_texts[i]), "%s=%s", name, value);
	if (size < 0 || (size_t)size >= sizeof(options->setting_texts[i]))
		return gp_error_set(error, -EINVAL, "the value of %.40s is too long", name);
	options->mix_options.settings[i] = options->setting_texts[i];
	options->mix_options.setting_count++;
	return 0;
}

static int options_set(struct gp_options *options, const char *argument, struct gp_error *error)
{
	const char *equals = strchr(argument, '=');
	char name[48];

	if (!equals || equals == argument || (size_t)(equals - argument) >= sizeof(name))
		return gp_error_set(error, -EINVAL, "--set wants NAME=VALUE, not \"%.40s\"", argument);
	memcpy(name, argument, (size_t)(equals - argument));
	name[equals - argument] = 0;
	if (!strncmp(name, "mix.", 4))
		return options_add_setting(options, name + 4, equals + 1, error);
	if (strncmp(name, "device.", 7))
		return options_set_number(options, name, equals + 1, error);
	if (options->override_count == GP_MIX_SETTING_MAX)
		return gp_error_set(error, -EINVAL, "more than %u overrides", GP_MIX_SETTING_MAX);
	options->overrides[options->override_count++] = argument + 7;
	return 0;
}

static int options_gate(struct gp_options *options, const char *argument, struct gp_error *error)
{
	uint32_t i;

	for (i = 0; gp_gate_names[i]; i++) {
		if (!strcmp(argument, gp_gate_names[i])) {
			options->config.unit = (enum gp_unit)i;
			options->has_gate = true;
			return 0;
		}
	}
	return gp_error_set(error, -EINVAL, "--gate is \"%.40s\"; it must be device, process or queue", argument);
}

static int options_add_run(struct gp_options *options, const char *name, struct gp_error *error)
{
	char names[200];
	uint32_t i;

	if (!gp_mode_is_name(name))
		return gp_error_set(error, -EINVAL, "there is no policy \"%.40s\"; valid names are: %s", name,
				    gp_mode_names(names, sizeof(names)));
	for (i = 0; i < options->run_count; i++) {
		if (!strcmp(options->runs[i], name))
			return gp_error_set(error, -EINVAL, "policy %s is named twice", name);
	}
	if (options->run_count == GP_OPTIONS_RUN_MAX)
		return gp_error_set(error, -EINVAL, "more than %u policies", GP_OPTIONS_RUN_MAX);
	strcpy(options->runs[options->run_count++], name);
	return 0;
}

static int options_compare(struct gp_options *options, const char *argument, struct gp_error *error)
{
	char text[256], *rest = NULL, *name;
	int ret = 0;

	if (strlen(argument) >= sizeof(text))
		return gp_error_set(error, -EINVAL, "--compare names too many policies");
	strcpy(text, argument);
	options->run_count = 0;
	for (name = strtok_r(text, ",", &rest); name && !ret; name = strtok_r(NULL, ",", &rest))
		ret = options_add_run(options, name, error);
	if (!ret && !options->run_count)
		ret = gp_error_set(error, -EINVAL, "--compare wants names, such as alone,stock,hpf");
	return ret;
}

/* A percentage without its sign, so that the mix can add it. */
static int options_load(struct gp_options *options, const char *argument, struct gp_error *error)
{
	char text[16];
	size_t size = strlen(argument);
	uint64_t load;
	int ret;

	if (size && argument[size - 1] == '%')
		size--;
	if (!size || size >= sizeof(text))
		return gp_error_set(error, -EINVAL, "--load is a percentage from 1 to 1000");
	memcpy(text, argument, size);
	text[size] = 0;
	ret = gp_units_parse_count(text, "--load", 1, 1000, &load, error);
	return ret ? ret : options_add_setting(options, "load", text, error);
}

static int options_rptr(struct gp_options *options, const char *argument, struct gp_error *error)
{
	if (strcmp(argument, "fetch") && strcmp(argument, "completion"))
		return gp_error_set(error, -EINVAL, "--rptr is \"%.40s\"; it must be fetch or completion", argument);
	options->config.rptr_at_fetch = argument[0] == 'f';
	return 0;
}

static int options_quantity(struct gp_options *options, int option, const char *argument, struct gp_error *error)
{
	struct gp_sim_config *config = &options->config;

	switch (option) {
	case OPTION_DEVICES:
		return options_count(argument, "--devices", 1, GP_WORK_DEVICE_MAX, &options->mix_options.device_count,
				     error);
	case OPTION_GATE_COST:
		return gp_units_parse_ns(argument, "--gate-cost", 1, 1000000000ull, &config->gate_cost_ns, error);
	case OPTION_DILATE: return options_count(argument, "--dilate", 1, 1000000, &config->dilate, error);
	case OPTION_SEED: return gp_units_parse_count(argument, "--seed", 0, UINT64_MAX, &config->seed, error);
	case OPTION_DURATION:
		options->has_duration = true;
		return gp_units_parse_ns(argument, "--duration", 1000, 1000 * GP_DURATION_NS_MAX, &config->duration_ns,
					 error);
	default: return options_load(options, argument, error);
	}
}

static int options_one(struct gp_options *options, int option, const char *argument, struct gp_error *error)
{
	switch (option) {
	case OPTION_MIX: options->mix = argument; return 0;
	case OPTION_DEVICE: options->device = argument; return 0;
	case OPTION_TRACE: options->trace = argument; return 0;
	case OPTION_POLICY: options->run_count = 0; return options_add_run(options, argument, error);
	case OPTION_COMPARE: return options_compare(options, argument, error);
	case OPTION_SET: return options_set(options, argument, error);
	case OPTION_GATE: return options_gate(options, argument, error);
	case OPTION_RPTR: return options_rptr(options, argument, error);
	case OPTION_REQUEST: return options_add_setting(options, "request", argument, error);
	default: return options_quantity(options, option, argument, error);
	}
}

/* Options that say where the result goes, or ask for something else than a simulation. */
static bool options_output(struct gp_options *options, int option, char **argv)
{
	switch (option) {
	case OPTION_JSON:
		options->json = true;
		/* The value may stand apart, as with every other option; getopt leaves an optional one to us. */
		if (!optarg && argv[optind] && argv[optind][0] != '-')
			optarg = argv[optind++];
		options->json_path = optarg ? optarg : "-";
		return true;
	case OPTION_PERFETTO: options->perfetto_path = optarg; return true;
	case OPTION_HTML: options->html_path = optarg; return true;
	case OPTION_LIST: options->list = true; return true;
	case OPTION_DESCRIBE: options->describe = true; return true;
	case 'V': options->version = true; return true;
	case 'h': options->help = true; return true;
	default: return false;
	}
}

static void options_defaults(struct gp_options *options)
{
	*options = (struct gp_options){ .device = "mi300x" };
	options->config.seed = 1;
	options->config.dilate = 1;
	options->config.notice_ns = options->config.decide_ns = options->config.sample_ns = GP_SIM_DEFAULT_NS;
	snprintf(options->command, sizeof(options->command), "gpreempt sim");
}

static bool options_same_path(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

int gp_options_parse(int argc, char **argv, struct gp_options *options, struct gp_error *error)
{
	int option, index, ret;

	options_defaults(options);
	opterr = 0;
	optind = 1;
	for (;;) {
		index = -1;
		option = getopt_long(argc, argv, ":hV", options_long, &index);
		if (option == -1)
			break;
		if (option == '?' || option == ':')
			return gp_error_set(error, -EINVAL,
					    option == ':' ? "%s needs a value" : "there is no option %s",
					    argv[optind - 1]);
		if (options_output(options, option, argv))
			continue;
		ret = options_one(options, option, optarg, error);
		if (ret)
			return ret;
		options_remember(options, options_long[index].name, optarg);
	}
	if (optind < argc)
		return gp_error_set(error, -EINVAL, "\"%.60s\" is not understood: options start with --", argv[optind]);
	if (options_same_path(options->json_path, options->html_path) ||
	    options_same_path(options->json_path, options->perfetto_path) ||
	    options_same_path(options->html_path, options->perfetto_path))
		return gp_error_set(error, -EINVAL, "two outputs go to the same file");
	if (!options->mix && !options->trace)
		options->mix = "serve+train";
	return options->run_count ? 0 : options_add_run(options, GP_MODE_DEFAULT, error);
}
