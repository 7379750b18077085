/* SPDX-License-Identifier: MIT */
/* Ids and refusals: a stale id is refused, never misread, and a refused call leaves every byte of the core as it was.
 */
#include "test/unit/core_world.h"

/* Runs the call and shows that the core's memory did not change. */
struct frozen {
	struct world *world;
	void *copy;
};

static struct frozen freeze(struct world *world)
{
	struct frozen frozen = { world, malloc(world->memory_size) };

	assert_non_null(frozen.copy);
	memcpy(frozen.copy, world->memory, world->memory_size);
	return frozen;
}

static void thaw_unchanged(struct frozen frozen)
{
	assert_memory_equal(frozen.copy, frozen.world->memory, frozen.world->memory_size);
	free(frozen.copy);
}

/* A removed queue's id is refused by every call, also after its place was used again. */
static void ids_of_removed_queues_are_stale(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ 0 });
	uint32_t client = world_client(w);
	uint32_t old = world_queue(w, client, device, 20), next;
	struct gp_queue_attr attr = { .priority = 1 };
	struct gp_queue_info info = { .run_ns = 77 };
	struct frozen frozen;

	world_settle(w);
	world_remove(w, old);
	next = world_queue(w, client, device, 20);
	assert_int_equal(w->queues[next].id.index, w->queues[old].id.index);
	assert_int_not_equal(w->queues[next].id.generation, w->queues[old].id.generation);
	frozen = freeze(w);
	assert_int_equal(gp_sched_sample(w->sched, w->queues[old].id, 1, 0, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_edge(w->sched, w->queues[old].id, true, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_hint(w->sched, w->queues[old].id, 1, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_gate_lost(w->sched, w->queues[old].id, false, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[old].id, &attr, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_queue_remove(w->sched, w->queues[old].id, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_queue_info(w->sched, w->queues[old].id, &info), -ESTALE);
	assert_int_equal(gp_sched_applied(w->sched, w->queues[old].id, 1, 0, w->now_ns + 1), -ESTALE);
	assert_int_equal(info.run_ns, 77); /* outputs are untouched on failure */
	thaw_unchanged(frozen);
	world_free(w);
}

/* The same for clients; and a client takes its queues with it. */
static void ids_of_removed_clients_are_stale(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ 0 });
	uint32_t queue = world_solo(w, device, 20);
	struct gp_client_attr client_attr = { .tag = 5 };
	struct gp_queue_attr attr = { .priority = 1 };
	struct gp_queue_id id = { 123, 456 };
	struct gp_client_id old = w->clients[0];
	struct frozen frozen;

	world_remove_client(w, 0);
	assert_int_equal(gp_sched_sample(w->sched, w->queues[queue].id, 1, 0, w->now_ns), -ESTALE);
	assert_int_equal(gp_sched_client_add(w->sched, &client_attr, &w->clients[0]), 0);
	assert_int_equal(w->clients[0].index, old.index);
	frozen = freeze(w);
	assert_int_equal(gp_sched_client_remove(w->sched, old, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_client_set_attr(w->sched, old, &client_attr), -ESTALE);
	assert_int_equal(gp_sched_queue_add(w->sched, old, device, &attr, w->now_ns + 1, &id), -ESTALE);
	assert_int_equal(id.index, 123);
	thaw_unchanged(frozen);
	world_free(w);
}

/* An id never given, an index beyond the table and the all-zero id name nobody. */
static void ids_out_of_range_are_stale(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ 0 });
	const struct gp_queue_id wrong[] = { { 0, 0 },
					     { UINT32_MAX, UINT32_MAX },
					     { 1, 1 },
					     { WORLD_QUEUE_MAX * 4, 1 } };
	struct frozen frozen;
	uint32_t i;

	world_solo(w, device, 20);
	frozen = freeze(w);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(gp_sched_sample(w->sched, wrong[i], 1, 0, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_client_remove(w->sched, (struct gp_client_id){ 0, 0 }, w->now_ns + 1), -ESTALE);
	assert_int_equal(gp_sched_client_remove(w->sched, (struct gp_client_id){ UINT32_MAX, 1 }, w->now_ns + 1),
			 -ESTALE);
	thaw_unchanged(frozen);
	world_free(w);
}

/* Attributes out of their ranges are refused. */
static void bad_queue_attributes_change_nothing(void **state)
{
	static const struct gp_queue_attr bad[] = {
		{ .priority = -1 },
		{ .priority = GP_PRIORITY_MAX + 1 },
		{ .weight = GP_WEIGHT_MAX + 1 },
		{ .deadline_ns = GP_DURATION_NS_MAX + 1 },
		{ .budget_ns = GP_DURATION_NS_MAX + 1 },
		{ .kind = (enum gp_kind)(GP_KIND_COPY + 1) },
	};
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ 0 });
	uint32_t queue = world_solo(w, device, 20);
	struct gp_queue_id id = { 123, 456 };
	struct gp_queue_attr other_gang = { .priority = 20, .gang = 3 },
			     other_kind = { .priority = 20, .kind = GP_KIND_COPY };
	struct frozen frozen = freeze(w);
	uint32_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(gp_sched_queue_add(w->sched, w->clients[0], device, &bad[i], w->now_ns + 1, &id),
				 -EINVAL);
		assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[queue].id, &bad[i], w->now_ns + 1),
				 -EINVAL);
	}
	assert_int_equal(
		gp_sched_queue_add(w->sched, w->clients[0], 1, &(struct gp_queue_attr){ 0 }, w->now_ns + 1, &id),
		-EINVAL);
	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[0], UINT32_MAX, &(struct gp_queue_attr){ 0 },
					    w->now_ns + 1, &id),
			 -EINVAL);
	/* Kind and gang are for life. */
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[queue].id, &other_gang, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[queue].id, &other_kind, w->now_ns + 1), -EINVAL);
	assert_int_equal(id.index, 123);
	thaw_unchanged(frozen);
	world_free(w);
}

