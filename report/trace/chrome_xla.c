/* SPDX-License-Identifier: MIT */
/*
 * Owns what XLA's profiler writes (jax.profiler.trace: HOST.trace.json.gz). "/device:GPU:0" stands in the place of a
 * process and its streams in the place of threads, beside threads that repeat the streams' work under names of
 * operations. "/host:CPU" has the program's threads: ranges, and calls of the driver, which alone name their device. A
 * call that launches has the kernel's name. Nothing says which process it was.
 */
#include <stdio.h>
#include <string.h>
#include "report/trace/chrome.h"
#include "report/trace/rows.h"

bool gp_chrome_xla_lane(const char *name, struct chrome_lane *lane)
{
	static const char gpu[] = "/device:GPU:", host[] = "/host:CPU";

	if (!strncmp(name, gpu, sizeof(gpu) - 1)) {
		name += sizeof(gpu) - 1;
		lane->kind = CHROME_XLA_GPU;
		lane->has_device = gp_rows_u64(name, strspn(name, "0123456789"), &lane->device);
		return true;
	}
	if (strncmp(name, host, sizeof(host) - 1))
		return false;
	lane->kind = CHROME_XLA_HOST;
	return true;
}

/* "Stream #7(Compute,MemcpyH2D)" */
void gp_chrome_xla_thread(struct chrome_streams *streams, const struct chrome_event *event)
{
	static const char prefix[] = "Stream #";
	const char *name = event->lane_name;
	uint64_t stream = event->tid.value;

	if (!event->tid.is_seen || strncmp(name, prefix, sizeof(prefix) - 1) || streams->count == CHROME_STREAM_MAX)
		return;
	name += sizeof(prefix) - 1;
	(void)gp_rows_u64(name, strspn(name, "0123456789"), &stream);
	streams->streams[streams->count].pid = event->pid.value;
	streams->streams[streams->count].tid = event->tid.value;
	streams->streams[streams->count++].stream = stream;
}

/* "kind_src:pinned kind_dst:device size:1024 dest:0 async:1" */
static bool chrome_xla_word(const char *text, const char *word, uint64_t *ret_value)
{
	const char *at = strstr(text, word);

	if (!at || (at != text && at[-1] != ' '))
		return false;
	at += strlen(word);
	return gp_rows_u64(at, strspn(at, "0123456789"), ret_value);
}

void gp_chrome_xla_member(struct chrome_xla *xla, const struct gp_json_input *json, const char *key)
{
	static const struct {
		const char *key;
		enum chrome_xla_kind kind;
	} details[] = {
		{ "kernel_details", CHROME_XLA_KERNEL },  { "memcpy_details", CHROME_XLA_COPY },
		{ "Memset_details", CHROME_XLA_COPY },    { "memalloc_details", CHROME_XLA_MEMORY },
		{ "MemFree_details", CHROME_XLA_MEMORY }, { "MemoryResidency_details", CHROME_XLA_MEMORY },
	};
	const char *text = json->json.string;
	uint64_t is_async = 0;

	if (!strcmp(key, "correlation_id"))
		xla->correlation.is_seen = gp_json_input_u64(json, &xla->correlation.value);
	else if (!strcmp(key, "device_id"))
		xla->device.is_seen = gp_json_input_u64(json, &xla->device.value);
	else if (!strcmp(key, "context_id"))
		xla->has_context = true;
	for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++)
		if (json->json.type == GP_JSON_STRING && !strcmp(key, details[i].key))
			xla->kind = details[i].kind;
	if (json->json.type != GP_JSON_STRING || xla->kind != CHROME_XLA_COPY || !strstr(key, "_details"))
		return;
	xla->size.is_seen = chrome_xla_word(text, "size:", &xla->size.value) ||
			    chrome_xla_word(text, "num_bytes:", &xla->size.value);
	xla->is_async = chrome_xla_word(text, "async:", &is_async) && is_async;
}

