/* SPDX-License-Identifier: MIT */
/* Owns the JSON form of a result: schema 1, documented field by field in docs/json.md. Fields are added, never
 * changed. */
#include <errno.h>
#include "lib/json_writer.h"
#include "view/compare.h"
#include "view/result.h"

#define JSON_SCHEMA      1u
#define JSON_US_DECIMALS 3u /* microseconds from ns */
#define JSON_S_DECIMALS  9u /* seconds from ns */

static void json_us(struct gp_json_writer *writer, const char *key, uint64_t ns)
{
	gp_json_writer_decimal(writer, key, ns, JSON_US_DECIMALS);
}

static void json_latency(struct gp_json_writer *writer, const struct gp_result_client *client)
{
	if (!gp_compare_has_latency(client)) {
		gp_json_writer_null(writer, "latency_us");
		return;
	}
	gp_json_writer_begin(writer, "latency_us", '{');
	json_us(writer, "p50", gp_hist_quantile(&client->latency_ns, 500));
	json_us(writer, "p90", gp_hist_quantile(&client->latency_ns, 900));
	json_us(writer, "p99", gp_hist_quantile(&client->latency_ns, 990));
	json_us(writer, "max", client->latency_ns.max);
	json_us(writer, "mean", client->latency_ns.sum / client->latency_ns.count);
	gp_json_writer_end(writer, '}');
}

static void json_client(struct gp_json_writer *writer, const struct gp_result_client *client)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "name", client->name);
	gp_json_writer_i64(writer, "priority", client->priority);
	gp_json_writer_string(writer, "kind", client->is_service ? "service" : "batch");
	gp_json_writer_u64(writer, "requests", client->requests);
	gp_json_writer_u64(writer, "unfinished", client->unfinished);
	json_latency(writer, client);
	gp_json_writer_decimal(writer, "throughput_per_s", client->throughput_milli, 3);
	gp_json_writer_decimal(writer, "gpu_share", client->gpu_share_ppm, 6);
	json_us(writer, "wait_us", client->wait_ns);
	gp_json_writer_begin(writer, "deadlines", '{');
	gp_json_writer_u64(writer, "met", client->deadlines_met);
	gp_json_writer_u64(writer, "missed", client->deadlines_missed);
	gp_json_writer_u64(writer, "refused", client->deadlines_refused);
	gp_json_writer_end(writer, '}');
	gp_json_writer_end(writer, '}');
}

static const char *json_client_name(const struct gp_result_run *run, uint32_t index)
{
	return index < run->client_count ? run->clients[index].name : "?";
}

static void json_waits(struct gp_json_writer *writer, const struct gp_result_run *run)
{
	if (!gp_compare_has_waits(run)) {
		gp_json_writer_null(writer, "waits");
		return;
	}
	gp_json_writer_begin(writer, "waits", '[');
	for (uint32_t i = 0; i < run->wait_count; i++) {
		const struct gp_result_wait *wait = &run->waits[i];

		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "client", json_client_name(run, wait->client));
		gp_json_writer_string(writer, "other", json_client_name(run, wait->other));
		gp_json_writer_u64(writer, "count", wait->count);
		json_us(writer, "total_us", wait->total_ns);
		json_us(writer, "max_us", wait->max_ns);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

static void json_inversions(struct gp_json_writer *writer, const struct gp_result_run *run)
{
	if (run->inversions_unknown) {
		gp_json_writer_null(writer, "inversions");
		return;
	}
	gp_json_writer_begin(writer, "inversions", '{');
	gp_json_writer_u64(writer, "count", run->inversion_count);
	json_us(writer, "total_us", run->inversion_ns);
	json_us(writer, "max_us", run->inversion_ns_max);
	gp_json_writer_end(writer, '}');
}

static void json_run(struct gp_json_writer *writer, const struct gp_result_run *run)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "policy", run->policy);
	gp_json_writer_decimal(writer, "duration_s", run->duration_ns, JSON_S_DECIMALS);
	gp_json_writer_begin(writer, "clients", '[');
	for (uint32_t i = 0; i < run->client_count; i++)
		json_client(writer, &run->clients[i]);
	gp_json_writer_end(writer, ']');
	gp_json_writer_u64(writer, "preemptions", run->preemptions);
	gp_json_writer_u64(writer, "transactions", run->transactions);
	json_us(writer, "transaction_us", run->transaction_ns);
	json_inversions(writer, run);
	gp_json_writer_u64(writer, "limited", run->limited);
	gp_json_writer_u64(writer, "left_short", run->left_short);
	gp_json_writer_u64(writer, "turns", run->turns);
	gp_json_writer_u64(writer, "aged", run->aged);
	json_us(writer, "killed_us", run->killed_ns);
	json_waits(writer, run);
	gp_json_writer_end(writer, '}');
}

static void json_lists(struct gp_json_writer *writer, const struct gp_result *result)
{
	gp_json_writer_begin(writer, "kernel_lists", '[');
	for (uint32_t i = 0; i < result->list_count; i++) {
		gp_json_writer_begin(writer, NULL, '{');
		gp_json_writer_string(writer, "name", result->lists[i].name);
		gp_json_writer_string(writer, "device", result->lists[i].device);
		json_us(writer, "model_us", result->lists[i].model_ns);
		json_us(writer, "measured_us", result->lists[i].measured_ns);
		gp_json_writer_end(writer, '}');
	}
	gp_json_writer_end(writer, ']');
}

int gp_view_json(FILE *stream, const struct gp_result *result)
{
	struct gp_json_writer writer;

	gp_json_writer_init(&writer, stream);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_u64(&writer, "schema", JSON_SCHEMA);
	gp_json_writer_u64(&writer, "seed", result->seed);
	gp_json_writer_string(&writer, "device", result->device);
	gp_json_writer_string(&writer, "device_title", result->device_title);
	gp_json_writer_u64(&writer, "devices", result->device_count);
	gp_json_writer_string(&writer, "mix", result->mix);
	json_lists(&writer, result);
	gp_json_writer_string(&writer, "gate", result->gate);
	if (result->gate_cost_ns)
		json_us(&writer, "gate_cost_us", result->gate_cost_ns);
	else
		gp_json_writer_null(&writer, "gate_cost_us");
	gp_json_writer_u64(&writer, "dilate", result->dilate);
	gp_json_writer_string(&writer, "command", result->command);
	gp_json_writer_begin(&writer, "runs", '[');
	for (uint32_t i = 0; i < result->run_count; i++)
		json_run(&writer, &result->runs[i]);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
	return fflush(stream) || ferror(stream) ? -EIO : 0;
}
