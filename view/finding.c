/* SPDX-License-Identifier: MIT */
/* Owns the result in words: which run it tells of, what it says, and what it leaves out when it is not known. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "view/compare.h"
#include "view/finding.h"
#include "view/format.h"

#define FINDING_NAME_WIDTH 24u /* columns of a name */
#define FINDING_NAME_SIZE  (FINDING_NAME_WIDTH * 4u + 4u)
#define FINDING_PPM        1000000u

__extension__ typedef unsigned __int128 finding_u128;

struct finding {
	const struct gp_result *result;
	char *text;
	size_t used, size;
};

__attribute__((format(printf, 2, 3))) static void finding_add(struct finding *finding, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(finding->text + finding->used, finding->size - finding->used, format, arguments);
	va_end(arguments);
	if (length > 0)
		finding->used += (size_t)length;
	if (finding->used >= finding->size)
		finding->used = finding->size - 1;
}

static void finding_add_name(struct finding *finding, const char *name)
{
	char cut[FINDING_NAME_SIZE];

	finding_add(finding, "%s", gp_format_cut(name, FINDING_NAME_WIDTH, cut, sizeof(cut)));
}

bool gp_finding_urgent(const struct gp_result *result, struct gp_row *ret_row)
{
	const struct gp_result_run *best_run = NULL;
	int32_t best_priority = 0;
	uint32_t best = 0;
	struct gp_row row;

	for (uint32_t i = 0; i < result->run_count; i++)
		for (uint32_t j = 0; j < result->runs[i].client_count; j += row.count) {
			gp_row_init(&row, &result->runs[i], j);
			if (!gp_row_has_latency(&row) || (best_run && row.client->priority <= best_priority))
				continue;
			best_run = &result->runs[i];
			best_priority = row.client->priority;
			best = j;
		}
	if (!best_run)
		return false;
	gp_row_init(ret_row, best_run, best);
	return true;
}

/* Shares of the devices' whole time. */
struct finding_shares {
	uint64_t did_ppm, could_ppm, alone_ppm; /* of the batch clients together */
	uint64_t alone_milli;                   /* their throughput */
};

static bool finding_shares(const struct gp_result *result, const struct gp_result_run *run,
			   struct finding_shares *ret_shares)
{
	const struct gp_result_run *alone = gp_row_run(result, GP_RESULT_ALONE);
	struct finding_shares shares = { 0 };
	uint64_t taken_ppm = 0;

	if (!alone || run == alone)
		return false;
	for (uint32_t i = 0; i < run->client_count; i++) {
		const struct gp_result_client *client = &run->clients[i], *before;

		if (client->is_service) {
			taken_ppm += client->gpu_share_ppm;
			continue;
		}
		before = gp_compare_client(alone, client->name);
		if (!before || !before->throughput_milli || !before->gpu_share_ppm)
			return false;
		/* By work done, not by time had: time spent on saves and on a crowded memory is no gain. */
		shares.did_ppm += (uint64_t)((finding_u128)before->gpu_share_ppm * client->throughput_milli /
					     before->throughput_milli);
		shares.alone_ppm += before->gpu_share_ppm;
		shares.alone_milli += before->throughput_milli;
	}
	if (!shares.alone_ppm || taken_ppm >= FINDING_PPM)
		return false;
	/* Of several devices the services may use a few only, and then nobody knows what those leave to the others. */
	taken_ppm = result->device_count > 1 ? 0 : taken_ppm;
	shares.could_ppm = FINDING_PPM - taken_ppm < shares.alone_ppm ? FINDING_PPM - taken_ppm : shares.alone_ppm;
	*ret_shares = shares;
	return true;
}

bool gp_finding_kept(const struct gp_result *result, const struct gp_result_run *run, uint64_t *ret_permille)
{
	struct finding_shares shares;

	if (!finding_shares(result, run, &shares))
		return false;
	*ret_permille = ((finding_u128)shares.did_ppm * 1000u + shares.could_ppm / 2u) / shares.could_ppm;
	return true;
}

