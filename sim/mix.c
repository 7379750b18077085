/* SPDX-License-Identifier: MIT */
/* Owns the mix file: sections, parameters and their substitution, names of built-in mixes. Every sentence is
 * file:line. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/paths.h"
#include "lib/units.h"
#include "sim/mix_state.h"

static int mix_end_section(struct mix_parser *parser, struct gp_error *error)
{
	enum mix_section section = parser->section;

	parser->section = MIX_NO_SECTION;
	if (section == MIX_CLIENT)
		return gp_mix_client_end(parser, error);
	if (section == MIX_DISB)
		return gp_mix_disb_end(parser, error);
	if (section == MIX_SEQUENCE && !parser->workload->sequences[parser->current_sequence].step_count)
		return gp_error_set(error, -EINVAL, "the sequence above has no steps");
	return 0;
}

static int mix_begin_sequence(struct mix_parser *parser, const char *name, struct gp_error *error)
{
	uint32_t i, index;

	for (i = 0; i < parser->sequence_count; i++) {
		if (!strcmp(parser->sequences[i].name, name))
			return gp_error_set(error, -EEXIST, "there are two sequences \"%s\"", name);
	}
	index = gp_workload_add_sequence(parser->workload);
	if (index == UINT32_MAX || parser->sequence_count == MIX_SEQUENCE_MAX)
		return gp_error_set(error, -ENOSPC, "more than %u sequences", MIX_SEQUENCE_MAX);
	strcpy(parser->sequences[parser->sequence_count].name, name);
	parser->sequences[parser->sequence_count++].index = index;
	parser->current_sequence = index;
	parser->list_device[0] = 0;
	parser->list_places = 0;
	parser->list_repeat = 1;
	return 0;
}

static int mix_begin_section(struct mix_parser *parser, const char *section, uint32_t line, struct gp_error *error)
{
	const char *name = strchr(section, ' ');
	bool is_client = !strncmp(section, "client ", 7), is_sequence = !strncmp(section, "sequence ", 9);
	int ret;

	ret = mix_end_section(parser, error);
	if (ret)
		return ret;
	parser->key_count = 0;
	if (is_client || is_sequence) {
		name++;
		if (!name[0] || strlen(name) >= MIX_NAME_SIZE)
			return gp_error_set(error, -EINVAL, "the name in [%.60s] must have 1 to %u characters", section,
					    MIX_NAME_SIZE - 1);
		parser->section = is_client ? MIX_CLIENT : MIX_SEQUENCE;
		if (is_sequence)
			return mix_begin_sequence(parser, name, error);
		return gp_mix_client_begin(parser, name, line, error);
	}
	if (!strcmp(section, "mix"))
		parser->section = MIX_MIX;
	else if (!strcmp(section, "parameters"))
		parser->section = MIX_PARAMETERS;
	else if (!strcmp(section, "disb"))
		parser->section = MIX_DISB;
	else
		return gp_error_set(error, -EINVAL,
				    "[%.60s] is not a section; there are mix, parameters, sequence NAME, client NAME, "
				    "disb",
				    section);
	return 0;
}

static struct mix_parameter *mix_find_parameter(struct mix_parser *parser, const char *name, size_t name_size)
{
	uint32_t i;

	for (i = 0; i < parser->parameter_count; i++) {
		if (strlen(parser->parameters[i].name) == name_size &&
		    !strncmp(parser->parameters[i].name, name, name_size))
			return &parser->parameters[i];
	}
	return NULL;
}

/* ${name} becomes the parameter's value; values are not looked at again. */
static int mix_substitute(struct mix_parser *parser, const char *value, char *ret_value, struct gp_error *error)
{
	const struct mix_parameter *parameter;
	const char *end, *from = value;
	size_t used = 0, size;

	while (*from) {
		if (from[0] == '$' && from[1] == '{') {
			end = strchr(from, '}');
			parameter = end ? mix_find_parameter(parser, from + 2, (size_t)(end - from - 2)) : NULL;
			if (!parameter)
				return gp_error_set(error, -EINVAL,
						    "\"%.60s\" is not a parameter declared in [parameters] above",
						    from);
			size = strlen(parameter->value);
			if (used + size >= MIX_VALUE_SIZE)
				break;
			memcpy(ret_value + used, parameter->value, size);
			used += size;
			from = end + 1;
			continue;
		}
		if (used + 1 >= MIX_VALUE_SIZE)
			break;
		ret_value[used++] = *from++;
	}
	if (*from)
		return gp_error_set(error, -EINVAL, "the value is longer than %u characters", MIX_VALUE_SIZE - 1);
	ret_value[used] = 0;
	return 0;
}

