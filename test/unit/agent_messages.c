/* SPDX-License-Identifier: MIT */
/* A daemon that is hostile or of another version: each message with one thing wrong is refused, and refused means that
 * the link goes down and every gate opens. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "agent/fds.h"
#include "agent/sys.h"
#include "test/unit/agent_scene.h"

#define HEADER(of, kind)                                            \
	{                                                           \
		GP_WIRE_MAGIC, GP_WIRE_VERSION, kind, sizeof(of), 0 \
	}

static int tell(const void *message)
{
	return gp_link_message(message, ((const struct gp_wire_header *)message)->size, NULL, 0);
}

static void test_headers(void **state)
{
	const struct gp_wire_header good = HEADER(good, GP_WIRE_SYNC);
	struct gp_wire_header header = good;

	(void)state;
	assert_int_equal(tell(&good), -EPROTO); /* before WELCOME */
	scene_up();
	assert_int_equal(tell(&good), 0);
	header.magic++;
	assert_int_equal(tell(&header), -EPROTO);
	header = good;
	header.version = GP_WIRE_VERSION + 1;
	assert_int_equal(tell(&header), -EPROTO);
	header.version = 0;
	assert_int_equal(tell(&header), -EPROTO);
	header = good;
	header.size++;
	assert_int_equal(gp_link_message(&header, sizeof(header), NULL, 0), -EPROTO);
	header = good;
	header.type = GP_WIRE_SYNCED; /* our own */
	assert_int_equal(tell(&header), -EPROTO);
}

/* Longer or shorter than its type has, though what lies behind would be good. */
static void test_sizes(void **state)
{
	struct gp_wire_mechanism mechanism = { HEADER(mechanism, GP_WIRE_MECHANISM), GP_MECHANISM_SUBMIT, 0 };
	struct gp_wire_sample sample = { HEADER(sample, GP_WIRE_SAMPLE), 1000000 };
	struct gp_wire_attr_message attr = { .header = HEADER(attr, GP_WIRE_ATTR_NOW) };

	(void)state;
	scene_up();
	mechanism.header.size -= 4u;
	assert_int_equal(tell(&mechanism), -EPROTO);
	sample.header.size = sizeof(sample.header);
	assert_int_equal(tell(&sample), -EPROTO);
	attr.header.size -= 8u;
	assert_int_equal(tell(&attr), -EPROTO);
	assert_int_equal(gp_agent.mechanism, GP_MECHANISM_UPDATE);
	assert_int_equal(gp_agent.sample_ns, 0);
}

static void expect_no_welcome(const struct gp_wire_welcome *welcome, struct scene_files files, uint32_t count)
{
	assert_int_equal(gp_link_message(welcome, sizeof(*welcome), (int[]){ files.page, files.doorbell }, count),
			 -EPROTO);
	assert_int_equal(gp_agent.link, GP_LINK_GREETED);
	scene_close(files);
}

static void test_welcome(void **state)
{
	const struct gp_wire_welcome good = scene_welcome();
	struct gp_wire_welcome welcome = good;
	struct scene_files files;
	int pipes[2];

	(void)state;
	expect_no_welcome(&good, scene_files(), 1);
	welcome.version = GP_WIRE_VERSION + 1;
	expect_no_welcome(&welcome, scene_files(), 2);
	welcome = good;
	welcome.mechanism = GP_MECHANISM_LAST + 1;
	expect_no_welcome(&welcome, scene_files(), 2);
	welcome = good;
	welcome.lease_ms = 0;
	expect_no_welcome(&welcome, scene_files(), 2);
	welcome.lease_ms = 60001;
	expect_no_welcome(&welcome, scene_files(), 2);
	welcome = good;
	welcome.page_size += 64u;
	expect_no_welcome(&welcome, scene_files(), 2);
	/* A doorbell that would be a signal in the application. */
	files = scene_files();
	assert_int_equal(pipe(pipes), 0);
	close(pipes[0]);
	close(files.doorbell);
	files.doorbell = pipes[1];
	expect_no_welcome(&good, files, 2);
	scene_up();
	/* One that is full must not hold a thread of the application, whatever its maker said. */
	assert_true(fcntl(gp_fd(GP_FD_DOORBELL), F_GETFL) & O_NONBLOCK);
	files = scene_files();
	assert_int_equal(gp_link_message(&good, sizeof(good), (int[]){ files.page, files.doorbell }, 2), -EPROTO);
	scene_close(files);
}

