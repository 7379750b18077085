/* SPDX-License-Identifier: MIT */
/* From a doorbell to an order, its answer, and what happens when the answer is wrong, late or missing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent urgent, batch, other;

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[policy]\nmin_open = 1us\nlinger_max = 1us\nage_window = 1h\n");
	agent_connect(&world, &urgent, 80);
	agent_connect(&world, &batch, 20);
	agent_add_queue(&world, &urgent, 0, GP_QUEUE_SEEN);
	agent_add_queue(&world, &batch, 0, GP_QUEUE_SEEN);
	return 0;
}

static int end(void **state)
{
	(void)state;
	agent_leave(&world, &urgent);
	agent_leave(&world, &batch);
	world_end(&world);
	return 0;
}

static void settle(void)
{
	for (int i = 0; i < 4; i++) {
		agent_work(&world, &batch);
		agent_work(&world, &urgent);
	}
}

/* Waits for the core's timers: linger, holds. Ends when the gate is as wanted; hanging is the failure. */
static void wait_gate(struct agent *agent, enum gp_gate gate)
{
	while (world_gate(&world, agent, 0) != gate) {
		world_wait(&world, 10);
		settle();
	}
}

static void wait_gate_of(struct agent *agent, enum gp_gate gate)
{
	while (world_gate(&world, agent, 0) != gate) {
		world_wait(&world, 10);
		settle();
		agent_work(&world, agent);
	}
}

/* Nobody looks at his counters any more. */
static void wait_for_no_looks(void)
{
	while (batch.sample_ns || urgent.sample_ns) {
		world_wait(&world, 10);
		settle();
	}
}

/* An urgent doorbell closes the batch gate; when the urgent work is done, it opens. */
static void test_preempts(void **state)
{
	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	assert_int_equal(batch.order_count, 0);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	assert_true(agent_is_closed(&batch, 0));
	assert_int_equal(urgent.order_count, 0);
	assert_int_equal(batch.page->queues[0].armed, GP_ARMED_IDLE);
	agent_complete(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_OPEN);
	assert_false(agent_is_closed(&batch, 0));
	assert_int_equal(world_queue(&world, &batch, 0)->closes, 1);
	assert_int_equal(world_queue(&world, &batch, 0)->opens, 1);
}

/* While somebody else has work both sample; when nobody has, neither does. */
static void test_samples_only_when_needed(void **state)
{
	(void)state;
	assert_int_equal(batch.sample_ns, 0);
	agent_doorbell(&world, &batch, 0, 100);
	settle();
	assert_int_equal(batch.sample_ns, 0);
	agent_doorbell(&world, &urgent, 0, 1);
	settle();
	assert_int_equal(batch.sample_ns, world.daemon.config.sample_ns);
	assert_int_equal(urgent.sample_ns, world.daemon.config.sample_ns);
	agent_complete(&world, &urgent, 0, 1);
	agent_complete(&world, &batch, 0, 100);
	wait_for_no_looks();
}

/* Another's unseen queue is looked at while one has work: so is he, or an end that nobody saw would keep both awake. */
static void test_samples_the_only_busy_one(void **state)
{
	(void)state;
	agent_add_queue(&world, &urgent, 1, 0);
	agent_doorbell(&world, &batch, 0, 1);
	settle();
	assert_int_equal(urgent.sample_ns, world.daemon.config.sample_ns);
	assert_int_equal(batch.sample_ns, world.daemon.config.idle_sample_ns);
	for (int i = 0; i < 50; i++) /* it looks seldom: that is no silence */
		world_wait(&world, 10);
	assert_false(world_queue(&world, &batch, 0)->client->watched);
	agent_complete(&world, &batch, 0, 1);
	wait_for_no_looks();
}

/* An unseen queue that was closed for somebody's sake is looked at while it stays closed, and opens when nobody has had
 * work for a while: then nobody wakes any more. */
static void test_samples_end_when_all_rest(void **state)
{
	(void)state;
	agent_add_queue(&world, &batch, 1, 0);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	assert_int_equal(world_gate(&world, &batch, 1), GP_GATE_CLOSED);
	agent_complete(&world, &urgent, 0, 1);
	for (int i = 0; i < 50; i++) {
		world_wait(&world, 10);
		settle();
	}
	assert_int_equal(batch.sample_ns, world.daemon.config.idle_sample_ns);
	wait_for_no_looks();
	assert_int_equal(world_gate(&world, &batch, 1), GP_GATE_OPEN);
	assert_int_equal(gp_sched_deadline_ns(world.daemon.sched), UINT64_MAX);
}