/* The command line's settings win over the mix's own defaults. */
static int mix_set_parameter(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	struct mix_parameter *parameter;
	size_t size = strlen(name);
	uint32_t i;

	if (parser->parameter_count == MIX_PARAMETER_MAX)
		return gp_error_set(error, -ENOSPC, "more than %u parameters", MIX_PARAMETER_MAX);
	for (i = 0; i < parser->options->setting_count; i++) {
		if (!strncmp(parser->options->settings[i], name, size) && parser->options->settings[i][size] == '=')
			value = parser->options->settings[i] + size + 1;
	}
	if (size >= MIX_NAME_SIZE || strlen(value) >= MIX_NAME_SIZE)
		return gp_error_set(error, -EINVAL, "parameter %.60s: its name or value is longer than %u characters",
				    name, MIX_NAME_SIZE - 1);
	if (mix_find_parameter(parser, name, size))
		return gp_error_set(error, -EEXIST, "there are two parameters \"%s\"", name);
	parameter = &parser->parameters[parser->parameter_count++];
	strcpy(parameter->name, name);
	strcpy(parameter->value, value);
	return 0;
}

static int mix_set_mix(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	uint64_t number;
	int ret;

	if (!strcmp(name, "title")) {
		if (strlen(value) >= sizeof(parser->title))
			return gp_error_set(error, -EINVAL, "the title is longer than %zu characters",
					    sizeof(parser->title) - 1);
		strcpy(parser->title, value);
		return 0;
	}
	if (!strcmp(name, "duration"))
		return gp_units_parse_ns(value, "duration", 1000, 1000 * GP_WORK_NS_MAX, &parser->workload->duration_ns,
					 error);
	if (!strcmp(name, "devices")) {
		ret = gp_units_parse_count(value, "devices", 1, GP_WORK_DEVICE_MAX, &number, error);
		if (!ret && parser->options->device_count && parser->options->device_count < number)
			return gp_error_set(error, -EINVAL, "this mix needs %u devices (--devices %u)",
					    (uint32_t)number, (uint32_t)number);
		if (!ret && !parser->options->device_count)
			parser->workload->device_count = (uint32_t)number;
		return ret;
	}
	if (strcmp(name, "requests"))
		return gp_error_set(error, -EINVAL,
				    "\"%.40s\" is not a key of [mix]; there are title, duration, requests, devices",
				    name);
	ret = gp_units_parse_count(value, "requests", 1, GP_WORK_ARRIVAL_MAX, &number, error);
	if (!ret)
		parser->workload->request_target = (uint32_t)number;
	return ret;
}

static int mix_set_sequence(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	uint64_t number;
	int ret;

	if (!strcmp(name, "step"))
		return gp_mix_step_parse(parser, parser->current_sequence, value, error);
	if (!strcmp(name, "kernels"))
		return gp_mix_list_load(parser, parser->current_sequence, value, error);
	if (!strcmp(name, "model"))
		return gp_mix_model_load(parser, parser->current_sequence, value, error);
	if (!strcmp(name, "measured_on")) {
		if (strlen(value) >= sizeof(parser->list_device))
			return gp_error_set(error, -EINVAL, "the device's name is too long");
		strcpy(parser->list_device, value);
		return 0;
	}
	if (strcmp(name, "places") && strcmp(name, "repeat"))
		return gp_error_set(error, -EINVAL,
				    "\"%.40s\" is not a key of a sequence; there are step, kernels, model, "
				    "measured_on, places, repeat",
				    name);
	ret = gp_units_parse_count(value, name, 1, name[0] == 'p' ? 10000000 : 1000, &number, error);
	if (!ret && name[0] == 'p')
		parser->list_places = (uint32_t)number;
	else if (!ret)
		parser->list_repeat = (uint32_t)number;
	return ret;
}

