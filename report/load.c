/* SPDX-License-Identifier: MIT */
/* Owns the files of a run: their events go to the store, what else they say is kept up to a number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/utf8.h"
#include "report/load.h"

int gp_run_init(struct gp_run *run, size_t memory_size, struct gp_error *error)
{
	memset(run, 0, sizeof(*run));
	run->facts.facts = calloc(GP_ANALYSIS_FACT_MAX, sizeof(*run->facts.facts));
	if (!run->facts.facts)
		return gp_error_set(error, -ENOMEM, "not enough memory");
	int r = gp_store_init(&run->store, memory_size, error);

	if (r)
		gp_run_fini(run);
	return r;
}

void gp_run_fini(struct gp_run *run)
{
	gp_store_fini(&run->store);
	free(run->facts.facts);
	memset(run, 0, sizeof(*run));
}

/* Text from a file, so that it can be shown: no control characters, no broken UTF-8. */
static void load_clean(char *to, size_t size, const char *from)
{
	size_t used = 0, left = strlen(from);

	while (left) {
		uint32_t code = 0;
		size_t length = gp_utf8_decode(from, left, &code);
		bool is_shown = length && !gp_utf8_is_harmful(code);

		length = length ? length : 1;
		if (used + length >= size)
			break;
		if (is_shown)
			memcpy(to + used, from, length);
		else
			memset(to + used, '?', length);
		used += length;
		from += length;
		left -= length;
	}
	to[used] = '\0';
}

static int load_fact(void *context, const struct gp_fact *fact, struct gp_error *error)
{
	struct gp_run *run = context;
	struct gp_kept_fact *kept;

	(void)error;
	if (fact->kind == GP_FACT_RANK) {
		gp_store_rank(&run->store, fact->value);
		return 0;
	}
	run->facts.counts[fact->kind]++;
	run->facts.sums[fact->kind] += fact->value;
	if (fact->value > run->facts.largest[fact->kind])
		run->facts.largest[fact->kind] = fact->value;
	if (run->facts.count == GP_ANALYSIS_FACT_MAX)
		return 0;
	kept = &run->facts.facts[run->facts.count++];
	*kept = (struct gp_kept_fact){ .kind = fact->kind,
				       .value = fact->value,
				       .calls = fact->calls,
				       .device = fact->device,
				       .has_device = fact->has_device,
				       .time_ns = fact->time_ns,
				       .has_time = fact->has_time,
				       .row = fact->row,
				       .file = run->store.file_count - 1 };
	load_clean(kept->text, sizeof(kept->text), fact->text ? fact->text : "");
	return 0;
}

static int load_event(void *context, const struct gp_profile_event *event, struct gp_error *error)
{
	struct gp_run *run = context;

	return gp_store_add(&run->store, event, error);
}

struct gp_sink gp_run_sink(struct gp_run *run)
{
	return (struct gp_sink){ .context = run, .event = load_event, .fact = load_fact };
}

int gp_run_load(struct gp_run *run, const char *path, const struct gp_read_progress *progress, struct gp_error *error)
{
	struct gp_sink sink = gp_run_sink(run);
	char name[1024];
	int r;

	load_clean(name, sizeof(name), gp_input_name(path));
	r = gp_store_file_add(&run->store, name, error);
	if (r)
		return r;
	r = gp_trace_read(path, &sink, progress, &run->store.files[run->store.file_count - 1].format, error);
	return r ? r : gp_store_file_end(&run->store, error);
}
