/* SPDX-License-Identifier: MIT */
/*
 * Owns the grammar of one step:
 *   kernel WORKGROUPS TIME [xN] [name=value ...]       WORKGROUPS: a number, full, full/ROUNDS, or 25% of the device
 *   collective WORKGROUPS TIME [xN] [name=value ...]
 *   copy SIZE to-device|to-host [xN] [name=value ...]
 * Steps follow one another, on one queue by their order, on several through signals, unless after= says what they wait
 * for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/units.h"
#include "sim/mix_state.h"

uint32_t gp_mix_split(char *text, char **words, uint32_t word_max)
{
	uint32_t count = 0;
	char *rest = NULL, *word;

	for (word = strtok_r(text, " \t", &rest); word && count < word_max; word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	return word ? word_max + 1 : count;
}

int gp_mix_parse_bool(const char *text, const char *what, bool *ret_value, struct gp_error *error)
{
	if (!strcmp(text, "yes") || !strcmp(text, "no")) {
		*ret_value = text[0] == 'y';
		return 0;
	}
	return gp_error_set(error, -EINVAL, "%s is \"%.40s\"; it must be yes or no", what, text);
}

/* Up to three decimals, an optional percent sign meaning a hundredth: "30%" is 300, "1.5" is 1500. */
int gp_mix_parse_permille(const char *text, const char *what, uint32_t max, uint32_t *ret_permille,
			  struct gp_error *error)
{
	uint64_t value = 0, scale = 1000, digits = 0;
	const char *c = text;

	for (; *c >= '0' && *c <= '9' && value < 1000000000ull; c++, digits++)
		value = value * 10 + (uint64_t)(*c - '0');
	if (*c == '.') {
		for (c++; *c >= '0' && *c <= '9' && scale > 1; c++, digits++, scale /= 10)
			value = value * 10 + (uint64_t)(*c - '0');
	}
	value *= scale;
	if (*c == '%') {
		c++;
		value /= 100;
	}
	if (!digits || *c)
		return gp_error_set(error, -EINVAL, "%s is \"%.40s\"; it must be a number such as 2.5 or 40%%", what,
				    text);
	if (!value || value > max)
		return gp_error_set(error, -EINVAL, "%s is \"%.40s\"; it must be above 0 and at most %u%s", what, text,
				    c[-1] == '%' ? max / 10 : max / 1000, c[-1] == '%' ? "%" : "");
	*ret_permille = (uint32_t)value;
	return 0;
}

/* The shape must be known before the places on the device can be counted, so this comes after the attributes. */
static int step_workgroups(struct gp_work_step *step, const char *text, const struct gp_desc *desc,
			   struct gp_error *error)
{
	uint64_t count = 1, capacity = gp_gpu_capacity(desc, &step->kernel);
	uint32_t permille = 0;
	int ret;

	if (!capacity)
		return gp_error_set(error, -EINVAL, "no compute unit of %s holds one such workgroup", desc->name);
	if (!strncmp(text, "full", 4) && (!text[4] || text[4] == '/')) {
		if (text[4]) {
			ret = gp_units_parse_count(text + 5, "the number of rounds", 1, 100000, &count, error);
			if (ret)
				return ret;
		}
		capacity *= count;
		step->kernel.workgroup_ns = step->kernel.workgroup_ns / count ? step->kernel.workgroup_ns / count : 1;
	} else if (strchr(text, '%')) {
		ret = gp_mix_parse_permille(text, "the share of the device", 1000, &permille, error);
		if (ret)
			return ret;
		capacity = (capacity * permille + 999) / 1000;
	} else {
		ret = gp_units_parse_count(text, "the number of workgroups", 1, UINT32_MAX, &capacity, error);
		if (ret)
			return ret;
	}
	if (capacity > UINT32_MAX)
		return gp_error_set(error, -EINVAL, "more than %u workgroups", UINT32_MAX);
	step->kernel.workgroups = (uint32_t)capacity;
	return 0;
}