bool gp_finding_most(const struct gp_result *result, const struct gp_result_run *run, const struct gp_row *row,
		     uint64_t *ret_milli)
{
	struct finding_shares shares;
	uint32_t batch_count = 0;

	for (uint32_t i = 0; i < run->client_count; i++)
		batch_count += !run->clients[i].is_service;
	if (result->device_count > 1 || row->client->is_service || batch_count != row->count ||
	    !finding_shares(result, run, &shares))
		return false;
	*ret_milli = (uint64_t)((finding_u128)shares.alone_milli * shares.could_ppm / shares.alone_ppm);
	return true;
}

/* The lower, the better a run is to tell of: policies before baselines, then the shortest p99, or without services
 * what is kept. */
static uint64_t finding_order(const struct gp_result *result, const struct gp_result_run *run, const char *urgent)
{
	uint64_t kept = 0, order = UINT64_MAX / 2u - 1u;
	struct gp_row row;

	if (urgent && gp_row_find(&row, run, urgent) && gp_row_has_latency(&row)) {
		order = gp_hist_quantile(gp_row_latency(&row), 990) / 4u;
		if (gp_row_is_bound(&row, 990))
			order += UINT64_MAX / 4u;
	} else if (!urgent && gp_finding_kept(result, run, &kept)) {
		order = UINT64_MAX / 4u - (kept < UINT64_MAX / 4u ? kept : 0);
	}
	return order + (run->kind == GP_RESULT_BASELINE ? UINT64_MAX / 2u : 0);
}

/* The run the sentence is about: the best one, or stock where there is nothing else; NULL if there is only alone. */
static const struct gp_result_run *finding_run(const struct gp_result *result, const char *urgent)
{
	const struct gp_result_run *best = NULL;

	for (uint32_t i = 0; i < result->run_count; i++) {
		const struct gp_result_run *run = &result->runs[i];

		if (run->kind == GP_RESULT_ALONE || run->kind == GP_RESULT_STOCK)
			continue;
		if (!best || finding_order(result, run, urgent) < finding_order(result, best, urgent))
			best = run;
	}
	return best ? best : gp_row_run(result, GP_RESULT_STOCK);
}

/* "with hpf", "with stock scheduling" */
static void finding_add_run(struct finding *finding, const struct gp_result_run *run)
{
	bool is_stock = run->kind == GP_RESULT_STOCK;

	finding_add(finding, "with ");
	finding_add_name(finding, run->policy);
	finding_add(finding, "%s", is_stock ? " scheduling" : "");
}

/* "Beside train, ": the other rows of the run, or how many they are. */
static void finding_add_others(struct finding *finding, const struct gp_result_run *run, const char *urgent)
{
	uint32_t rows = 0, clients = 0, named = 0;
	struct gp_row row;

	for (uint32_t i = 0; i < run->client_count; i += row.count) {
		gp_row_init(&row, run, i);
		if (!strcmp(row.name, urgent))
			continue;
		rows++;
		clients += row.count;
	}
	if (!rows)
		return;
	finding_add(finding, "Beside ");
	if (rows > 2)
		finding_add(finding, "%" PRIu32 " other clients", clients);
	for (uint32_t i = 0; rows <= 2 && i < run->client_count; i += row.count) {
		gp_row_init(&row, run, i);
		if (!strcmp(row.name, urgent))
			continue;
		finding_add(finding, "%s", named++ ? " and " : "");
		finding_add_name(finding, row.name);
	}
	finding_add(finding, ", ");
}

/* "the p99 of serve is 5.90 ms with hpf (1.03× alone)", or that requests pile up. */
static void finding_add_urgent(struct finding *finding, const struct gp_result_run *run, const struct gp_row *row)
{
	char p99[GP_ROW_TEXT_SIZE], times[GP_ROW_TEXT_SIZE];
	bool is_bound = gp_row_is_bound(row, 990), is_alone = run->kind == GP_RESULT_ALONE, has_times;
	const char *start = finding->used ? (is_bound ? "requests of " : "the p99 of ") :
					    (is_bound ? "Requests of " : "The p99 of ");

	(void)gp_row_format_latency(row, 990, p99, sizeof(p99));
	(void)gp_row_format_times(row, finding->result, times, sizeof(times));
	has_times = strcmp(times, "–") && !is_alone;
	finding_add(finding, "%s", start);
	finding_add_name(finding, row->name);
	if (is_bound)
		finding_add(finding, " pile up ");
	else
		finding_add(finding, " is %s ", p99);
	if (is_alone)
		finding_add(finding, "with the GPU to itself");
	else
		finding_add_run(finding, run);
	if (is_bound && has_times)
		finding_add(finding, " (p99 %s, %s alone)", p99, times);
	else if (is_bound)
		finding_add(finding, " (p99 %s)", p99);
	else if (has_times)
		finding_add(finding, " (%s alone)", times);
}

