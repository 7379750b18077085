/* SPDX-License-Identifier: MIT */
/* Owns the words for what happened and the order of slices. */
#include <stdio.h>
#include <stdlib.h>
#include "view/format.h"
#include "view/marks.h"

const char *gp_marks_client(const struct gp_result_run *run, uint32_t client)
{
	return client < run->client_count ? run->clients[client].name : "?";
}

/* The verb of a point; NULL for what is told with its length. */
static const char *marks_verb(enum gp_result_mark_type type)
{
	switch (type) {
	case GP_MARK_ARRIVAL: return "request arrives";
	case GP_MARK_CLOSE: return "closed";
	case GP_MARK_OPEN: return "opened";
	case GP_MARK_LEFT_OPEN: return "left open";
	case GP_MARK_TURN: return "gets its turn";
	case GP_MARK_FAULT: return "fault";
	case GP_MARK_INVERSION:
	case GP_MARK_HALT: break;
	}
	return NULL;
}

const char *gp_marks_text(const struct gp_result_run *run, const struct gp_result_mark *mark, char *buffer,
			  size_t buffer_size)
{
	const char *why = mark->why ? mark->why : "";
	const char *client = gp_marks_client(run, mark->client);
	char length[GP_FORMAT_TEXT_SIZE];

	(void)gp_format_tick(mark->end_ns - mark->start_ns, length, sizeof(length));
	if (mark->type == GP_MARK_INVERSION)
		(void)snprintf(buffer, buffer_size, "%s waited %s for %s%s%s", client, length,
			       gp_marks_client(run, mark->other), *why ? ": " : "", why);
	else if (mark->type == GP_MARK_HALT)
		(void)snprintf(buffer, buffer_size, "device stopped for %s%s%s", length, *why ? ": " : "", why);
	else
		(void)snprintf(buffer, buffer_size, "%s %s%s%s", client, marks_verb(mark->type), *why ? ": " : "", why);
	return buffer;
}

struct marks_key {
	uint32_t device, queue, index;
	int32_t priority;
	uint64_t start_ns;
};

static int marks_compare(const void *a, const void *b)
{
	const struct marks_key *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	if (x->queue != y->queue)
		return x->queue < y->queue ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

uint32_t *gp_marks_slice_order(const struct gp_result_run *run)
{
	struct marks_key *keys;
	uint32_t *order;

	if (!run->slice_count)
		return NULL;
	keys = malloc(run->slice_count * sizeof(*keys));
	order = malloc(run->slice_count * sizeof(*order));
	if (!keys || !order) {
		free(keys);
		free(order);
		return NULL;
	}
	for (uint32_t i = 0; i < run->slice_count; i++) {
		const struct gp_result_slice *slice = &run->slices[i];

		keys[i] = (struct marks_key){ .device = slice->device,
					      .queue = slice->queue,
					      .index = i,
					      .start_ns = slice->start_ns,
					      .priority = slice->client < run->client_count ?
								  run->clients[slice->client].priority :
								  0 };
	}
	qsort(keys, run->slice_count, sizeof(*keys), marks_compare);
	for (uint32_t i = 0; i < run->slice_count; i++)
		order[i] = keys[i].index;
	free(keys);
	return order;
}