/* Counters that run backwards, or complete what was never written, are refused; so is a hint beyond an hour. */
static void bad_events_change_nothing(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ 0 });
	uint32_t queue = world_solo(w, device, 20);
	struct frozen frozen;

	world_write(w, queue, 10);
	world_complete(w, queue, 5);
	frozen = freeze(w);
	assert_int_equal(gp_sched_sample(w->sched, w->queues[queue].id, 10, 11, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_sample(w->sched, w->queues[queue].id, 9, 5, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_sample(w->sched, w->queues[queue].id, 10, 4, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_hint(w->sched, w->queues[queue].id, GP_DURATION_NS_MAX + 1, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_device_stop(w->sched, 1, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_device_start(w->sched, 1, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_device_set_cost(w->sched, 1, 1, 1), -EINVAL);
	assert_int_equal(gp_sched_device_set_others(w->sched, 1, 1, 1, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_device_set_others(w->sched, device, GP_QUEUE_MAX + 1, 1, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_device_set_others(w->sched, device, 1, GP_CLIENT_MAX + 1, w->now_ns + 1), -EINVAL);
	assert_int_equal(gp_sched_device_set_cost(w->sched, device, GP_DURATION_NS_MAX + 1, 1), -EINVAL);
	thaw_unchanged(frozen);
	world_free(w);
}

/* A full table refuses: clients, queues of a device, gangs. The refused gang must not leave a half-made queue behind.
 */
static void full_tables_change_nothing(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .queue_max = 6 } });
	uint32_t client = world_client(w), i;
	struct gp_client_id client_id = { 9, 9 };
	struct gp_queue_id id = { 123, 456 };
	struct frozen frozen;

	while (w->client_count < WORLD_CLIENT_MAX)
		world_client(w);
	frozen = freeze(w);
	assert_int_equal(gp_sched_client_add(w->sched, &(struct gp_client_attr){ 0 }, &client_id), -ENOSPC);
	assert_int_equal(client_id.index, 9);
	thaw_unchanged(frozen);

	for (i = 0; i < 4; i++)
		world_queue_attr(w, client, device, (struct gp_queue_attr){ .priority = 10, .gang = i + 1 });
	world_settle(w);
	frozen = freeze(w);
	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[client], device,
					    &(struct gp_queue_attr){ .priority = 90, .gang = 5 }, w->now_ns + 1, &id),
			 -ENOSPC);
	thaw_unchanged(frozen);

	world_queue(w, client, device, 10);
	world_queue(w, client, device, 10);
	frozen = freeze(w);
	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[client], device,
					    &(struct gp_queue_attr){ .priority = 90 }, w->now_ns + 1, &id),
			 -ENOSPC);
	assert_int_equal(id.index, 123);
	thaw_unchanged(frozen);
	world_free(w);
}

/* edf's admission test refuses what would not fit, for new queues and for changed ones. */
static void refused_admission_changes_nothing(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .policy = "edf" });
	uint32_t client = world_client(w), queue;
	struct gp_queue_attr half = { .deadline_ns = 10 * MS, .budget_ns = 5 * MS };
	struct gp_queue_attr all = { .deadline_ns = 10 * MS, .budget_ns = 10 * MS };
	struct gp_queue_id id = { 123, 456 };
	struct frozen frozen;

	queue = world_queue_attr(w, client, device, half);
	frozen = freeze(w);
	assert_int_equal(gp_sched_queue_add(w->sched, w->clients[client], device, &half, w->now_ns + 1, &id), -EDQUOT);
	assert_int_equal(gp_sched_queue_set_attr(w->sched, w->queues[queue].id, &all, w->now_ns + 1), -EDQUOT);
	assert_int_equal(id.index, 123);
	thaw_unchanged(frozen);
	world_free(w);
}