static int step_after(struct gp_work_step *step, const char *text, struct gp_error *error)
{
	char buffer[MIX_VALUE_SIZE], *rest = NULL, *word;
	uint32_t count = 0;
	uint64_t value;
	int ret;

	memset(step->deps, 0, sizeof(step->deps));
	if (!strcmp(text, "none"))
		return 0;
	strncpy(buffer, text, sizeof(buffer) - 1);
	buffer[sizeof(buffer) - 1] = 0;
	for (word = strtok_r(buffer, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (count == GP_WORK_DEPS)
			return gp_error_set(error, -EINVAL, "after names more than %u steps", GP_WORK_DEPS);
		ret = gp_units_parse_count(word, "after", 1, GP_WORK_STEP_MAX, &value, error);
		if (ret)
			return ret;
		step->deps[count++] = (uint32_t)value;
	}
	return 0;
}

static int step_count_value(const char *text, const char *what, uint64_t min, uint64_t max, uint32_t *ret_value,
			    struct gp_error *error)
{
	uint64_t value;
	int ret = gp_units_parse_count(text, what, min, max, &value, error);

	if (!ret)
		*ret_value = (uint32_t)value;
	return ret;
}

static int step_by(const char *text, enum gp_step_by *ret_by, struct gp_error *error)
{
	if (strcmp(text, "context") && strcmp(text, "generated"))
		return gp_error_set(error, -EINVAL, "\"%.40s\" is neither context nor generated", text);
	*ret_by = text[0] == 'c' ? GP_BY_FIRST : GP_BY_SECOND;
	return 0;
}

static int step_attribute(struct gp_work_step *step, const char *word, struct gp_error *error)
{
	const char *value = strchr(word, '=');
	uint64_t size;
	int ret;

	if (!value && word[0] == 'x')
		return step_count_value(word + 1, "the number of repetitions", 1, GP_WORK_REPEAT_MAX, &step->repeat,
					error);
	if (!value)
		return gp_error_set(error, -EINVAL,
				    "\"%.40s\" is not understood; after the time come xN and name=value", word);
	value++;
	if (!strncmp(word, "queue=", 6))
		return step_count_value(value, "queue", 0, GP_WORK_QUEUE_MAX - 1, &step->queue, error);
	if (!strncmp(word, "device=", 7))
		return step_count_value(value, "device", 0, GP_WORK_DEVICE_MAX - 1, &step->device, error);
	if (!strncmp(word, "waves=", 6))
		return step_count_value(value, "waves", 1, 16, &step->kernel.waves, error);
	if (!strncmp(word, "vgprs=", 6))
		return step_count_value(value, "vgprs", 1, 512, &step->kernel.vgprs, error);
	if (!strncmp(word, "after=", 6))
		return step_after(step, value, error);
	if (!strncmp(word, "time-by=", 8))
		return step_by(value, &step->time_by, error);
	if (!strncmp(word, "repeat-by=", 10))
		return step_by(value, &step->repeat_by, error);
	if (strncmp(word, "lds=", 4))
		return gp_error_set(error, -EINVAL,
				    "\"%.40s\" is not known; there are queue, device, waves, vgprs, lds, after, "
				    "time-by, repeat-by",
				    word);
	ret = gp_units_parse_size(value, "lds", 1u << 20, &size, error);
	if (!ret)
		step->kernel.lds_size = (uint32_t)size;
	return ret;
}

static int step_copy(struct gp_work_step *step, char **words, struct gp_error *error)
{
	step->type = GP_STEP_COPY;
	if (strcmp(words[2], "to-device") && strcmp(words[2], "to-host"))
		return gp_error_set(error, -EINVAL, "a copy goes to-device or to-host, not \"%.40s\"", words[2]);
	step->to_host = !strcmp(words[2], "to-host");
	return gp_units_parse_size(words[1], "the size of the copy", 1ull << 50, &step->copy_size, error);
}

int gp_mix_step_parse(struct mix_parser *parser, uint32_t sequence, const char *value, struct gp_error *error)
{
	char text[MIX_VALUE_SIZE], *words[MIX_WORD_MAX];
	uint32_t i, count, number = parser->workload->sequences[sequence].step_count;
	struct gp_work_step step = { .repeat = 1,
				     .device = UINT32_MAX,
				     .deps = { number },
				     .kernel = { .waves = 4, .vgprs = 128 } };
	struct gp_work_step *added;
	int ret;

	if (strlen(value) >= sizeof(text))
		return gp_error_set(error, -EINVAL, "the step is longer than %u characters", MIX_VALUE_SIZE - 1);
	strcpy(text, value);
	count = gp_mix_split(text, words, MIX_WORD_MAX);
	if (count < 3 || count > MIX_WORD_MAX)
		return gp_error_set(error, -EINVAL,
				    "a step is \"kernel WORKGROUPS TIME\", \"collective WORKGROUPS TIME\" or "
				    "\"copy SIZE to-device|to-host\"");
	step.type = strcmp(words[0], "collective") ? GP_STEP_KERNEL : GP_STEP_COLLECTIVE;
	if (!strcmp(words[0], "copy"))
		ret = step_copy(&step, words, error);
	else if (!strcmp(words[0], "kernel") || !strcmp(words[0], "collective"))
		ret = gp_units_parse_ns(words[2], "the time of a workgroup", 1, GP_WORK_NS_MAX,
					&step.kernel.workgroup_ns, error);
	else
		ret = gp_error_set(error, -EINVAL,
				   "\"%.40s\" is not a kind of step; there are kernel, collective, copy", words[0]);
	for (i = 3; i < count && !ret; i++)
		ret = step_attribute(&step, words[i], error);
	if (!ret && step.type != GP_STEP_COPY)
		ret = step_workgroups(&step, words[1], parser->options->desc, error);
	if (ret)
		return ret;
	added = gp_workload_add_step(parser->workload, sequence);
	if (!added)
		return gp_error_set(error, -ENOSPC, "more than %u steps", GP_WORK_STEP_MAX);
	*added = step;
	return 0;
}