/* Keys of which every line counts, or that apply to what stands below them. */
static bool mix_may_repeat(const struct mix_parser *parser, const char *name)
{
	if (parser->section == MIX_SEQUENCE)
		return true;
	return parser->section == MIX_CLIENT && (!strcmp(name, "step") || !strcmp(name, "offsets"));
}

/* A key that is there twice means one thing to its author and another to the program. */
static int mix_once(struct mix_parser *parser, const char *name, struct gp_error *error)
{
	if (parser->section == MIX_PARAMETERS || mix_may_repeat(parser, name))
		return 0;
	for (uint32_t i = 0; i < parser->key_count; i++)
		if (!strncmp(parser->keys[i], name, MIX_NAME_SIZE - 1))
			return gp_error_set(error, -EEXIST, "\"%.40s\" is given twice in this section", name);
	if (parser->key_count < MIX_KEY_MAX)
		snprintf(parser->keys[parser->key_count++], MIX_NAME_SIZE, "%.47s", name);
	return 0;
}

static int mix_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
		     struct gp_error *error)
{
	struct mix_parser *parser = context;
	char text[MIX_VALUE_SIZE];
	int ret;

	parser->line = line;
	if (!name)
		return mix_begin_section(parser, section, line, error);
	ret = mix_once(parser, name, error);
	if (!ret)
		ret = mix_substitute(parser, value, text, error);
	if (ret)
		return ret;
	switch (parser->section) {
	case MIX_MIX: return mix_set_mix(parser, name, text, error);
	case MIX_PARAMETERS: return mix_set_parameter(parser, name, text, error);
	case MIX_SEQUENCE: return mix_set_sequence(parser, name, text, error);
	case MIX_CLIENT: return gp_mix_client_set(parser, name, text, error);
	case MIX_DISB: return gp_mix_disb_set(parser, name, text, error);
	case MIX_NO_SECTION: break;
	}
	return gp_error_set(error, -EINVAL, "\"%.40s\" comes before the first section", name);
}

static int mix_check_settings(struct mix_parser *parser, struct gp_error *error)
{
	const char *setting, *equals;
	char known[300] = "none";
	size_t used = 0;
	uint32_t i;

	for (i = 0; i < parser->parameter_count && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s (%s)", i ? ", " : "",
					 parser->parameters[i].name, parser->parameters[i].value);
	for (i = 0; i < parser->options->setting_count; i++) {
		setting = parser->options->settings[i];
		equals = strchr(setting, '=');
		if (!equals || !mix_find_parameter(parser, setting, (size_t)(equals - setting)))
			return gp_error_set(error, -ESRCH, "%s: the mix has no parameter \"%.*s\"; it has: %s",
					    parser->file_name, equals ? (int)(equals - setting) : 60, setting, known);
	}
	return 0;
}

static int mix_read(struct mix_parser *parser, const char *text, size_t text_size, struct gp_error *error)
{
	struct gp_error inner = { "" };
	int ret;

	ret = gp_ini_parse(text, text_size, parser->file_name, mix_entry, parser, error);
	if (ret)
		return ret;
	ret = mix_end_section(parser, &inner);
	if (!ret)
		ret = mix_check_settings(parser, error);
	else
		gp_error_set(error, ret, "%s:%u: %s", parser->file_name, parser->line, inner.text);
	if (ret)
		return ret;
	ret = gp_workload_check(parser->workload, parser->options->desc, &inner);
	return ret ? gp_error_set(error, ret, "%s: %s", parser->file_name, inner.text) : 0;
}

static int mix_parse_in(const char *text, size_t text_size, const char *file_name, const char *folder,
			const struct gp_mix_options *options, struct gp_workload *ret_workload, struct gp_error *error)
{
	struct gp_workload workload = { .device_count = options->device_count ? options->device_count : 1,
					.request_target = 10000 };
	struct mix_parser *parser = calloc(1, sizeof(*parser));
	int ret;

	if (!parser)
		return gp_error_set(error, -ENOMEM, "out of memory");
	parser->options = options;
	parser->workload = &workload;
	parser->disb.realtime = 80;
	parser->disb.best_effort = 20;
	snprintf(parser->file_name, sizeof(parser->file_name), "%s", file_name);
	snprintf(parser->folder, sizeof(parser->folder), "%s", folder);
	ret = mix_read(parser, text, text_size, error);
	snprintf(workload.title, sizeof(workload.title), "%s", parser->title);
	free(parser->client.work.requests);
	free(parser);
	if (ret) {
		gp_workload_fini(&workload);
		return ret;
	}
	*ret_workload = workload;
	return 0;
}