static bool chrome_xla_stream(const struct chrome_streams *streams, const struct chrome_event *event,
			      uint64_t *ret_stream)
{
	for (uint32_t i = 0; i < streams->count; i++)
		if (streams->streams[i].pid == event->pid.value && streams->streams[i].tid == event->tid.value) {
			*ret_stream = streams->streams[i].stream;
			return true;
		}
	return false;
}

/* "cuStreamSynchronize", "hipMalloc": a function of the driver's or the runtime's; a kernel is named otherwise. */
static bool chrome_xla_is_function(const char *name)
{
	size_t size = !strncmp(name, "cuda", 4) ? 4 : !strncmp(name, "cu", 2) ? 2 : !strncmp(name, "hip", 3) ? 3 : 0;

	return size && name[size] >= 'A' && name[size] <= 'Z';
}

static enum gp_layer chrome_xla_call(struct chrome_event *event)
{
	const struct chrome_xla *xla = &event->xla;

	if (!xla->correlation.is_seen || (!xla->device.is_seen && !chrome_xla_is_function(event->name)))
		return GP_LAYER_MARKER;
	if (xla->kind == CHROME_XLA_COPY && xla->is_async && !strstr(event->name, "Async"))
		(void)snprintf(event->name + strlen(event->name), sizeof(event->name) - strlen(event->name), "Async");
	else if (xla->kind == CHROME_XLA_UNKNOWN && !chrome_xla_is_function(event->name))
		(void)snprintf(event->name, sizeof(event->name), "%sLaunchKernel", xla->has_context ? "cu" : "");
	return GP_LAYER_HIP;
}

enum gp_layer gp_chrome_xla_layer(const struct chrome_streams *streams, const struct chrome_lane *lane,
				  struct chrome_event *event)
{
	uint64_t stream = 0;

	if (lane->kind == CHROME_XLA_HOST)
		return chrome_xla_call(event);
	if (event->xla.kind == CHROME_XLA_MEMORY)
		return GP_LAYER_MEMORY;
	if (event->xla.kind == CHROME_XLA_COPY || event->xla.kind == CHROME_XLA_KERNEL ||
	    chrome_xla_stream(streams, event, &stream))
		return event->xla.kind == CHROME_XLA_COPY || !strncmp(event->name, "Memcpy", 6) ||
				       !strncmp(event->name, "Memset", 6) ?
			       GP_LAYER_COPY :
			       GP_LAYER_KERNEL;
	(void)snprintf(event->name + strlen(event->name), sizeof(event->name) - strlen(event->name), " (on the GPU)");
	return GP_LAYER_MARKER;
}

void gp_chrome_xla_place(const struct chrome_streams *streams, const struct chrome_lane *lane,
			 const struct chrome_event *event, struct gp_profile_event *to)
{
	const struct chrome_xla *xla = &event->xla;

	if (xla->correlation.is_seen && to->layer != GP_LAYER_MARKER && to->layer != GP_LAYER_MEMORY) {
		to->correlation = xla->correlation.value;
		to->known |= GP_KNOWN_CORRELATION;
	}
	if (xla->size.is_seen) {
		to->size = xla->size.value;
		to->known |= GP_KNOWN_SIZE;
	}
	if (event->tid.is_seen && lane->kind == CHROME_XLA_HOST) {
		to->tid = event->tid.value;
		to->known |= GP_KNOWN_TID;
	}
	if (to->layer != GP_LAYER_KERNEL && to->layer != GP_LAYER_COPY)
		return;
	to->device = lane->device;
	to->known |= lane->has_device ? GP_KNOWN_DEVICE : 0;
	to->stream = event->tid.value;
	if (chrome_xla_stream(streams, event, &to->stream) || event->tid.is_seen) {
		to->queue = to->stream;
		to->known |= GP_KNOWN_STREAM | GP_KNOWN_QUEUE;
	}
}