/* A closed gate with work has its lease renewed; without work it needs none. */
static void test_renews_leases(void **state)
{
	uint32_t before;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	before = batch.page->renewals;
	while (batch.page->renewals == before)
		world_wait(&world, 100);
	assert_int_equal(urgent.page->renewals, 0);
}

/* The agent opened a gate by itself: known, counted, ordered again. */
static void test_lost_lease(void **state)
{
	uint32_t orders;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	orders = batch.order_count;
	agent_lost(&batch, 0);
	settle();
	assert_int_equal(world.daemon.counters.leases_lost, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	assert_true(batch.order_count > orders);
}

/* An answer that comes twice, or for an order nobody gave, changes nothing. */
static void test_replayed_answers(void **state)
{
	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	agent_complete(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_OPEN);
	batch.changes[0].open = 0;
	agent_answer(&world, &batch);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_OPEN);
	batch.order.seq += 1000;
	agent_answer(&world, &batch);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_OPEN);
	batch.order.gpu_id = 999;
	agent_answer(&world, &batch);
	assert_false(world_is_closed(batch.fd));
}

/* A close that fails leaves the gate open and is tried again, not forever. */
static void test_failing_closes(void **state)
{
	(void)state;
	batch.fail = -EBUSY;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_QUARANTINED);
	assert_int_equal(world.daemon.counters.order_failures, 3);
	assert_false(world_queue(&world, &batch, 0)->closed);
}

static const struct gp_backend_ops *usual;
static bool refused_held;

static int refuse_once(struct gp_backend *backend, struct gp_device_client *client, uint64_t seq, uint32_t gpu_id,
		       const struct gp_device_change *changes, uint32_t count)
{
	(void)backend;
	(void)client;
	(void)seq;
	(void)gpu_id;
	assert_int_equal(count, 1);
	assert_false(changes->open);
	refused_held = batch.page->queues[changes->slot].held;
	world.daemon.drivers[0].ops = usual;
	return -EIO;
}

/* A backend that refuses a close at once: the gate is as it was, and the agent does not take it for held. */
static void test_refused_at_once(void **state)
{
	static struct gp_backend_ops refusing;

	(void)state;
	usual = world.daemon.drivers[0].ops;
	refusing = *usual;
	refusing.apply = refuse_once;
	world.daemon.drivers[0].ops = &refusing;
	world.daemon.devices[0].info.hands_over = true;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_QUARANTINED); /* such an error is the last */
	assert_true(refused_held);              /* its agent knew before it was tried */
	assert_int_equal(world.daemon.devices[0].order_failures, 1);
	assert_int_equal(batch.order_count, 0);
	assert_false(world_queue(&world, &batch, 0)->closed);
	assert_false(batch.page->queues[0].held);
}

/* A client that goes in the middle of a plan does not hold it up. */
static void test_leaves_amid_order(void **state)
{
	(void)state;
	agent_connect(&world, &other, 20);
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	other.silent = true;
	agent_doorbell(&world, &other, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	settle();
	agent_work(&world, &other);
	assert_true(world_queue(&world, &other, 0)->is_ordered);
	agent_leave(&world, &other);
	agent_doorbell(&world, &batch, 0, 100);
	agent_complete(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_OPEN);
}

/* One that does not answer has the turn: the next gets it long before that is given up, and an urgent one its way. */
static void test_silent_holds_nobody_up(void **state)
{
	(void)state;
	agent_connect(&world, &other, 20);
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	other.silent = true;
	agent_doorbell(&world, &other, 0, 100);
	settle();
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_OPENING);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_CLOSED);
	agent_doorbell(&world, &batch, 0, 100);
	wait_gate(&batch, GP_GATE_OPEN);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_OPENING);
	assert_true(world_queue(&world, &other, 0)->is_ordered);
	agent_leave(&world, &other);
}

/* Two close for an urgent one that opens with them; one of them does not answer. The open waits for that a little, and
 * not longer. */
static void test_opens_are_not_held_back(void **state)
{
	uint64_t began_ns;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	agent_connect(&world, &other, 90);
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &other, 0, 100);
	while (world_gate(&world, &urgent, 0) != GP_GATE_CLOSED) {
		world_wait(&world, 10);
		settle();
		agent_work(&world, &other);
	}
	other.silent = true; /* it becomes the least urgent, and is to close for urgent, which is to open */
	world_queue(&world, &other, 0)->set = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 10 };
	gp_queue_attr(&world.daemon, world_queue(&world, &other, 0));
	began_ns = gp_now_ns();
	wait_gate(&urgent, GP_GATE_OPEN);
	assert_true(gp_now_ns() - began_ns < world.daemon.config.answer_ns / 2);
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_CLOSING);
	agent_leave(&world, &other);
}

