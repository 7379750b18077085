/* SPDX-License-Identifier: MIT */
/* Owns mixes made from a DISB workload: each task becomes a client whose request is the kernel list its model is
 * mapped to. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/units.h"
#include "sim/mix_state.h"
#include "sim/disb.h"

static int disb_set_model(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	uint32_t i = parser->disb.model_count;

	if (i == sizeof(parser->disb.models) / sizeof(parser->disb.models[0]) || strlen(name) >= MIX_NAME_SIZE ||
	    strlen(value) >= MIX_NAME_SIZE)
		return gp_error_set(error, -EINVAL, "too many models, or a name longer than %u characters",
				    MIX_NAME_SIZE - 1);
	strcpy(parser->disb.models[i].name, name);
	strcpy(parser->disb.models[i].list, value);
	parser->disb.model_count++;
	return 0;
}

int gp_mix_disb_set(struct mix_parser *parser, const char *name, const char *value, struct gp_error *error)
{
	uint64_t number;
	int ret;

	if (!strncmp(name, "model.", 6))
		return disb_set_model(parser, name + 6, value, error);
	if (!strcmp(name, "file")) {
		if (strlen(value) >= sizeof(parser->disb.file))
			return gp_error_set(error, -EINVAL, "the file's name is too long");
		strcpy(parser->disb.file, value);
		return 0;
	}
	if (strcmp(name, "realtime") && strcmp(name, "best_effort"))
		return gp_error_set(error, -EINVAL,
				    "\"%.40s\" is not a key here; there are file, realtime, best_effort, model.NAME",
				    name);
	ret = gp_units_parse_count(value, name, 0, 99, &number, error);
	if (!ret && name[0] == 'r')
		parser->disb.realtime = (int32_t)number;
	else if (!ret)
		parser->disb.best_effort = (int32_t)number;
	return ret;
}

/* "resnet18 x3": the list, three times over. Lists are shared by the tasks that use them. */
static int disb_sequence(struct mix_parser *parser, const char *model, uint32_t *ret_sequence, struct gp_error *error)
{
	char text[MIX_NAME_SIZE], *words[3];
	uint32_t i, count, sequence;
	uint64_t repeat = 1;
	int ret = 0;

	for (i = 0; i < parser->sequence_count; i++) {
		if (!strcmp(parser->sequences[i].name, model)) {
			*ret_sequence = parser->sequences[i].index;
			return 0;
		}
	}
	for (i = 0; i < parser->disb.model_count && strcmp(parser->disb.models[i].name, model); i++)
		;
	if (i == parser->disb.model_count)
		return gp_error_set(error, -EINVAL, "no kernel list for model \"%.60s\"; add model.%.60s = NAME", model,
				    model);
	strcpy(text, parser->disb.models[i].list);
	count = gp_mix_split(text, words, 3);
	if (count == 2 && words[1][0] == 'x')
		ret = gp_units_parse_count(words[1] + 1, "the repetitions of a model", 1, 100, &repeat, error);
	else if (count != 1)
		ret = gp_error_set(error, -EINVAL, "a model is mapped to \"NAME\" or \"NAME xN\"");
	if (ret)
		return ret;
	sequence = gp_workload_add_sequence(parser->workload);
	if (sequence == UINT32_MAX || parser->sequence_count == MIX_SEQUENCE_MAX)
		return gp_error_set(error, -ENOSPC, "too many sequences");
	parser->list_device[0] = 0;
	parser->list_repeat = (uint32_t)repeat;
	parser->list_places = 0;
	ret = gp_mix_model_load(parser, sequence, words[0], error);
	if (ret)
		return ret;
	snprintf(parser->sequences[parser->sequence_count].name, MIX_NAME_SIZE, "%s", model);
	parser->sequences[parser->sequence_count++].index = sequence;
	*ret_sequence = sequence;
	return 0;
}

/* Best-effort closed loops are batch work: only their throughput counts. */
static int disb_client(struct mix_parser *parser, const struct gp_disb_task *task, struct gp_error *error)
{
	struct gp_work_client *client;
	struct gp_work_request *request;
	uint32_t i, sequence = 0;
	int ret;

	ret = disb_sequence(parser, task->model, &sequence, error);
	if (ret)
		return ret;
	client = gp_workload_add_client(parser->workload);
	if (!client)
		return gp_error_set(error, -ENOSPC, "too many clients");
	snprintf(client->name, sizeof(client->name), "%.47s", task->id);
	client->priority = task->is_realtime ? parser->disb.realtime : parser->disb.best_effort;
	client->sequence = sequence;
	client->idempotent = true;
	client->kind = GP_WORK_SERVICE;
	client->depth = 64;
	if (task->load == GP_DISB_CONTINUOUS) {
		client->arrival = GP_ARRIVAL_CLOSED;
		if (!task->is_realtime)
			client->kind = GP_WORK_BATCH;
		return 0;
	}
	client->arrival = task->load == GP_DISB_POISSON  ? GP_ARRIVAL_POISSON :
			  task->load == GP_DISB_PERIODIC ? GP_ARRIVAL_PERIODIC :
							   GP_ARRIVAL_EXPLICIT;
	client->period_ns = task->frequency_milli ? 1000000000000ull / task->frequency_milli : 0;
	for (i = 0; task->load == GP_DISB_TRACE && i < task->trace_count; i++) {
		request = gp_workload_add_request(client);
		if (!request)
			return gp_error_set(error, -ENOSPC, "too many arrivals");
		request->offset_ns = task->trace_ns[i];
		request->step_count = parser->workload->sequences[sequence].step_count;
	}
	return 0;
}

int gp_mix_disb_end(struct mix_parser *parser, struct gp_error *error)
{
	struct gp_disb *disb;
	char path[4096];
	uint32_t i;
	int ret;

	if (!parser->disb.file[0])
		return gp_error_set(error, -EINVAL, "[disb] has no file");
	ret = gp_mix_find_file(parser, parser->disb.file, path, sizeof(path), error);
	if (ret)
		return ret;
	disb = malloc(sizeof(*disb));
	if (!disb)
		return gp_error_set(error, -ENOMEM, "out of memory");
	ret = gp_disb_load(path, disb, error);
	if (!ret) {
		for (i = 0; i < disb->task_count && !ret; i++)
			ret = disb_client(parser, &disb->tasks[i], error);
		if (!parser->workload->duration_ns)
			parser->workload->duration_ns = disb->duration_ns;
		gp_disb_fini(disb);
	}
	free(disb);
	return ret;
}
