/* SPDX-License-Identifier: MIT */
/* A device, its queues and what happened on it, for the tests of the GPU model. Every step checks the model's own
 * invariants. */
#ifndef GP_TEST_MODEL_FIXTURE_H
#define GP_TEST_MODEL_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "lib/file.h"
#include "lib/paths.h"
#include "model/gpu.h"

#define US        1000ull
#define MS        1000000ull
#define S         1000000000ull
#define EVENT_MAX 200000u

struct fixture {
	struct gp_desc desc;
	struct gp_gpu *gpu;
	struct gp_gpu_event *events;
	uint32_t event_count;
};

static inline void fixture_override(struct fixture *f, const char *assignment)
{
	struct gp_error error = { "" };

	if (gp_desc_override(&f->desc, assignment, &error) < 0)
		fail_msg("%s", error.text);
}

/* A description as it is shipped; "mes" is the MI300X with the other scheduler, which none of the shipped ones has. */
static inline void fixture_load(struct fixture *f, const char *device)
{
	bool is_mes = !strcmp(device, "mes");
	struct gp_error error = { "" };
	char relative[128], path[4096], *text, *found;
	size_t size;

	(void)snprintf(relative, sizeof(relative), "devices/%s.ini", is_mes ? "mi300x" : device);
	assert_int_equal(gp_paths_share(relative, path, sizeof(path)), 0);
	if (gp_file_read(path, 1u << 20, &text, &size, &error) < 0)
		fail_msg("%s", error.text);
	found = is_mes ? strstr(text, "= cpsch ") : NULL;
	if (found)
		memcpy(found, "= mes   ", 8);
	if (gp_desc_parse(text, size, path, &f->desc, &error) < 0)
		fail_msg("%s", error.text);
	free(text);
}

/* The overrides are "key=value", the last one NULL. */
static inline void fixture_open_config(struct fixture *f, const char *device, struct gp_gpu_config config,
				       const char *const *overrides)
{
	memset(f, 0, sizeof(*f));
	config.desc = &f->desc;
	fixture_load(f, device);
	for (; overrides && *overrides; overrides++)
		fixture_override(f, *overrides);
	assert_int_equal(gp_gpu_create(&config, &f->gpu), 0);
	f->events = calloc(EVENT_MAX, sizeof(*f->events));
	assert_non_null(f->events);
}

static inline void fixture_open(struct fixture *f, const char *device, uint64_t gate_cost_ns,
				const char *const *overrides)
{
	fixture_open_config(f, device, (struct gp_gpu_config){ .gate_cost_ns = gate_cost_ns }, overrides);
}

static inline void fixture_close(struct fixture *f)
{
	gp_gpu_destroy(f->gpu);
	free(f->events);
}

static inline void fixture_poll(struct fixture *f)
{
	const char *wrong = gp_gpu_check(f->gpu);

	if (wrong)
		fail_msg("%s", wrong);
	while (f->event_count < EVENT_MAX && gp_gpu_poll(f->gpu, &f->events[f->event_count])) {
		if (f->event_count)
			assert_true(f->events[f->event_count].time_ns >= f->events[f->event_count - 1].time_ns);
		f->event_count++;
	}
}

/* Event by event, so that the invariants are checked at each. */
static inline void fixture_run(struct fixture *f, uint64_t until_ns)
{
	while (gp_gpu_next_ns(f->gpu) <= until_ns) {
		gp_gpu_advance(f->gpu, gp_gpu_next_ns(f->gpu));
		fixture_poll(f);
	}
	gp_gpu_advance(f->gpu, until_ns);
	fixture_poll(f);
}

static inline uint32_t fixture_process(struct fixture *f)
{
	uint32_t process;

	assert_int_equal(gp_gpu_process_add(f->gpu, &process), 0);
	return process;
}

static inline uint32_t fixture_queue(struct fixture *f, uint32_t process, uint64_t now_ns)
{
	struct gp_gpu_queue_attr attr = { .kind = GP_GPU_COMPUTE };
	uint32_t queue;

	assert_int_equal(gp_gpu_queue_add(f->gpu, process, &attr, now_ns, &queue), 0);
	return queue;
}

/* Workgroups that fill a CU each (16 waves of 128 registers: half the register file; LDS takes the rest of the room).
 */
static inline struct gp_gpu_packet fixture_kernel(uint32_t workgroups, uint64_t workgroup_ns)
{
	return (struct gp_gpu_packet){
		.type = GP_GPU_KERNEL,
		.barrier = true,
		.kernel = { .workgroups = workgroups,
			    .workgroup_ns = workgroup_ns,
			    .waves = 16,
			    .vgprs = 128,
			    .lds_size = 64u << 10 },
	};
}

static inline void fixture_submit(struct fixture *f, uint32_t queue, const struct gp_gpu_packet *packet,
				  uint64_t now_ns)
{
	assert_int_equal(gp_gpu_submit(f->gpu, queue, packet, now_ns), 0);
	assert_int_equal(gp_gpu_doorbell(f->gpu, queue, now_ns), 0);
}

static inline const struct gp_gpu_event *fixture_find(const struct fixture *f, enum gp_gpu_event_type type,
						      uint32_t queue, uint32_t nth)
{
	for (uint32_t i = 0; i < f->event_count; i++)
		if (f->events[i].type == type && f->events[i].queue == queue && !nth--)
			return &f->events[i];
	return NULL;
}

static inline uint64_t fixture_time(const struct fixture *f, enum gp_gpu_event_type type, uint32_t queue, uint32_t nth)
{
	const struct gp_gpu_event *event = fixture_find(f, type, queue, nth);

	assert_non_null(event);
	return event->time_ns;
}

static inline uint32_t fixture_count(const struct fixture *f, enum gp_gpu_event_type type, uint32_t queue)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < f->event_count; i++)
		count += f->events[i].type == type && f->events[i].queue == queue;
	return count;
}

static inline void fixture_gate(struct fixture *f, uint32_t queue, bool open, uint64_t seq, uint64_t now_ns)
{
	struct gp_gpu_change change = { .queue = queue, .open = open };

	assert_int_equal(gp_gpu_transact(f->gpu, &change, 1, seq, now_ns), 0);
}

static inline struct gp_gpu_counters fixture_counters(const struct fixture *f, uint32_t queue)
{
	struct gp_gpu_counters counters;

	assert_int_equal(gp_gpu_counters(f->gpu, queue, &counters), 0);
	return counters;
}

#endif