/* Devices and memory: limits, alignment, policies and parameters out of range are refused. */
static void bad_setup_is_refused(void **state)
{
	static char memory[1 << 16] __attribute__((aligned(16)));
	const struct gp_limits good = { .device_count = 1, .client_count = 2, .queue_count = 4, .trace_count = 8 };
	const struct gp_device_attr attr = { .queue_max = 4 };
	struct gp_limits bad[6];
	struct gp_sched *sched = NULL;
	uint32_t device = 77, i;

	for (i = 0; i < 6; i++)
		bad[i] = good;
	bad[0].device_count = 0;
	bad[1].device_count = GP_DEVICE_MAX + 1;
	bad[2].client_count = 0;
	bad[3].queue_count = GP_QUEUE_MAX + 1;
	bad[4].trace_count = 12; /* not a power of two */
	bad[5].gang_count = GP_GANG_MAX + 1;
	for (i = 0; i < 6; i++) {
		assert_int_equal(gp_sched_size(&bad[i]), 0);
		assert_int_equal(gp_sched_init(memory, sizeof(memory), &bad[i], &sched), -EINVAL);
	}
	assert_true(gp_sched_size(&good) <= sizeof(memory));
	assert_int_equal(gp_sched_init(memory, gp_sched_size(&good) - 1, &good, &sched), -EINVAL);
	assert_int_equal(gp_sched_init(memory + 8, sizeof(memory) - 8, &good, &sched), -EINVAL);
	assert_null(sched);
	assert_int_equal(gp_sched_init(memory, sizeof(memory), &good, &sched), 0);

	assert_int_equal(gp_sched_device_add(sched, &attr, "best", &(struct gp_param){ 0 }, &device), -EINVAL);
	assert_int_equal(
		gp_sched_device_add(sched, &attr, "hpf", &(struct gp_param){ .overhead_permille = 1001 }, &device),
		-EINVAL);
	assert_int_equal(gp_sched_device_add(sched, &attr, "hpf",
					     &(struct gp_param){ .turn_ns = GP_DURATION_NS_MAX + 1 }, &device),
			 -EINVAL);
	assert_int_equal(gp_sched_device_add(sched, &(struct gp_device_attr){ .queue_max = 0 }, "hpf",
					     &(struct gp_param){ 0 }, &device),
			 -EINVAL);
	assert_int_equal(gp_sched_device_add(sched, &(struct gp_device_attr){ .queue_max = 5 }, "hpf",
					     &(struct gp_param){ 0 }, &device),
			 -ENOSPC);
	/* No place for a device, though there is one for its queues; and the other way round. */
	assert_int_equal(gp_sched_device_add(sched, &(struct gp_device_attr){ .queue_max = 2 }, "hpf",
					     &(struct gp_param){ 0 }, &device),
			 0);
	assert_int_equal(gp_sched_device_add(sched, &(struct gp_device_attr){ .queue_max = 2 }, "hpf",
					     &(struct gp_param){ 0 }, &device),
			 -ENOSPC);
	assert_int_equal(device, 0);
	assert_int_equal(gp_sched_starvation_bound_ns(sched, 1), 0);
}

/* Gangs need a table of gangs. */
static void gang_without_a_table_is_refused(void **state)
{
	static char memory[1 << 16] __attribute__((aligned(16)));
	const struct gp_limits limits = { .device_count = 1, .client_count = 1, .queue_count = 4, .trace_count = 8 };
	const struct gp_queue_attr attr = { .gang = 1 };
	struct gp_sched *sched;
	struct gp_client_id client;
	struct gp_queue_id queue;
	uint32_t device;

	assert_int_equal(gp_sched_init(memory, sizeof(memory), &limits, &sched), 0);
	assert_int_equal(gp_sched_device_add(sched, &(struct gp_device_attr){ .queue_max = 4 }, "hpf",
					     &(struct gp_param){ 0 }, &device),
			 0);
	assert_int_equal(gp_sched_client_add(sched, &(struct gp_client_attr){ 0 }, &client), 0);
	assert_int_equal(gp_sched_queue_add(sched, client, device, &attr, 1, &queue), -EINVAL);
}

/* The tables are used to the last place and every place comes back: fill, empty and fill again. */
static void every_place_comes_back(void **state)
{
	struct world *w = world_new();
	uint32_t device = world_device(w, (struct world_setup){ .attr = { .queue_max = 32 } });
	uint32_t round, i;

	for (round = 0; round < 3; round++) {
		w->client_count = w->queue_count = 0;
		for (i = 0; i < 32; i++)
			world_solo(w, device, (int32_t)i);
		world_settle(w);
		assert_int_equal(gp_sched_queue_add(w->sched, w->clients[0], device, &(struct gp_queue_attr){ 0 },
						    w->now_ns, &w->queues[32].id),
				 -ENOSPC);
		for (i = 0; i < 32; i++)
			world_remove_client(w, i);
		world_settle(w);
	}
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_removed_queues_are_stale),
		cmocka_unit_test(ids_of_removed_clients_are_stale),
		cmocka_unit_test(ids_out_of_range_are_stale),
		cmocka_unit_test(bad_queue_attributes_change_nothing),
		cmocka_unit_test(bad_events_change_nothing),
		cmocka_unit_test(full_tables_change_nothing),
		cmocka_unit_test(refused_admission_changes_nothing),
		cmocka_unit_test(bad_setup_is_refused),
		cmocka_unit_test(gang_without_a_table_is_refused),
		cmocka_unit_test(every_place_comes_back),
	};

	return cmocka_run_group_tests_name("core_ids", tests, NULL, NULL);
}