/* A file that may shrink, is too short, or is no page of ours. */
static void test_page(void **state)
{
	const uint32_t heads[][4] = { { GP_PAGE_MAGIC + 1, GP_WIRE_VERSION, GP_WIRE_QUEUE_MAX, 0 },
				      { GP_PAGE_MAGIC, GP_WIRE_VERSION + 1, GP_WIRE_QUEUE_MAX, 0 },
				      { GP_PAGE_MAGIC, 0, GP_WIRE_QUEUE_MAX, 0 },
				      { GP_PAGE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_MAX - 1, 0 } };
	const uint32_t good[4] = { GP_PAGE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_MAX, 0 };
	const struct gp_wire_welcome welcome = scene_welcome();
	struct scene_files files;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		files = scene_files();
		assert_int_equal(pwrite(files.page, heads[i], sizeof(heads[i]), 0), sizeof(heads[i]));
		expect_no_welcome(&welcome, files, 2);
	}
	files = scene_files();
	close(files.page);
	files.page = memfd_create("page", MFD_CLOEXEC);
	assert_int_equal(ftruncate(files.page, sizeof(struct gp_page)), 0);
	assert_int_equal(pwrite(files.page, good, sizeof(good), 0), sizeof(good));
	expect_no_welcome(&welcome, files, 2);
	files = scene_files();
	close(files.page);
	files.page = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(files.page, sizeof(struct gp_page) - 1), 0);
	assert_int_equal(pwrite(files.page, good, sizeof(good), 0), sizeof(good));
	assert_int_equal(fcntl(files.page, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	expect_no_welcome(&welcome, files, 2);
}

static void test_ranges(void **state)
{
	struct gp_wire_mechanism mechanism = { HEADER(mechanism, GP_WIRE_MECHANISM), GP_MECHANISM_LAST + 1, 0 };
	struct gp_wire_sample sample = { HEADER(sample, GP_WIRE_SAMPLE), 3600000000001ull };
	struct gp_wire_attr_message attr = { .header = HEADER(attr, GP_WIRE_ATTR_NOW),
					     .attr = { .valid = GP_ATTR_PRIORITY, .priority = 99 } };

	(void)state;
	scene_up();
	assert_int_equal(tell(&mechanism), -EPROTO);
	assert_int_equal(tell(&sample), 0);
	assert_int_equal(gp_agent.sample_ns, 0); /* never */
	assert_int_equal(tell(&attr), 0);
	attr.attr.priority = 100;
	assert_int_equal(tell(&attr), -EPROTO);
	attr.attr.priority = -1;
	assert_int_equal(tell(&attr), -EPROTO);
	attr.attr.priority = 1;
	memset(attr.attr.gang, 'x', sizeof(attr.attr.gang));
	assert_int_equal(tell(&attr), -EPROTO);
	assert_int_equal(gp_agent.now.priority, 99);
}

/* More changes than an order may have, all of them there; and fewer than it says. */
static void test_counts(void **state)
{
	static struct {
		struct gp_wire_order head;
		struct gp_wire_change changes[GP_WIRE_ORDER_MAX + 1];
	} order = { .head = { .header = HEADER(order, GP_WIRE_ORDER),
			      .seq = 1,
			      .gpu_id = SCENE_GPU,
			      .count = GP_WIRE_ORDER_MAX + 1 } };

	(void)state;
	scene_up();
	for (uint32_t i = 0; i <= GP_WIRE_ORDER_MAX; i++)
		order.changes[i].generation = gp_slots[0].generation;
	assert_int_equal(tell(&order), -EPROTO);
	order.head.count = 2;
	order.head.header.size = sizeof(order.head) + sizeof(order.changes[0]);
	assert_int_equal(tell(&order), -EPROTO);
	assert_int_equal(scene_calls, 0);
	order.head.count = 1;
	assert_int_equal(tell(&order), 0);
	assert_true(scene_closed[0]);
}

/* An order that is not for a queue as it is now is answered, and nothing is done. */
static void test_orders(void **state)
{
	struct gp_wire_change close_it = { .slot = 0, .generation = gp_slots[0].generation };
	struct gp_wire_change change = close_it;

	(void)state;
	scene_up();
	change.slot = GP_WIRE_QUEUE_MAX;
	assert_int_equal(scene_order(1, &change, SCENE_GPU), -EINVAL);
	change = close_it;
	change.open = 2;
	assert_int_equal(scene_order(1, &change, SCENE_GPU), -EINVAL);
	change = close_it;
	change.generation++;
	assert_int_equal(scene_order(1, &change, SCENE_GPU), -ESTALE);
	change.generation = close_it.generation;
	change.slot = 9;
	assert_int_equal(scene_order(1, &change, SCENE_GPU), -ESTALE);
	assert_int_equal(scene_order(1, &close_it, SCENE_GPU + 1), -ESTALE);
	gp_slots[0].dying = true;
	assert_int_equal(scene_order(1, &close_it, SCENE_GPU), -ESTALE);
	gp_slots[0].dying = false;
	gp_agent.exiting = true;
	assert_int_equal(scene_order(1, &close_it, SCENE_GPU), -ESHUTDOWN);
	gp_agent.exiting = false;
	gp_agent.mechanism = GP_MECHANISM_DEBUGGER; /* the daemon's own */
	assert_int_equal(scene_order(1, &close_it, SCENE_GPU), -EOPNOTSUPP);
	gp_agent.mechanism = GP_MECHANISM_UPDATE;
	assert_int_equal(scene_calls, 0);
	assert_int_equal(scene_order(5, &close_it, SCENE_GPU), 0);
	assert_true(scene_closed[0]);
	/* An older one comes late. */
	change = close_it;
	change.open = 1;
	assert_int_equal(scene_order(4, &change, SCENE_GPU), -ESTALE);
	assert_true(scene_closed[0]);
	assert_int_equal(scene_order(5, &change, SCENE_GPU), 0);
	assert_false(scene_closed[0]);
}

static void test_slices(void **state)
{
	struct gp_wire_slice order = { .header = HEADER(order, GP_WIRE_SLICE),
				       .generation = gp_slots[0].generation + 1,
				       .slice_us = 500 };
	struct gp_wire_slice answer;

	(void)state;
	scene_up();
	assert_int_equal(tell(&order), 0);
	assert_true(scene_said(GP_WIRE_SLICED, &answer, sizeof(answer)));
	assert_int_equal(answer.result, -ESTALE);
	order.slot = GP_WIRE_QUEUE_MAX;
	assert_int_equal(tell(&order), 0);
	assert_true(scene_said(GP_WIRE_SLICED, &answer, sizeof(answer)));
	assert_int_equal(answer.result, -ESTALE);
	assert_int_equal(scene_slice_us, 0);
	order.slot = 0;
	order.generation--;
	assert_int_equal(tell(&order), 0);
	assert_int_equal(scene_slice_us, 500);
}

static void close_first(void)
{
	struct gp_wire_change change = { .slot = 0, .generation = gp_slots[0].generation };

	assert_int_equal(scene_order(1, &change, SCENE_GPU), 0);
	assert_true(scene_closed[0]);
}

/* A gate with work opens a lease after the last renewal, and not before; the daemon is told. */
static void test_leases(void **state)
{
	const uint64_t lease_ns = SCENE_LEASE * 1000000ull;
	uint64_t now_ns = gp_sys_now_ns();
	struct gp_wire_lost lost;

	(void)state;
	scene_up();
	close_first();
	gp_slots[0].has_work = true;
	gp_gate_leases(now_ns);
	for (int i = 0; i < 10; i++) {
		now_ns += lease_ns * 3 / 4;
		gp_page_now->renewals++;
		gp_gate_leases(now_ns);
		assert_true(scene_closed[0]);
	}
	gp_gate_leases(now_ns + lease_ns - 1);
	assert_true(scene_closed[0]);
	gp_gate_leases(now_ns + lease_ns);
	assert_false(scene_closed[0]);
	assert_true(scene_said(GP_WIRE_LOST, &lost, sizeof(lost)));
	assert_int_equal(lost.why, GP_LOST_LEASE);
	assert_int_equal(lost.count, 1);
}

/* However the link ends, gates open and what the mechanism holds is given back. */
static void test_down_opens(void **state)
{
	uint32_t releases;

	(void)state;
	scene_up();
	close_first();
	releases = scene_releases;
	shutdown(scene_peer, SHUT_RDWR);
	gp_link_receive();
	assert_int_equal(gp_agent.link, GP_LINK_DOWN);
	assert_false(scene_closed[0]);
	assert_int_equal(scene_releases, releases + 1);
}

static void test_other_means_open(void **state)
{
	struct gp_wire_mechanism mechanism = { HEADER(mechanism, GP_WIRE_MECHANISM), GP_MECHANISM_DEBUGGER, 0 };
	uint32_t releases;

	(void)state;
	scene_up();
	close_first();
	releases = scene_releases;
	assert_int_equal(tell(&mechanism), 0);
	assert_false(scene_closed[0]);
	assert_int_equal(scene_releases, releases + 1);
}

/* A daemon that does not read: what is not sent has a bound, and then it is given up. */
static void test_unread(void **state)
{
	static _Alignas(8) struct gp_wire_text text = { .header = HEADER(text, GP_WIRE_SYNCED) };

	(void)state;
	scene_up();
	close_first();
	for (int i = 0; i < 4000 && gp_agent.link == GP_LINK_UP; i++)
		gp_link_send(&text, sizeof(text));
	assert_int_equal(gp_agent.link, GP_LINK_DOWN);
	assert_false(scene_closed[0]);
}

/* exit() opens, and gives back what is held: nothing that the runtime still does waits for it. */
static void test_exit_opens(void **state)
{
	int pipes[2], status;
	char said[2] = "";
	pid_t child;

	(void)state;
	scene_up();
	close_first();
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		scene_report = pipes[1];
		gp_agent.pid = getpid();
		exit(0);
	}
	close(pipes[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(read(pipes[0], said, 2), 2);
	assert_memory_equal(said, "or", 2); /* opened, then released */
	close(pipes[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_headers, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_sizes, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_welcome, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_page, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_ranges, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_counts, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_orders, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_slices, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_leases, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_down_opens, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_other_means_open, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_unread, scene_begin, scene_end),
		cmocka_unit_test_setup_teardown(test_exit_opens, scene_begin, scene_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
