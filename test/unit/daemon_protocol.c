/* SPDX-License-Identifier: MIT */
/* Malformed, oversized, early and replayed messages end their own connection and nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent good, bad;

static int begin(void **state)
{
	(void)state;
	world_begin(&world, "[daemon]\nclients_max = 4\n");
	agent_connect(&world, &good, 50);
	agent_add_queue(&world, &good, 0, GP_QUEUE_SEEN);
	agent_connect(&world, &bad, 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_pair(&world, &good, &bad);
	return 0;
}

static void expect_refused(const void *message, size_t size)
{
	uint64_t before = world.daemon.counters.messages_refused;

	world_send(bad.fd, message, size);
	world_step(&world);
	assert_true(world_is_closed(bad.fd));
	assert_int_equal(world.daemon.counters.messages_refused, before + 1);
	agent_leave(&world, &bad);
	agent_connect(&world, &bad, 50);
}

static struct gp_wire_queue queue_message(uint16_t type)
{
	return (struct gp_wire_queue){ .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, type, sizeof(struct gp_wire_queue),
						   0 },
				       .generation = 1,
				       .gpu_id = WORLD_GPU };
}

static void test_headers(void **state)
{
	static char large[GP_WIRE_SIZE_MAX + 4096];
	struct gp_wire_header header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(header), 0 };
	struct gp_wire_header wrong;

	(void)state;
	expect_refused("x", 1);
	wrong = header;
	wrong.magic++;
	expect_refused(&wrong, sizeof(wrong));
	wrong = header;
	wrong.size++;
	expect_refused(&wrong, sizeof(wrong));
	wrong = header;
	wrong.version = 99;
	expect_refused(&wrong, sizeof(wrong));
	wrong = header;
	wrong.type = 31;
	expect_refused(&wrong, sizeof(wrong));
	wrong = header;
	wrong.type = GP_WIRE_ORDER; /* the daemon's own */
	expect_refused(&wrong, sizeof(wrong));
	memcpy(large, &header, sizeof(header));
	expect_refused(large, sizeof(large));
	/* Too short for what it says it is. */
	wrong = header;
	wrong.type = GP_WIRE_APPLIED;
	expect_refused(&wrong, sizeof(wrong));
	wrong.type = GP_WIRE_QUEUE_ADD;
	expect_refused(&wrong, sizeof(wrong));
}

static void test_counts(void **state)
{
	struct {
		struct gp_wire_applied head;
		struct gp_wire_change changes[2];
	} applied = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED, sizeof(applied), 0 },
				.gpu_id = WORLD_GPU,
				.count = 2 } };

	(void)state;
	applied.head.count = 3;
	expect_refused(&applied, sizeof(applied));
	applied.head.count = UINT32_MAX;
	expect_refused(&applied, sizeof(applied));
	applied.head.count = 2;
	applied.changes[1].slot = GP_WIRE_QUEUE_MAX;
	expect_refused(&applied, sizeof(applied));
	applied.changes[1].slot = 0;
	applied.changes[1].open = 2;
	expect_refused(&applied, sizeof(applied));
	applied.changes[1].open = 1;
	applied.changes[1].result = 5;
	expect_refused(&applied, sizeof(applied));
	applied.changes[1].result = 0;
	applied.head.issue_ns = 1;
	expect_refused(&applied, sizeof(applied));
}

/* All gates of a client may be lost at once. */
static void test_all_lost(void **state)
{
	static struct {
		struct gp_wire_lost head;
		struct gp_wire_change changes[GP_WIRE_QUEUE_MAX];
	} lost = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_LOST, sizeof(lost), 0 },
			     .why = GP_LOST_LEASE,
			     .count = GP_WIRE_QUEUE_MAX } };

	(void)state;
	world_send(bad.fd, &lost, sizeof(lost));
	world_step(&world);
	assert_false(world_is_closed(bad.fd));
}