/* The core has given up one's close and orders it open, in a plan that closes another for urgent work. The daemon keeps
 * that open back until the close is answered. If the late answer to the given up close comes then, the open decides how
 * the gate is: it is ordered once, not twice. */
static void test_late_answer_before_a_kept_order(void **state)
{
	const struct gp_queue_entry *queue;
	uint32_t orders;

	(void)state;
	agent_connect(&world, &other, 20);
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	agent_doorbell(&world, &other, 0, 100);
	wait_gate_of(&other, GP_GATE_OPEN);
	other.silent = true;
	agent_doorbell(&world, &urgent, 0, 1);
	agent_work(&world, &other);
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_CLOSING);
	agent_complete(&world, &urgent, 0, 1);
	agent_doorbell(&world, &batch, 0, 100);
	wait_gate(&batch, GP_GATE_OPEN);
	while (world_gate(&world, &other, 0) != GP_GATE_UNKNOWN)
		world_wait(&world, 1);
	orders = other.order_count;
	/* The daemon sees this when the pause after a failed order is over. */
	urgent.page->queues[0].doorbell = urgent.page->queues[0].written = 2;
	agent_ring(&urgent);
	world_wait(&world, 10);
	queue = world_queue(&world, &other, 0);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_CLOSING);
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_OPENING);
	assert_true(queue->plan_seq > queue->order_seq); /* it is kept back */
	agent_answer(&world, &other);
	assert_true(queue->closed);
	settle();
	agent_work(&world, &other);
	assert_int_equal(other.order_count, orders + 1);
	assert_true(other.changes[0].open);
	agent_answer(&world, &other);
	assert_false(queue->closed);
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_OPEN);
	agent_leave(&world, &other);
}

static struct gp_device_leaving left; /* the last queue that went, as its backend was told */

static void note_left(struct gp_backend *backend, struct gp_device_client *client,
		      const struct gp_device_leaving *queue)
{
	(void)backend;
	(void)client;
	left = *queue;
}

/* The batch program destroys its queue. */
static void queue_goes(void)
{
	static struct gp_backend_ops noting;
	struct gp_wire_slot gone = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone),
						 0 },
				     .slot = 0,
				     .generation = 1 };

	usual = world.daemon.drivers[0].ops;
	noting = *usual;
	noting.queue_removed = note_left;
	world.daemon.drivers[0].ops = &noting;
	left = (struct gp_device_leaving){ .queue_id = UINT32_MAX };
	world_send(batch.fd, &gone, sizeof(gone));
	settle();
	world.daemon.drivers[0].ops = usual;
	assert_null(world_queue(&world, &batch, 0));
	assert_int_equal(left.gpu_id, WORLD_GPU);
}

/* A queue that goes while its order is under way. Its backend is told that the order may be carried out yet. */
static void test_queue_goes_amid_order(void **state)
{
	uint32_t queue_id = world_queue(&world, &batch, 0)->wire.queue_id;

	(void)state;
	batch.silent = true;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	settle();
	assert_true(world_queue(&world, &batch, 0)->is_ordered);
	queue_goes();
	assert_int_equal(world.daemon.devices[0].under_way.waiting, 0);
	assert_int_equal(left.queue_id, queue_id);
	assert_true(left.is_ordered && !left.is_closed);
	agent_answer(&world, &batch);
	assert_false(world_is_closed(batch.fd));
}

/* A queue that goes while its gate is closed, or open: its backend is told which. */
static void test_queue_goes_closed(void **state)
{
	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	queue_goes();
	assert_true(left.is_closed && !left.is_ordered);
}

static void test_queue_goes_open(void **state)
{
	(void)state;
	queue_goes();
	assert_false(left.is_closed || left.is_ordered);
}

/* An agent that is late with the answers to all orders that open its gate, until it is in quarantine. Its first answer
 * ends that; the last one says how the gate is. */