/* "; with stock scheduling it is 9.31 ms (39.1×)" */
static void finding_add_stock(struct finding *finding, const struct gp_row *row)
{
	char p99[GP_ROW_TEXT_SIZE], times[GP_ROW_TEXT_SIZE];

	(void)gp_row_format_latency(row, 990, p99, sizeof(p99));
	(void)gp_row_format_times(row, finding->result, times, sizeof(times));
	finding_add(finding, "; with stock scheduling ");
	if (gp_row_is_bound(row, 990))
		finding_add(finding, "requests pile up (p99 %s)", p99);
	else if (strcmp(times, "–"))
		finding_add(finding, "it is %s (%s)", p99, times);
	else
		finding_add(finding, "it is %s", p99);
}

/* One row of that kind: its name in ret_row; otherwise how many there are. */
static uint32_t finding_rows(const struct gp_result_run *run, bool is_service, struct gp_row *ret_row)
{
	uint32_t count = 0;
	struct gp_row row;

	for (uint32_t i = 0; i < run->client_count; i += row.count) {
		gp_row_init(&row, run, i);
		if (row.client->is_service != is_service)
			continue;
		if (!count++)
			*ret_row = row;
	}
	return count;
}

/* "train keeps", "batch ×15 together keep"; `many` if there is no single name for them. */
static void finding_add_batch(struct finding *finding, const struct gp_result_run *run, const char *many)
{
	struct gp_row row;

	if (finding_rows(run, false, &row) == 1) {
		finding_add_name(finding, row.name);
		finding_add(finding, "%s", row.count > 1 ? " together keep" : " keeps");
	} else {
		finding_add(finding, "%s together keep", many);
	}
}

/* "serve leaves": whatever is more urgent than the batch clients. */
static void finding_add_services(struct finding *finding, const struct gp_result_run *run)
{
	struct gp_row row;

	if (finding_rows(run, true, &row) == 1) {
		finding_add_name(finding, row.name);
		finding_add(finding, "%s", row.count > 1 ? " leave" : " leaves");
	} else {
		finding_add(finding, "the services leave");
	}
}

/* There is nothing to say of what is left beside a service that is not served. */
static bool finding_has_kept(const struct finding *finding, const struct gp_result_run *run, const char *urgent,
			     uint64_t *ret_permille)
{
	struct gp_row row;

	return gp_row_find(&row, run, urgent) && gp_row_has_latency(&row) && !gp_row_is_bound(&row, 990) &&
	       gp_finding_kept(finding->result, run, ret_permille);
}

/* "train keeps 95 % of what serve leaves": what it cost the others. */
static void finding_add_cost(struct finding *finding, const struct gp_result_run *run, const char *urgent)
{
	const struct gp_result_run *stock = gp_row_run(finding->result, GP_RESULT_STOCK);
	uint64_t kept = 0;

	if (!finding_has_kept(finding, run, urgent, &kept))
		return;
	finding_add(finding, " ");
	finding_add_batch(finding, run, "The batch clients");
	finding_add(finding, " %" PRIu64 " %% of ", (kept + 5u) / 10u);
	if (finding->result->device_count > 1) {
		finding_add(finding, "the throughput of GPUs that are not shared");
	} else {
		finding_add(finding, "what ");
		finding_add_services(finding, run);
	}
	if (stock && stock != run && finding_has_kept(finding, stock, urgent, &kept))
		finding_add(finding, " (%" PRIu64 " %% with stock scheduling)", (kept + 5u) / 10u);
	finding_add(finding, ".");
}