static void test_queues(void **state)
{
	struct gp_wire_queue queue = queue_message(GP_WIRE_QUEUE_ADD);

	(void)state;
	queue.slot = GP_WIRE_QUEUE_MAX;
	expect_refused(&queue, sizeof(queue));
	queue = queue_message(GP_WIRE_QUEUE_ADD);
	queue.kind = 2;
	expect_refused(&queue, sizeof(queue));
	queue = queue_message(GP_WIRE_QUEUE_ADD);
	queue.hw_priority = 16;
	expect_refused(&queue, sizeof(queue));
	queue = queue_message(GP_WIRE_QUEUE_ADD);
	queue.attr.valid = GP_ATTR_PRIORITY;
	queue.attr.priority = 100;
	expect_refused(&queue, sizeof(queue));
	queue = queue_message(GP_WIRE_QUEUE_ADD);
	memset(queue.attr.gang, 'x', sizeof(queue.attr.gang));
	expect_refused(&queue, sizeof(queue));
	queue = queue_message(GP_WIRE_QUEUE_CHANGE); /* of a queue that is not there */
	expect_refused(&queue, sizeof(queue));
}

/* The same QUEUE_ADD twice, also after the queue is gone. */
static void test_replayed_queue(void **state)
{
	struct gp_wire_queue queue = queue_message(GP_WIRE_QUEUE_ADD);
	struct gp_wire_slot gone = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_REMOVE, sizeof(gone),
						 0 },
				     .generation = 1 };

	(void)state;
	world_send(bad.fd, &queue, sizeof(queue));
	expect_refused(&queue, sizeof(queue));
	world_send(bad.fd, &queue, sizeof(queue));
	world_send(bad.fd, &gone, sizeof(gone));
	world_step(&world);
	assert_false(world_is_closed(bad.fd));
	expect_refused(&queue, sizeof(queue));
	/* A GPU that is not ours is no offence: it is only not scheduled. */
	queue.gpu_id = 4711;
	world_send(bad.fd, &queue, sizeof(queue));
	world_step(&world);
	assert_false(world_is_closed(bad.fd));
}

static void test_hello(void **state)
{
	struct gp_wire_hello hello = world_hello(50);
	struct gp_wire_header early = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SYNCED, sizeof(early), 0 };
	struct gp_wire_text text;
	int fd;

	(void)state;
	expect_refused(&hello, sizeof(hello)); /* twice */
	memset(hello.name, 'x', sizeof(hello.name));
	agent_leave(&world, &bad);
	fd = world_connect(&world);
	world_send(fd, &hello, sizeof(hello));
	world_step(&world);
	assert_true(world_is_closed(fd));
	close(fd);
	fd = world_connect(&world);
	world_send(fd, &early, sizeof(early));
	world_step(&world);
	assert_true(world_is_closed(fd));
	close(fd);
	/* Another version is told so. */
	hello = world_hello(50);
	hello.version_min = hello.version_max = GP_WIRE_VERSION + 1;
	fd = world_connect(&world);
	world_send(fd, &hello, sizeof(hello));
	world_step(&world);
	assert_int_equal(world_receive(fd, &text, sizeof(text)), sizeof(text));
	assert_int_equal(text.header.type, GP_WIRE_REFUSED);
	assert_non_null(strstr(text.text, "version"));
	close(fd);
	world_step(&world);
	agent_connect(&world, &bad, 50);
}

/* One client too many is told so, and the next finds room when one has gone. */
static void test_limit(void **state)
{
	struct agent more[2];
	struct gp_wire_hello hello = world_hello(50);
	struct gp_wire_text text;
	int fd;

	(void)state;
	agent_connect(&world, &more[0], 50);
	agent_connect(&world, &more[1], 50);
	fd = world_connect(&world);
	world_send(fd, &hello, sizeof(hello));
	world_step(&world);
	assert_int_equal(world_receive(fd, &text, sizeof(text)), sizeof(text));
	assert_int_equal(text.header.type, GP_WIRE_REFUSED);
	close(fd);
	agent_leave(&world, &more[0]);
	agent_connect(&world, &more[0], 50);
	agent_leave(&world, &more[0]);
	agent_leave(&world, &more[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_headers, begin, end),
		cmocka_unit_test_setup_teardown(test_counts, begin, end),
		cmocka_unit_test_setup_teardown(test_all_lost, begin, end),
		cmocka_unit_test_setup_teardown(test_queues, begin, end),
		cmocka_unit_test_setup_teardown(test_replayed_queue, begin, end),
		cmocka_unit_test_setup_teardown(test_hello, begin, end),
		cmocka_unit_test_setup_teardown(test_limit, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