static void answer_late(void)
{
	struct gp_wire_order orders[8];
	struct gp_wire_change changes[8];
	uint32_t count = 0;

	batch.silent = true;
	batch.order_count = 0;
	while (world_gate(&world, &batch, 0) != GP_GATE_QUARANTINED) {
		world_wait(&world, 100);
		agent_work(&world, &batch);
		if (batch.order_count == count)
			continue;
		assert_int_equal(batch.order_count, count + 1);
		assert_true(count < 8 && batch.changes[0].open);
		orders[count] = batch.order;
		changes[count++] = batch.changes[0];
	}
	assert_true(count > 1);
	agent_complete(&world, &batch, 0, 100);
	for (uint32_t i = 0; i < count; i++) {
		batch.order = orders[i];
		batch.changes[0] = changes[i];
		agent_answer(&world, &batch);
	}
	assert_false(batch.shut[0]);
	batch.silent = false;
	for (int i = 0; i < 10; i++) { /* a stopped device's gate is ordered open once more */
		world_wait(&world, 10);
		agent_work(&world, &batch);
	}
	assert_false(world_queue(&world, &batch, 0)->closed);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_OPEN);
}

static void test_late_answers(void **state)
{
	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	batch.silent = true;
	agent_complete(&world, &urgent, 0, 1);
	answer_late();
}

/* The same where the GPU is stopped meanwhile. */
static void test_late_answers_of_a_stopped_device(void **state)
{
	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	gp_device_stop(&world.daemon, &world.daemon.devices[0], "a test");
	answer_late();
}

/* The configuration is read anew while a gate is being opened: the answer to the old core's order counts. */
static void test_answer_after_reload(void **state)
{
	struct gp_error error;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	batch.silent = true;
	agent_complete(&world, &urgent, 0, 1);
	while (world_gate(&world, &batch, 0) != GP_GATE_OPENING)
		world_wait(&world, 10);
	agent_work(&world, &batch);
	batch.page->queues[0].completed = 100;
	assert_int_equal(gp_device_build_core(&world.daemon, &error), 0);
	agent_answer(&world, &batch);
	assert_false(batch.shut[0]);
	assert_false(world_queue(&world, &batch, 0)->closed);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_OPEN);
}

/* A reload to policy none while a gate is closed: the new core opens it. */
static void test_reload_to_none(void **state)
{
	struct gp_error error;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	assert_true(batch.shut[0]);
	strcpy(world.daemon.config.policy, "none");
	assert_int_equal(gp_device_build_core(&world.daemon, &error), 0);
	for (int i = 0; i < 100 && batch.shut[0]; i++) {
		world_wait(&world, 10);
		agent_work(&world, &batch);
	}
	assert_false(batch.shut[0]);
	assert_int_equal(world_gate(&world, &batch, 0), GP_GATE_OPEN);
}

/* Reconnected with a closed gate to a GPU that is stopped: it is opened, as all others were. */
static void test_reconnect_to_a_stopped_device(void **state)
{
	(void)state;
	gp_device_stop(&world.daemon, &world.daemon.devices[0], "a test");
	settle();
	agent_connect(&world, &other, 50);
	other.shut[0] = true;
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN | GP_QUEUE_CLOSED);
	for (int i = 0; i < 10; i++) {
		world_wait(&world, 10);
		agent_work(&world, &other);
	}
	assert_false(other.shut[0]);
	assert_false(world_queue(&world, &other, 0)->closed);
	assert_int_equal(world_gate(&world, &other, 0), GP_GATE_OPEN);
	agent_leave(&world, &other);
}

/* Reconnected with a closed gate and nothing more urgent about: it is opened. */
static void test_reconnect_closed(void **state)
{
	(void)state;
	agent_connect(&world, &other, 50);
	agent_add_queue(&world, &other, 3, GP_QUEUE_SEEN | GP_QUEUE_CLOSED);
	assert_int_equal(world_gate(&world, &other, 3), GP_GATE_CLOSED);
	agent_doorbell(&world, &other, 3, 5);
	while (world_gate(&world, &other, 3) != GP_GATE_OPEN) {
		world_wait(&world, 10);
		settle();
		agent_work(&world, &other);
	}
	assert_false(agent_is_closed(&other, 3));
	agent_leave(&world, &other);
}

/* RUNTIME_DISABLE is answered, and its queues are not ordered any more. */
static void test_lets_go(void **state)
{
	struct gp_wire_runtime runtime = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_RUNTIME, sizeof(runtime), 9 },
	};

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	world_send(batch.fd, &runtime, sizeof(runtime));
	settle();
	assert_int_equal(batch.runtime_ok_count, 1);
	assert_int_equal(batch.mechanism, GP_MECHANISM_NONE);
	agent_doorbell(&world, &urgent, 0, 1);
	settle();
	assert_int_equal(batch.order_count, 0);
	runtime.enable = 1;
	world_send(batch.fd, &runtime, sizeof(runtime));
	settle();
	assert_int_equal(batch.mechanism, GP_MECHANISM_SELF);
	wait_gate(&batch, GP_GATE_CLOSED);
}

