/* SPDX-License-Identifier: MIT */
/* Owns rows: which clients share one, what a row's figures are, and how its cells are spelled. Never writes. */
#include <inttypes.h>
#include <string.h>
#include "lib/units.h"
#include "view/format.h"
#include "view/row.h"

#define ROW_UNFINISHED_MIN 4u /* fewer are requests that happened to be under way, not a queue that grows */

/* Length of the name without the number at its end and what joins it. */
static size_t row_stem(const char *name)
{
	size_t length = strlen(name);

	while (length && name[length - 1] >= '0' && name[length - 1] <= '9')
		length--;
	if (!name[length])
		return length;
	while (length && strchr("-_. #", name[length - 1]))
		length--;
	return length;
}

static bool row_is_alike(const struct gp_result_client *a, const struct gp_result_client *b)
{
	size_t stem = row_stem(a->name);

	return a->is_service == b->is_service && a->priority == b->priority && stem && row_stem(b->name) == stem &&
	       !memcmp(a->name, b->name, stem);
}

void gp_row_init(struct gp_row *row, const struct gp_result_run *run, uint32_t index)
{
	const struct gp_result_client *client = &run->clients[index];
	uint32_t count = 1;

	while (index + count < run->client_count && row_is_alike(client, &run->clients[index + count]))
		count++;
	if (count < (client->is_service ? GP_ROW_SERVICE_MIN : GP_ROW_BATCH_MIN))
		count = 1;
	*row = (struct gp_row){ .client = client,
				.count = count,
				.is_mean = count > 1 && run->kind == GP_RESULT_ALONE };
	for (uint32_t i = 0; i < count; i++) {
		row->requests += client[i].requests;
		row->unfinished += client[i].unfinished;
		row->deadlines_met += client[i].deadlines_met;
		row->deadlines_missed += client[i].deadlines_missed;
		row->throughput_milli += client[i].throughput_milli;
		row->gpu_share_ppm += client[i].gpu_share_ppm;
		if (count > 1)
			gp_hist_merge(&row->merged, &client[i].latency_ns);
	}
	if (row->is_mean) {
		row->throughput_milli = (row->throughput_milli + count / 2u) / count;
		row->gpu_share_ppm = (row->gpu_share_ppm + count / 2u) / count;
	}
	if (count == 1)
		(void)snprintf(row->name, sizeof(row->name), "%s", client->name);
	else
		(void)snprintf(row->name, sizeof(row->name), "%.*s ×%" PRIu32, (int)row_stem(client->name),
			       client->name, count);
}

bool gp_row_find(struct gp_row *row, const struct gp_result_run *run, const char *name)
{
	for (uint32_t i = 0; i < run->client_count;) {
		gp_row_init(row, run, i);
		if (!strcmp(row->name, name))
			return true;
		i += row->count;
	}
	return false;
}

const struct gp_result_run *gp_row_run(const struct gp_result *result, enum gp_result_kind kind)
{
	for (uint32_t i = 0; i < result->run_count; i++)
		if (result->runs[i].kind == kind)
			return &result->runs[i];
	return NULL;
}

bool gp_row_find_alone(struct gp_row *row, const struct gp_result *result, const char *name)
{
	const struct gp_result_run *alone = gp_row_run(result, GP_RESULT_ALONE);

	return alone && gp_row_find(row, alone, name) && gp_row_has_latency(row) && !gp_row_is_bound(row, 990) &&
	       gp_hist_quantile(gp_row_latency(row), 990);
}

const struct gp_hist *gp_row_latency(const struct gp_row *row)
{
	return row->count == 1 ? &row->client->latency_ns : &row->merged;
}

bool gp_row_has_latency(const struct gp_row *row)
{
	return row->client->is_service && gp_row_latency(row)->count;
}

bool gp_row_is_bound(const struct gp_row *row, uint32_t permille)
{
	uint64_t beyond = permille < 990u ? 1000u - permille : 10u; /* of 1000; the maximum is judged as the p99 */
	uint64_t count = gp_row_latency(row)->count;

	/* unfinished * 1000 > count * beyond, without overflow. */
	return row->unfinished >= ROW_UNFINISHED_MIN &&
	       row->unfinished > count / 1000u * beyond + count % 1000u * beyond / 1000u;
}

uint64_t gp_row_unfinished(const struct gp_result_run *run)
{
	uint64_t unfinished = 0;
	struct gp_row row;

	for (uint32_t i = 0; i < run->client_count; i += row.count) {
		gp_row_init(&row, run, i);
		if (gp_row_has_latency(&row) && gp_row_is_bound(&row, 990))
			unfinished += row.unfinished;
	}
	return unfinished;
}

const char *gp_row_format_latency(const struct gp_row *row, uint32_t permille, char *buffer, size_t buffer_size)
{
	char text[GP_UNITS_TEXT_SIZE];

	if (!gp_row_has_latency(row))
		(void)snprintf(buffer, buffer_size, "–");
	else
		(void)snprintf(buffer, buffer_size, "%s%s", gp_row_is_bound(row, permille) ? "> " : "",
			       gp_units_format_ns(gp_hist_quantile(gp_row_latency(row), permille), text, sizeof(text)));
	return buffer;
}

const char *gp_row_format_times(const struct gp_row *row, const struct gp_result *result, char *buffer,
				size_t buffer_size)
{
	char text[GP_FORMAT_TEXT_SIZE];
	struct gp_row alone;

	if (!gp_row_has_latency(row) || !gp_row_find_alone(&alone, result, row->name))
		(void)snprintf(buffer, buffer_size, "–");
	else
		(void)snprintf(buffer, buffer_size, "%s%s", gp_row_is_bound(row, 990) ? "> " : "",
			       gp_format_times(gp_hist_quantile(gp_row_latency(row), 990),
					       gp_hist_quantile(gp_row_latency(&alone), 990), text, sizeof(text)));
	return buffer;
}

const char *gp_row_format_rate(const struct gp_row *row, char *buffer, size_t buffer_size)
{
	char text[GP_FORMAT_TEXT_SIZE];

	(void)snprintf(buffer, buffer_size, "%s%s", row->is_mean ? "each " : "",
		       gp_format_rate(row->throughput_milli, text, sizeof(text)));
	return buffer;
}

const char *gp_row_format_share(const struct gp_row *row, char *buffer, size_t buffer_size)
{
	char text[GP_FORMAT_TEXT_SIZE];

	(void)snprintf(buffer, buffer_size, "%s%s", row->is_mean ? "each " : "",
		       gp_format_share(row->gpu_share_ppm, text, sizeof(text)));
	return buffer;
}

const char *gp_row_format_deadlines(const struct gp_row *row, char *buffer, size_t buffer_size)
{
	char met[GP_FORMAT_TEXT_SIZE], all[GP_FORMAT_TEXT_SIZE];

	if (!row->deadlines_met && !row->deadlines_missed)
		(void)snprintf(buffer, buffer_size, "–");
	else
		(void)snprintf(buffer, buffer_size, "%s of %s", gp_format_count(row->deadlines_met, met, sizeof(met)),
			       gp_format_count(row->deadlines_met + row->deadlines_missed, all, sizeof(all)));
	return buffer;
}

bool gp_row_has_deadlines(const struct gp_result *result)
{
	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].client_count; j++)
			if (result->runs[i].clients[j].deadlines_met || result->runs[i].clients[j].deadlines_missed)
				return true;
	return false;
}