int gp_mix_parse(const char *text, size_t text_size, const char *file_name, const struct gp_mix_options *options,
		 struct gp_workload *ret_workload, struct gp_error *error)
{
	return mix_parse_in(text, text_size, file_name, "", options, ret_workload, error);
}

static bool mix_is_path(const char *name)
{
	size_t size = strlen(name);

	return strchr(name, '/') || (size > 4 && !strcmp(name + size - 4, ".ini"));
}

static int mix_find(const char *name, char *ret_path, size_t path_size, struct gp_error *error)
{
	char relative[128], known[400];
	struct gp_paths_names *names;
	int ret;

	if (mix_is_path(name)) {
		if (strlen(name) >= path_size)
			return gp_error_set(error, -ENAMETOOLONG, "the mix's path is too long");
		strcpy(ret_path, name);
		return 0;
	}
	if ((size_t)snprintf(relative, sizeof(relative), "mixes/%s.ini", name) < sizeof(relative) &&
	    !gp_paths_share(relative, ret_path, path_size))
		return 0;
	names = malloc(sizeof(*names));
	ret = names ? gp_paths_list("mixes", ".ini", names) : -ENOMEM;
	gp_error_set(error, -ESRCH, "there is no mix \"%.60s\"; valid names are: %s; or the path of a file of your own",
		     name, ret ? "(none found)" : gp_paths_join(names, known, sizeof(known)));
	free(names);
	return -ESRCH;
}

int gp_mix_load(const char *name, const struct gp_mix_options *options, struct gp_workload *ret_workload,
		struct gp_error *error)
{
	char path[4096], folder[4096], *text, *slash;
	size_t size;
	int ret;

	ret = mix_find(name, path, sizeof(path), error);
	if (!ret)
		ret = gp_file_read(path, GP_MIX_SIZE_MAX, &text, &size, error);
	if (ret)
		return ret;
	strcpy(folder, path);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = 0;
	else
		strcpy(folder, ".");
	/* A built-in mix names data files only. */
	ret = mix_parse_in(text, size, path, mix_is_path(name) ? folder : "", options, ret_workload, error);
	free(text);
	if (ret)
		return ret;
	snprintf(ret_workload->name, sizeof(ret_workload->name), "%s",
		 mix_is_path(name) && slash ? strrchr(path, '/') + 1 : name);
	return 0;
}

struct mix_listing {
	char title[160], parameters[300];
};

static int mix_listing_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
			     struct gp_error *error)
{
	struct mix_listing *listing = context;
	size_t used = strlen(listing->parameters);

	if (name && !strcmp(section, "mix") && !strcmp(name, "title"))
		snprintf(listing->title, sizeof(listing->title), "%s", value);
	if (name && !strcmp(section, "parameters"))
		snprintf(listing->parameters + used, sizeof(listing->parameters) - used, "%s%s=%s", used ? ", " : "",
			 name, value);
	return 0;
}

int gp_mix_list(FILE *stream, struct gp_error *error)
{
	struct gp_paths_names *names = malloc(sizeof(*names));
	struct mix_listing listing;
	char relative[128], path[4096], *text;
	unsigned int i;
	size_t size;
	int ret;

	ret = names ? gp_paths_list("mixes", ".ini", names) : -ENOMEM;
	if (ret)
		gp_error_set(error, ret, "cannot find the built-in mixes (share/mixes)");
	for (i = 0; !ret && i < names->count; i++) {
		listing = (struct mix_listing){ "", "" };
		snprintf(relative, sizeof(relative), "mixes/%s.ini", names->names[i]);
		ret = gp_paths_share(relative, path, sizeof(path));
		if (ret || gp_file_read(path, GP_MIX_SIZE_MAX, &text, &size, error))
			continue;
		gp_ini_parse(text, size, path, mix_listing_entry, &listing, error);
		free(text);
		fprintf(stream, "  %-18s %s%s%s%s\n", names->names[i], listing.title, listing.parameters[0] ? " [" : "",
			listing.parameters, listing.parameters[0] ? "]" : "");
	}
	free(names);
	return ret;
}