/* "train (63 % of its throughput)", or "other (p99 3.10 ms instead of 2.00 ms)"; false if it is not worse. */
static bool finding_add_worse_row(struct finding *finding, const struct gp_row *row, const struct gp_row *before,
				  bool is_first)
{
	char p99[GP_ROW_TEXT_SIZE], was[GP_ROW_TEXT_SIZE];
	uint64_t now_ns, before_ns;

	if (gp_row_has_latency(row) && gp_row_has_latency(before)) {
		now_ns = gp_hist_quantile(gp_row_latency(row), 990);
		before_ns = gp_hist_quantile(gp_row_latency(before), 990);
		if (gp_row_is_bound(before, 990) || (!gp_row_is_bound(row, 990) && now_ns / 100u * 98u <= before_ns))
			return false;
		finding_add(finding, "%s", is_first ? " Worse than with stock scheduling: " : ", ");
		finding_add_name(finding, row->name);
		finding_add(finding, " (p99 %s instead of %s)", gp_row_format_latency(row, 990, p99, sizeof(p99)),
			    gp_row_format_latency(before, 990, was, sizeof(was)));
		return true;
	}
	if (row->client->is_service || !before->throughput_milli ||
	    row->throughput_milli / 98u >= before->throughput_milli / 100u)
		return false;
	finding_add(finding, "%s", is_first ? " Worse than with stock scheduling: " : ", ");
	finding_add_name(finding, row->name);
	finding_add(finding, " (%" PRIu64 " %% of its throughput)",
		    (uint64_t)((finding_u128)row->throughput_milli * 100u / before->throughput_milli));
	return true;
}

/* Whoever pays is named: a headline that tells only of the winner is half of the result. */
static void finding_add_worse(struct finding *finding, const struct gp_result_run *run)
{
	const struct gp_result_run *stock = gp_row_run(finding->result, GP_RESULT_STOCK);
	struct gp_row row, before;
	bool is_first = true;

	if (!stock || run == stock || run->kind == GP_RESULT_ALONE)
		return;
	for (uint32_t i = 0; i < run->client_count; i += row.count) {
		gp_row_init(&row, run, i);
		if (gp_row_find(&before, stock, row.name))
			is_first = !finding_add_worse_row(finding, &row, &before, is_first) && is_first;
	}
	finding_add(finding, "%s", is_first ? "" : ".");
}

/* Batch clients only: what sharing costs them. */
static void finding_tell_batch(struct finding *finding)
{
	const struct gp_result_run *run = finding_run(finding->result, NULL), *stock;
	uint64_t kept = 0;

	if (!run || !gp_finding_kept(finding->result, run, &kept))
		return;
	stock = gp_row_run(finding->result, GP_RESULT_STOCK);
	finding_add(finding, "Sharing ");
	finding_add_run(finding, run);
	finding_add(finding, ", ");
	finding_add_batch(finding, run, "the batch clients");
	finding_add(finding, " %" PRIu64 " %% of the throughput of a GPU that is not shared", (kept + 5u) / 10u);
	if (stock && stock != run && gp_finding_kept(finding->result, stock, &kept))
		finding_add(finding, " (%" PRIu64 " %% with stock scheduling)", (kept + 5u) / 10u);
	finding_add(finding, ".");
	finding_add_worse(finding, run);
}

const char *gp_finding_text(const struct gp_result *result, char *buffer, size_t buffer_size)
{
	struct finding finding = { .result = result, .text = buffer, .size = buffer_size };
	const struct gp_result_run *run, *stock = gp_row_run(result, GP_RESULT_STOCK);
	char urgent[GP_ROW_NAME_SIZE];
	struct gp_row row;

	buffer[0] = '\0';
	if (!gp_finding_urgent(result, &row)) {
		finding_tell_batch(&finding);
		return buffer;
	}
	memcpy(urgent, row.name, sizeof(urgent));
	run = finding_run(result, urgent);
	if (!run)
		run = gp_row_run(result, GP_RESULT_ALONE);
	if (!run || !gp_row_find(&row, run, urgent) || !gp_row_has_latency(&row))
		return buffer;
	if (run->kind != GP_RESULT_ALONE)
		finding_add_others(&finding, run, urgent);
	finding_add_urgent(&finding, run, &row);
	if (stock && stock != run && gp_row_find(&row, stock, urgent) && gp_row_has_latency(&row))
		finding_add_stock(&finding, &row);
	finding_add(&finding, ".");
	finding_add_cost(&finding, run, urgent);
	finding_add_worse(&finding, run);
	return buffer;
}
