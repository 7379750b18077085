/* SPDX-License-Identifier: MIT */
/* What the fuzzers of trace readers share: a sink that checks what every reader promises, and the call of one reader.
 */
#ifndef GP_TEST_FUZZ_TRACE_SINK_H
#define GP_TEST_FUZZ_TRACE_SINK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "report/trace/readers.h"

static inline int trace_sink_event(void *context, const struct gp_profile_event *event, struct gp_error *error)
{
	volatile char last;

	(void)context;
	(void)error;
	/* A name is there and may be read to its end; a layer is one of ours. */
	if (!event->name || (unsigned int)event->layer >= GP_LAYER_COUNT)
		abort();
	for (size_t i = 0; i < event->name_size; i++)
		last = event->name[i];
	(void)last;
	return 0;
}

static inline int trace_sink_fact(void *context, const struct gp_fact *fact, struct gp_error *error)
{
	(void)context;
	(void)error;
	if (!fact->text || strlen(fact->text) > (1u << 20))
		abort();
	return 0;
}

typedef int (*trace_sink_reader)(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error);

/* A refusal is a sentence that begins with the file's name. */
static inline int trace_sink_run(trace_sink_reader reader, const uint8_t *data, size_t size)
{
	struct gp_sink sink = { .event = trace_sink_event, .fact = trace_sink_fact };
	struct gp_error error = { "" };
	struct gp_input input;

	if (gp_input_open_memory(&input, (const char *)data, size, "fuzz", &error) < 0) {
		if (strncmp(error.text, "fuzz:", 5))
			abort();
		return 0;
	}
	if (reader(&input, &sink, &error) < 0 && strncmp(error.text, "fuzz:", 5))
		abort();
	gp_input_close(&input);
	return 0;
}

#endif
