/* SPDX-License-Identifier: MIT */
/* Owns the table of switches: names, ranges, choices, and the field of the setup each one changes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lab/keys.h"
#include "lib/units.h"

enum key_type { KEY_COUNT, KEY_NS, KEY_PERCENT, KEY_CHOICE };

struct key {
	const char *name;
	enum key_type type;
	uint64_t min, max;
	const char *choices[5];
	const char *what;
};

#define US 1000ull
#define MS 1000000ull

static const struct key keys[LAB_KEY_COUNT] = {
	[LAB_KEY_PROCESSES] = { "processes",
				KEY_COUNT,
				1,
				LAB_PROCESS_MAX,
				{ 0 },
				"processes, where the experiment does not sweep them" },
	[LAB_KEY_STREAMS] = { "streams",
			      KEY_COUNT,
			      1,
			      LAB_STREAM_MAX,
			      { 0 },
			      "streams of a process; stream n uses queue n mod queues" },
	[LAB_KEY_QUEUES] = { "queues", KEY_COUNT, 1, 16, { 0 }, "hardware queues of a process (GPU_MAX_HW_QUEUES)" },
	[LAB_KEY_IDLE_QUEUES] = { "idle-queues",
				  KEY_COUNT,
				  0,
				  8,
				  { 0 },
				  "open queues without work (utility, cooperative)" },
	[LAB_KEY_QUEUE_IDS] = { "queue-ids",
				KEY_CHOICE,
				0,
				0,
				{ "first-fit", "pid-hash" },
				"how KFD numbers queues; pid-hash is seed 002's v5" },
	[LAB_KEY_DOORBELLS] = { "doorbells",
				KEY_CHOICE,
				0,
				0,
				{ "slice", "shared" },
				"a slice of the BAR per process (the driver), or one for all (as feared)" },
	[LAB_KEY_RUNLIST] = { "active-runlist",
			      KEY_CHOICE,
			      0,
			      0,
			      { "stock", "removed", "queued", "feared" },
			      "the check in map_queues_cpsch()" },
	[LAB_KEY_SUBMISSION] = { "submission",
				 KEY_CHOICE,
				 0,
				 0,
				 { "doorbell", "drm-sched" },
				 "how compute work reaches the GPU; drm-sched is what the seeds fear" },
	[LAB_KEY_RING] = { "ring",
			   KEY_CHOICE,
			   0,
			   0,
			   { "fixed", "hash", "round-robin", "least-loaded" },
			   "which ring a kernel job goes to" },
	[LAB_KEY_ENTITIES] = { "entities", KEY_COUNT, 1, LAB_ENTITY_MAX, { 0 }, "entities of a context" },
	[LAB_KEY_WORKQUEUE] = { "workqueue",
				KEY_CHOICE,
				0,
				0,
				{ "per-ring", "one" },
				"ordered workqueue of each ring (the driver), or one for all" },
	[LAB_KEY_JOB] = { "job", KEY_NS, 1 * US, 1 * MS, { 0 }, "one job through a scheduler's work item" },
	[LAB_KEY_NUM_KCQ] = { "num-kcq",
			      KEY_COUNT,
			      0,
			      8,
			      { 0 },
			      "kernel queues reserved (amdgpu.num_kcq); 32 minus these are KFD's" },
	[LAB_KEY_CU] = { "cu", KEY_COUNT, 4, 80, { 0 }, "compute units of every queue's mask" },
	[LAB_KEY_MASK] = { "mask",
			   KEY_CHOICE,
			   0,
			   0,
			   { "as-given", "balanced" },
			   "balanced: rounded down to the same number in every shader engine" },
	[LAB_KEY_QUANTUM] = { "quantum",
			      KEY_NS,
			      50 * US,
			      20 * MS,
			      { 0 },
			      "a pipe leaves a queue after so long (CP_HQD_QUANTUM)" },
	[LAB_KEY_PROCESS_QUANTUM] = { "process-quantum",
				      KEY_NS,
				      1 * MS,
				      100 * MS,
				      { 0 },
				      "slice of a process when oversubscribed" },
	[LAB_KEY_PRIORITY] = { "priority",
			       KEY_COUNT,
			       1,
			       15,
			       { 0 },
			       "hardware priority of the first process; 7 is NORMAL" },
	[LAB_KEY_PREEMPTION] = { "preemption",
				 KEY_CHOICE,
				 0,
				 0,
				 { "off", "on" },
				 "on: one process at a time has open gates, in turns" },
	[LAB_KEY_TURN] = { "turn", KEY_NS, 2 * MS, 500 * MS, { 0 }, "length of a turn" },
	[LAB_KEY_PARTITION] = { "partition",
				KEY_CHOICE,
				0,
				0,
				{ "spx", "cpx" },
				"the whole device, or one device per XCC" },
	[LAB_KEY_GRAPH] = { "graph",
			    KEY_CHOICE,
			    0,
			    0,
			    { "several", "one" },
			    "the graph is replayed on several queues or on one" },
	[LAB_KEY_BLOCKED_HEAD] = { "blocked-head",
				   KEY_CHOICE,
				   0,
				   0,
				   { "hold", "rotate" },
				   "a pipe whose queue waits for another: stays, or goes on" },
	[LAB_KEY_PACKING] = { "packing",
			      KEY_CHOICE,
			      0,
			      0,
			      { "process", "slots" },
			      "what shares a slice when oversubscribed" },
	[LAB_KEY_PIPES] = { "pipes",
			    KEY_CHOICE,
			    0,
			    0,
			    { "runlist", "process" },
			    "placement of queues: round the pipes, or a pipe per process" },
	[LAB_KEY_STAGES] = { "stages", KEY_COUNT, 1, LAB_STAGE_MAX, { 0 }, "dependent steps of a query (fitted)" },
	[LAB_KEY_FORK] = { "fork", KEY_PERCENT, 0, 100, { 0 }, "of the steps are two kernels side by side (fitted)" },
	[LAB_KEY_WAVE] = { "wave", KEY_PERCENT, 0, 100, { 0 }, "of the kernels fill the device exactly once (fitted)" },
	[LAB_KEY_KERNEL] = { "kernel", KEY_NS, 1 * US, 100 * MS, { 0 }, "mean duration of a kernel (fitted)" },
	[LAB_KEY_HOST] = { "host", KEY_NS, 0, 100 * MS, { 0 }, "between two queries of a process" },
	[LAB_KEY_JITTER] = { "jitter", KEY_PERCENT, 0, 100, { 0 }, "kernels vary by so much around their mean" },
	[LAB_KEY_SLICE_LOSS] = { "slice-loss",
				 KEY_NS,
				 0,
				 9 * MS,
				 { 0 },
				 "lost per slice when oversubscribed (fitted)" },
	[LAB_KEY_SEEDS] = { "seeds", KEY_COUNT, 1, LAB_SEEDS_MAX, { 0 }, "random seeds behind each figure" },
	[LAB_KEY_DURATION] = { "duration", KEY_NS, 100 * MS, 60000 * MS, { 0 }, "device time of one run" },
};

static const char *key_range(const struct key *key, char *buffer, size_t buffer_size)
{
	char min[GP_UNITS_TEXT_SIZE], max[GP_UNITS_TEXT_SIZE];
	size_t used = 0;

	switch (key->type) {
	case KEY_COUNT: (void)snprintf(buffer, buffer_size, "%" PRIu64 " to %" PRIu64, key->min, key->max); break;
	case KEY_PERCENT:
		(void)snprintf(buffer, buffer_size, "%" PRIu64 "%% to %" PRIu64 "%%", key->min, key->max);
		break;
	case KEY_NS:
		(void)snprintf(buffer, buffer_size, "%s to %s", gp_units_format_ns(key->min, min, sizeof(min)),
			       gp_units_format_ns(key->max, max, sizeof(max)));
		break;
	case KEY_CHOICE:
		for (uint32_t i = 0; key->choices[i] && used < buffer_size; i++)
			used += (size_t)snprintf(buffer + used, buffer_size - used, "%s%s", i ? ", " : "",
						 key->choices[i]);
		break;
	}
	return buffer;
}

static int key_value(const struct key *key, const char *text, uint64_t *ret_value, struct gp_error *error)
{
	struct gp_error why;
	char range[160], number[32];
	size_t size = strlen(text);
	int ret = -EINVAL;

	switch (key->type) {
	case KEY_COUNT: ret = gp_units_parse_count(text, key->name, key->min, key->max, ret_value, &why); break;
	case KEY_NS: ret = gp_units_parse_ns(text, key->name, key->min, key->max, ret_value, &why); break;
	case KEY_PERCENT:
		if (size && size < sizeof(number)) {
			(void)snprintf(number, sizeof(number), "%.*s", (int)(size - (text[size - 1] == '%')), text);
			ret = gp_units_parse_count(number, key->name, key->min, key->max, ret_value, &why);
			*ret_value *= 10000u;
		}
		break;
	case KEY_CHOICE:
		for (uint32_t i = 0; key->choices[i]; i++) {
			if (!strcmp(text, key->choices[i])) {
				*ret_value = i;
				ret = 0;
			}
		}
		break;
	}
	return ret ? gp_error_set(error, -EINVAL, "--set %s=%.40s: the value must be %s%s", key->name, text,
				  key->type == KEY_CHOICE ? "one of " : "", key_range(key, range, sizeof(range))) :
		     0;
}

static bool key_set_load(struct lab *lab, enum lab_key key, uint64_t value)
{
	struct lab_load *load = &lab->base.load;

	switch (key) {
	case LAB_KEY_STAGES: load->stages = (uint32_t)value; break;
	case LAB_KEY_FORK: load->fork_ppm = (uint32_t)value; break;
	case LAB_KEY_WAVE: load->wave_ppm = (uint32_t)value; break;
	case LAB_KEY_KERNEL: load->kernel_ns = value; break;
	case LAB_KEY_HOST: load->host_ns = value; break;
	case LAB_KEY_JITTER: load->jitter_ppm = (uint32_t)value; break;
	case LAB_KEY_SLICE_LOSS: load->slice_loss_ns = value; break;
	case LAB_KEY_SEEDS: lab->seeds = (uint32_t)value; break;
	case LAB_KEY_DURATION: lab->base.duration_ns = value; break;
	default: return false;
	}
	return true;
}

static bool key_set_stack(struct lab_setup *setup, enum lab_key key, uint64_t value)
{
	switch (key) {
	case LAB_KEY_QUEUE_IDS: setup->queue_ids = (enum lab_queue_ids)value; break;
	case LAB_KEY_DOORBELLS: setup->doorbells = (enum lab_doorbells)value; break;
	case LAB_KEY_RUNLIST: setup->runlist = (enum lab_runlist)value; break;
	case LAB_KEY_SUBMISSION: setup->submission = (enum lab_submission)value; break;
	case LAB_KEY_RING: setup->rings = (enum lab_rings)value; break;
	case LAB_KEY_ENTITIES: setup->entity_count = (uint32_t)value; break;
	case LAB_KEY_WORKQUEUE: setup->workqueue = (enum lab_workqueue)value; break;
	case LAB_KEY_JOB: setup->job_ns = value; break;
	default: return false;
	}
	return true;
}

static void key_set_device(struct lab_setup *setup, enum lab_key key, uint64_t value)
{
	switch (key) {
	case LAB_KEY_PROCESSES: setup->process_count = (uint32_t)value; break;
	case LAB_KEY_STREAMS: setup->stream_count = (uint32_t)value; break;
	case LAB_KEY_QUEUES: setup->queue_count = (uint32_t)value; break;
	case LAB_KEY_IDLE_QUEUES: setup->idle_count = (uint32_t)value; break;
	case LAB_KEY_NUM_KCQ: setup->kcq_count = (uint32_t)value; break;
	case LAB_KEY_CU: setup->cu_count = (uint32_t)value; break;
	case LAB_KEY_MASK: setup->mask_balanced = value; break;
	case LAB_KEY_QUANTUM: setup->quantum_ns = value; break;
	case LAB_KEY_PROCESS_QUANTUM: setup->process_quantum_ns = value; break;
	case LAB_KEY_PRIORITY: setup->priority = (uint32_t)value; break;
	case LAB_KEY_PREEMPTION: setup->turn_ns = value ? setup->turn_ns ? setup->turn_ns : 40 * MS : 0; break;
	case LAB_KEY_TURN: setup->turn_ns = value; break;
	case LAB_KEY_PARTITION: setup->is_cpx = value; break;
	case LAB_KEY_GRAPH: setup->graph_on_one = value; break;
	case LAB_KEY_BLOCKED_HEAD: setup->rotate = value; break;
	case LAB_KEY_PACKING: setup->pack_slots = value; break;
	case LAB_KEY_PIPES: setup->pipe_by_process = value; break;
	default: break;
	}
}

static int key_unknown(const struct lab_experiment *experiment, const char *name, struct gp_error *error)
{
	char known[360] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < LAB_KEY_COUNT; i++)
		if (experiment->keys >> i & 1u && used < sizeof(known))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
						 keys[i].name);
	return gp_error_set(error, -EINVAL, "%s has no key \"%.32s\"; valid keys: %s", experiment->name, name,
			    used ? known : "none");
}

int lab_key_set(struct lab *lab, const struct lab_experiment *experiment, const char *assignment,
		struct gp_error *error)
{
	const char *equals = strchr(assignment, '=');
	size_t size = equals ? (size_t)(equals - assignment) : strlen(assignment), used;
	char name[40];
	uint64_t value;
	uint32_t i = 0;

	(void)snprintf(name, sizeof(name), "%.*s", (int)(size < sizeof(name) ? size : sizeof(name) - 1u), assignment);
	while (i < LAB_KEY_COUNT && strcmp(keys[i].name, name))
		i++;
	if (i == LAB_KEY_COUNT || !(experiment->keys >> i & 1u))
		return key_unknown(experiment, name, error);
	if (!equals)
		return gp_error_set(error, -EINVAL, "--set %s needs a value: --set %s=VALUE", name, name);
	if (key_value(&keys[i], equals + 1, &value, error))
		return -EINVAL;
	used = strlen(lab->settings);
	if (used + strlen(assignment) + sizeof(" --set ") > sizeof(lab->settings))
		return gp_error_set(error, -E2BIG, "the options are too long to be repeated");
	if (!key_set_load(lab, (enum lab_key)i, value) && !key_set_stack(&lab->base, (enum lab_key)i, value))
		key_set_device(&lab->base, (enum lab_key)i, value);
	(void)snprintf(lab->settings + used, sizeof(lab->settings) - used, " --set %s", assignment);
	return 0;
}

void lab_key_list(FILE *stream, uint64_t wanted)
{
	char range[160];

	for (uint32_t i = 0; i < LAB_KEY_COUNT; i++)
		if (wanted >> i & 1u)
			fprintf(stream, "  %-16s %s: %s\n", keys[i].name, keys[i].what,
				key_range(&keys[i], range, sizeof(range)));
}
