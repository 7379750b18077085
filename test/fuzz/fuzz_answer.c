/* SPDX-License-Identifier: MIT */
/* Fuzzer: what the daemon answers a command. The first byte chooses the reader: a packet, a status, a client, single
 * values, members. Whatever comes, what is kept is bounded and fit for a terminal. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "cli/clean.h"
#include "cli/control.h"
#include "cli/field.h"
#include "cli/state.h"
#include "cli/status_show.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer_expect_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			abort();
}

static void answer_packet(const uint8_t *data, size_t size)
{
	struct gp_control_packet packet = { .bytes = data, .size = size, .cookie = 1 };
	struct gp_error error = { "" };
	const char *text = NULL;
	size_t text_size = 0;
	bool is_refused;
	int r = gp_control_check(&packet, &text, &text_size, &is_refused, &error);

	if (r < 0)
		answer_expect_clean(error.text);
	else if (text < (const char *)data || text + text_size > (const char *)data + size)
		abort();
}

static void answer_state(const char *text, size_t size, bool is_client)
{
	static FILE *sink;
	struct gp_error error = { "" };
	struct gp_state state;

	sink = sink ? sink : fopen("/dev/null", "w");
	if (is_client ? gp_state_read_client(&state, text, size, &error) : gp_state_read(&state, text, size, &error)) {
		answer_expect_clean(error.text);
		return;
	}
	for (uint32_t i = 0; i < state.client_count; i++) {
		answer_expect_clean(state.clients[i].name);
		if (state.clients[i].queue_first + state.clients[i].queue_count > state.queue_count)
			abort();
		if (sink)
			gp_status_show_client(sink, &state, &state.clients[i]);
	}
	if (sink)
		gp_status_show(sink, &state, true);
	if (sink)
		gp_clean_json(sink, text, size);
	gp_state_fini(&state);
}

/* It ends, whatever the text is, and nothing nested is told as a member. */
static void answer_members(const char *text, size_t size)
{
	struct gp_error error = { "" };
	struct gp_json json;
	char key[8];

	gp_json_init(&json, text, size, "answer");
	if (gp_json_next(&json, &error) || json.type != GP_JSON_OBJECT_BEGIN)
		return;
	while (gp_field_next(&json, key, sizeof(key), &error) > 0) {
		answer_expect_clean(key);
		if (json.depth != 1)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	char value[8];
	uint64_t number;
	bool flag;

	if (!size)
		return 0;
	switch (data[0]) {
	case 'p': answer_packet(data + 1, size - 1); break;
	case 's': answer_state(text, size - 1, false); break;
	case 'c': answer_state(text, size - 1, true); break;
	case 'm': answer_members(text, size - 1); break;
	default:
		(void)gp_field_u64(text, size - 1, "agents", &number);
		(void)gp_field_bool(text, size - 1, "opened_gpu", &flag);
		if (gp_field_string(text, size - 1, "version", value, sizeof(value)))
			answer_expect_clean(value);
	}
	return 0;
}
