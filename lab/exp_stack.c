/* SPDX-License-Identifier: MIT */
/* Owns the experiments on queue ids, doorbells and active_runlist: three fixes of seed 002 that change nothing, and
 * why. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "lab/experiments.h"
#include "lab/keys.h"
#include "lab/stack.h"

static void stack_hash_row(struct gp_lab_table *table, uint32_t pid, const char *logged, const char *noted)
{
	struct gp_lab_row *row = lab_add_row(table, "PID %" PRIu32 ": queue ids", pid);

	lab_set_text(&row->measured, "%s", logged);
	if (noted)
		lab_set_text(&row->expected, "%s", noted);
	lab_set_text(&row->predicted, "%" PRIu32 "–%" PRIu32 " (%" PRIu32 " mod 256 = %" PRIu32 ", × 4)",
		     lab_stack_hash_id(pid, 0), lab_stack_hash_id(pid, 3), pid, pid % 256u);
	row->mark = GP_LAB_COMPUTED;
	row->verdict = noted ? GP_LAB_REFUTED : GP_LAB_AGREES;
}

static int queue_id_row(struct lab *lab, struct gp_lab_table *table, uint32_t processes, bool hash,
			const struct gp_lab_cell *before, struct gp_error *error)
{
	struct gp_lab_row *row =
		lab_add_row(table, "%u processes, %s", processes, hash ? "PID hash (v5)" : "first fit (v4)");
	struct lab_setup setup = lab->base;
	char key[24];

	(void)snprintf(key, sizeof(key), "%u %s", processes, hash ? "v5" : "v4");
	lab_data_cell(&lab->data, "queue-id", key, false, &row->measured);
	lab_data_cell(&lab->data, "queue-id", key, true, &row->expected);
	setup.process_count = processes;
	setup.queue_ids = hash ? LAB_IDS_PID_HASH : LAB_IDS_FIRST_FIT;
	if (lab_measure(lab, &setup, &row->predicted, NULL, error))
		return -1;
	if (before)
		row->verdict = lab_same(before, &row->predicted) ? GP_LAB_NO_EFFECT : GP_LAB_UNSCORED;
	return 0;
}

static int queue_id_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "First-fit ids against ids from the PID");
	static const uint32_t counts[] = { 2, 6 };

	for (uint32_t i = 0; i < 2u; i++) {
		if (queue_id_row(lab, table, counts[i], false, NULL, error))
			return -1;
		if (queue_id_row(lab, table, counts[i], true, &table->rows[table->row_count - 1u].predicted, error))
			return -1;
	}
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"The null result of v5 is the most valuable measurement of seed 002: it agrees. (99.75 for v5 in a later note is "
		"within the scatter of 2 processes, 72 to 99.75 over all notes.)");
	table = lab_add_table(part, "", "The arithmetic of v5");
	stack_hash_row(table, 3935030, "216–219", "344–347 (86 × 4), so the bitmap must be shared");
	stack_hash_row(table, 3935031, "220–223", "348–351 (87 × 4)");
	stack_hash_row(table, 3933841, "580–583", NULL);
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"The log matches the scheme exactly; only the note's division was wrong. No fallback, no shared bitmap, no "
		"residue of earlier runs is needed to explain it.");
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"Queue ids have no effect on throughput, because an id is an index into a bitmap of its own process "
		"(find_available_queue_slot() in kfd_process_queue_manager.c) and the firmware never sees it: MAP_QUEUES carries "
		"the doorbell's offset and the MQD's address (pm_map_queues_v9() in kfd_packet_manager_v9.c). Two processes with "
		"ids 0 to 3 share nothing. In the rig both schemes number the same queues, in the same runlist order, and every "
		"run is the same to the last digit.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"Two processes with the v4 and the v5 driver, ten runs each, alternating: means that differ by more than the "
		"scatter of either.");
	return 0;
}

const struct lab_experiment lab_queue_id = {
	.name = "queue-id",
	.title = "Queue ids that differ between processes",
	.question = "Seed 002 gave each process its own queue ids (v5). Why did that change nothing?",
	.keys = LAB_KEYS_RIG & ~(LAB_KEY(QUEUE_IDS)),
	.runs = 4,
	.run = queue_id_run,
};

static int doorbell_row(struct lab *lab, struct gp_lab_table *table, const char *label, enum lab_doorbells doorbells,
			enum lab_queue_ids ids, struct gp_error *error)
{
	struct gp_lab_row *row = lab_add_row(table, "%s", label);
	struct lab_setup setup = lab->base;
	struct lab_rates last;

	setup.doorbells = doorbells;
	setup.queue_ids = ids;
	if (lab_measure(lab, &setup, &row->predicted, &last, error))
		return -1;
	if (last.lost)
		(void)snprintf(
			row->note, sizeof(row->note),
			"%u of %u processes ring another one's queues: the least served gets %" PRIu64 ".%" PRIu64
			" queries/s. A collision would stop a process, not cost it 10 to 15 queries/s.",
			last.lost, setup.process_count, last.slowest_milli / 1000u, last.slowest_milli % 1000u / 100u);
	else if (table->row_count > 1u)
		row->verdict =
			lab_same(&table->rows[0].predicted, &row->predicted) ? GP_LAB_NO_EFFECT : GP_LAB_UNSCORED;
	return 0;
}

static void doorbell_offsets(struct lab *lab, struct gp_lab_part *part)
{
	struct gp_lab_table *table = lab_add_table(part, "", "Where the doorbells are");
	struct lab_setup setup = lab->base;

	for (uint32_t process = 0; process < 3u; process++) {
		struct lab_queue_key key = lab_stack_key(&setup, process, 0);
		struct gp_lab_row *row = lab_add_row(table, "process %u, first queue", process + 1u);

		lab_set_text(&row->measured, process == 0 ? "0x1800 in its slice" : "0x1000 in its slice");
		lab_set_text(&row->expected, process == 2 ? "overlaps process 2" : "unique");
		lab_set_text(&row->predicted, "0x%x in its slice, 0x%" PRIx64 " in the BAR",
			     key.doorbell_id * LAB_DOORBELL_SIZE, key.offset);
		row->mark = GP_LAB_COMPUTED;
		row->verdict = process == 2 ? GP_LAB_REFUTED : GP_LAB_UNSCORED;
	}
	(void)snprintf(
		table->caption, sizeof(table->caption),
		"doorbell_offset_in_process counts from the start of an 8 KiB slice that is the process's own "
		"(kfd_doorbell_process_slice(); since 6.12 a buffer of its own). Equal offsets in two slices are 8 KiB apart. The "
		"ids of the debug driver differ from the stock one's; the slices do not.");
}

static int doorbell_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "Doorbells of two processes");

	if (doorbell_row(lab, table, "a slice each (the driver)", LAB_DOORBELL_SLICE, LAB_IDS_FIRST_FIT, error) ||
	    doorbell_row(lab, table, "a slice each, ids by PID", LAB_DOORBELL_SLICE, LAB_IDS_PID_HASH, error) ||
	    doorbell_row(lab, table, "one slice for all, ids by PID", LAB_DOORBELL_SHARED, LAB_IDS_PID_HASH, error) ||
	    doorbell_row(lab, table, "one slice for all (as feared)", LAB_DOORBELL_SHARED, LAB_IDS_FIRST_FIT, error))
		return -1;
	lab_data_cell(&lab->data, "doorbell", "isolated", true, &table->rows[1].expected);
	lab_data_cell(&lab->data, "fixes", "now", false, &table->rows[0].measured);
	table->rows[0].mark = lab_mark(lab, "qps", "2");
	if (table->rows[1].expected.has && table->rows[1].verdict == GP_LAB_NO_EFFECT)
		(void)snprintf(
			table->rows[1].note, sizeof(table->rows[1].note),
			"The 10 to 15 queries/s that seed 002 expects of isolated doorbells do not come: they are isolated.");
	doorbell_offsets(lab, part);
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"Doorbells of different processes never overlap, so isolating them changes nothing: each process has a slice of "
		"the BAR (kfd_doorbell.c), allocated disjoint, and the offsets that look equal are counted inside it. If two "
		"queues did share an offset, the command processor would know only one of them, and the other's process would "
		"stand still. Placing the slice by PID modulo, as proposed, would create the collision it is meant to cure.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"cat /sys/kernel/debug/kfd/mqds while two processes run: two MQDs with the same cp_hqd_pq_doorbell_control offset.");
	return 0;
}

const struct lab_experiment lab_doorbell = {
	.name = "doorbell",
	.title = "Doorbells that seem to overlap",
	.question =
		"Do processes with equal doorbell offsets ring each other's queues, and would isolation give 10 to 15 queries/s?",
	.keys = (LAB_KEYS_RIG & ~(LAB_KEY(QUEUE_IDS) | LAB_KEY(DOORBELLS))) | LAB_KEY(PROCESSES),
	.runs = 4,
	.run = doorbell_run,
};

static const char *const runlist_names[] = { "stock", "check removed", "queued", "as feared" };

/* What KFD's own state does when a second process comes, and when somebody maps without unmapping. */
static void runlist_states(struct gp_lab_part *part)
{
	struct gp_lab_table *table = lab_add_table(part, "", "What the flag does");

	for (uint32_t variant = LAB_RUNLIST_STOCK; variant <= LAB_RUNLIST_FEARED; variant++) {
		struct lab_setup setup = { .process_count = 2, .queue_count = 4, .runlist = (enum lab_runlist)variant };
		struct gp_lab_row *row = lab_add_row(table, "%s", runlist_names[variant]);
		struct lab_stack stack;
		int second;

		lab_stack_init(&stack, &setup);
		for (uint32_t process = 0; process < 2u; process++)
			for (uint32_t place = 0; place < 4u; place++)
				(void)lab_stack_create(&stack, process, place);
		second = lab_dqm_map(&stack.dqm);
		if (variant == LAB_RUNLIST_STOCK)
			lab_set_text(&row->expected, "the second process is skipped");
		if (variant == LAB_RUNLIST_REMOVED)
			lab_set_text(&row->expected, "runlists run side by side");
		lab_set_text(&row->predicted, "%u of %u queues mapped; map without unmap: %s", stack.dqm.mapped_count,
			     stack.dqm.queue_count,
			     second == -EINVAL  ? "refused (-EINVAL)" :
			     stack.dqm.deferred ? "deferred" :
						  "nothing to do");
		row->mark = GP_LAB_COMPUTED;
		if (row->expected.has)
			row->verdict = GP_LAB_REFUTED;
	}
}