/* The same answer again: what orders cost is not learned from it. */
static void test_answers_again(void **state)
{
	struct gp_device_entry *device = &world.daemon.devices[0];
	uint32_t learned;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	learned = device->learned;
	assert_true(learned > 0);
	for (int i = 0; i < 10; i++)
		agent_answer(&world, &batch);
	assert_int_equal(device->learned, learned);
}

/* An agent that says that its orders take long: what they cost is what the daemon saw. */
static void test_claims_teach_nothing(void **state)
{
	struct gp_device_entry *device = &world.daemon.devices[0];

	(void)state;
	batch.claim_ns = 19000000;
	agent_doorbell(&world, &batch, 0, 100);
	for (uint64_t i = 1; gp_cost_user_count(device, false) == 0 || gp_cost_user_count(device, true) == 0; i++) {
		agent_doorbell(&world, &urgent, 0, i);
		wait_gate(&batch, GP_GATE_CLOSED);
		agent_complete(&world, &urgent, 0, i);
		wait_gate(&batch, GP_GATE_OPEN);
	}
	/* Of the daemon's time a wait takes 10 ms here. */
	assert_true(gp_hist_quantile(&device->close_hist, 1000) < 15000000);
	assert_true(gp_hist_quantile(&device->open_hist, 1000) < 15000000);
}

/* The lease is made longer while agents are there: to them it is as long as they were told. */
static void test_lease_of_before(void **state)
{
	uint32_t renewals;

	(void)state;
	agent_doorbell(&world, &batch, 0, 100);
	agent_doorbell(&world, &urgent, 0, 1);
	wait_gate(&batch, GP_GATE_CLOSED);
	world.daemon.config.lease_ns = 3600000000000ull;
	renewals = __atomic_load_n(&batch.page->renewals, __ATOMIC_RELAXED);
	for (int i = 0; i < 1000 && batch.page->renewals - renewals < 3; i++)
		world_wait(&world, 10);
	assert_true(batch.page->renewals - renewals >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_preempts, begin, end),
		cmocka_unit_test_setup_teardown(test_samples_only_when_needed, begin, end),
		cmocka_unit_test_setup_teardown(test_samples_the_only_busy_one, begin, end),
		cmocka_unit_test_setup_teardown(test_samples_end_when_all_rest, begin, end),
		cmocka_unit_test_setup_teardown(test_renews_leases, begin, end),
		cmocka_unit_test_setup_teardown(test_answers_again, begin, end),
		cmocka_unit_test_setup_teardown(test_claims_teach_nothing, begin, end),
		cmocka_unit_test_setup_teardown(test_lease_of_before, begin, end),
		cmocka_unit_test_setup_teardown(test_lost_lease, begin, end),
		cmocka_unit_test_setup_teardown(test_replayed_answers, begin, end),
		cmocka_unit_test_setup_teardown(test_failing_closes, begin, end),
		cmocka_unit_test_setup_teardown(test_refused_at_once, begin, end),
		cmocka_unit_test_setup_teardown(test_leaves_amid_order, begin, end),
		cmocka_unit_test_setup_teardown(test_silent_holds_nobody_up, begin, end),
		cmocka_unit_test_setup_teardown(test_opens_are_not_held_back, begin, end),
		cmocka_unit_test_setup_teardown(test_late_answer_before_a_kept_order, begin, end),
		cmocka_unit_test_setup_teardown(test_queue_goes_amid_order, begin, end),
		cmocka_unit_test_setup_teardown(test_queue_goes_closed, begin, end),
		cmocka_unit_test_setup_teardown(test_queue_goes_open, begin, end),
		cmocka_unit_test_setup_teardown(test_late_answers, begin, end),
		cmocka_unit_test_setup_teardown(test_late_answers_of_a_stopped_device, begin, end),
		cmocka_unit_test_setup_teardown(test_answer_after_reload, begin, end),
		cmocka_unit_test_setup_teardown(test_reload_to_none, begin, end),
		cmocka_unit_test_setup_teardown(test_reconnect_to_a_stopped_device, begin, end),
		cmocka_unit_test_setup_teardown(test_reconnect_closed, begin, end),
		cmocka_unit_test_setup_teardown(test_lets_go, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