static int active_runlist_run(struct lab *lab, struct gp_lab_part *part, struct gp_error *error)
{
	struct gp_lab_table *table = lab_add_table(part, "queries/s", "Two processes, the check in map_queues_cpsch()");

	for (uint32_t variant = LAB_RUNLIST_STOCK; variant <= LAB_RUNLIST_FEARED; variant++) {
		struct gp_lab_row *row = lab_add_row(table, "%s", runlist_names[variant]);
		struct lab_setup setup = lab->base;
		struct lab_rates last;

		setup.runlist = (enum lab_runlist)variant;
		if (lab_measure(lab, &setup, &row->predicted, &last, error))
			return -1;
		if (variant && !last.unmapped && lab_same(&table->rows[0].predicted, &row->predicted))
			row->verdict = GP_LAB_NO_EFFECT;
		if (last.unmapped)
			(void)snprintf(
				row->note, sizeof(row->note),
				"%u queues never mapped: their processes would get nothing at all, for ever. Both processes of "
				"seed 002 made progress, so this is not what happens.",
				last.unmapped);
	}
	lab_data_cell(&lab->data, "fixes", "now", false, &table->rows[0].measured);
	table->rows[0].mark = lab_mark(lab, "qps", "2");
	lab_data_cell(&lab->data, "fixes", "active-runlist", true, &table->rows[1].expected);
	lab_set_text(&table->rows[1].measured, "\"no effect\" in a later note");
	(void)snprintf(
		table->rows[1].note, sizeof(table->rows[1].note),
		"A second runlist is refused by WARN_ON(pm->allocated) in pm_allocate_runlist_ib(); never remove the check.");
	runlist_states(part);
	(void)snprintf(
		part->answer, sizeof(part->answer),
		"active_runlist has no effect on throughput, because it says that a runlist is loaded, not that one process holds "
		"it: every change unmaps first (unmap_queues_cpsch() clears the flag) and then sends one list with the queues of "
		"all processes (pm_create_runlist_ib()). Nothing of it lies on the path of a dispatch, which is a doorbell. What is "
		"true and costly: every create, destroy or update of any queue stops all queues of the device for a moment.");
	(void)snprintf(
		part->falsify, sizeof(part->falsify),
		"trace-cmd record -p function -l map_queues_cpsch -l pm_send_runlist_v9 while two warm processes serve: calls in "
		"steady state, or a call with the flag set that skips somebody's queue.");
	return 0;
}

const struct lab_experiment lab_active_runlist = {
	.name = "active-runlist",
	.title = "The flag active_runlist",
	.question = "Does active_runlist serialise processes, and would removing the check give 20 to 30 queries/s?",
	.keys = (LAB_KEYS_RIG & ~LAB_KEY(RUNLIST)) | LAB_KEY(PROCESSES),
	.runs = 4,
	.run = active_runlist_run,
};
