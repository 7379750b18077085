/* SPDX-License-Identifier: MIT */
/* The daemon's check of messages, one field at a time: a good message passes, and the same with one field wrong does
 * not, though everything behind its end would be good as well. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <gpreempt/control.h>
#include <gpreempt/sched.h>
#include "daemon/message.h"

#define HEADER(of, kind)                                            \
	{                                                           \
		GP_WIRE_MAGIC, GP_WIRE_VERSION, kind, sizeof(of), 0 \
	}

static void expect_good(const void *message)
{
	const struct gp_wire_header *header = message;
	struct gp_error error = { .text = "" };

	if (gp_message_check(message, header->size, &error) != header->type)
		fail_msg("type %u was refused: %s", header->type, error.text);
}

static void expect_bad(const void *message)
{
	const struct gp_wire_header *header = message;
	struct gp_error error = { .text = "" };

	assert_int_equal(gp_message_check(message, header->size, &error), -EPROTO);
}

/* attr is within message. */
static void expect_attr_checked(const void *message, struct gp_wire_attr *attr)
{
	const struct gp_wire_attr good = { .valid = GP_ATTR_PRIORITY | GP_ATTR_WEIGHT | GP_ATTR_DEADLINE |
						    GP_ATTR_BUDGET | GP_ATTR_GANG,
					   .priority = GP_PRIORITY_MAX,
					   .weight = GP_WEIGHT_MAX,
					   .deadline_ns = GP_DURATION_NS_MAX,
					   .budget_ns = GP_DURATION_NS_MAX,
					   .gang = "gang" };
	struct gp_wire_attr bad[13];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		bad[i] = good;
	bad[0].valid |= 1u << 31;
	bad[1].share = 1;
	bad[2].priority = -1;
	bad[3].priority = GP_PRIORITY_MAX + 1;
	bad[4].weight = 0;
	bad[5].weight = GP_WEIGHT_MAX + 1;
	bad[6].deadline_ns = GP_DURATION_NS_MAX + 1;
	bad[7].budget_ns = GP_DURATION_NS_MAX + 1;
	memset(bad[8].gang, 'x', sizeof(bad[8].gang));
	bad[9].priority = INT32_MIN;
	bad[10].valid |= GP_ATTR_PROTECT;
	bad[10].protect = GP_PROTECT_THROUGHPUT + 1;
	bad[11].protect = 1;
	strcpy(bad[12].gang, "x\n[grant]\nceiling = 99");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*attr = bad[i];
		expect_bad(message);
	}
	*attr = good;
	expect_good(message);
	/* What is not said is not looked at. */
	*attr = (struct gp_wire_attr){ .priority = 1000, .weight = 0, .deadline_ns = UINT64_MAX };
	expect_good(message);
}

static void test_attributes(void **state)
{
	struct gp_wire_hello hello = { .header = HEADER(hello, GP_WIRE_HELLO), .version_min = 1, .version_max = 2 };
	struct gp_wire_queue queue = { .header = HEADER(queue, GP_WIRE_QUEUE_ADD) };
	struct gp_wire_attr_message attr = { .header = HEADER(attr, GP_WIRE_ATTR) };
	struct gp_control_request request = { .header = HEADER(request, GP_WIRE_CONTROL), .verb = GP_CONTROL_SET };

	(void)state;
	expect_attr_checked(&hello, &hello.attr);
	expect_attr_checked(&queue, &queue.attr);
	queue.header.type = GP_WIRE_QUEUE_CHANGE;
	expect_attr_checked(&queue, &queue.attr);
	expect_attr_checked(&attr, &attr.attr);
	expect_attr_checked(&request, &request.attr);
}

/* Shorter or longer than its type has, by a byte or by all of its body, with its own size in the header. */
static void test_sizes(void **state)
{
	static const struct {
		uint16_t type;
		uint32_t size;
	} types[] = {
		{ GP_WIRE_HELLO, sizeof(struct gp_wire_hello) },
		{ GP_WIRE_QUEUE_ADD, sizeof(struct gp_wire_queue) },
		{ GP_WIRE_QUEUE_CHANGE, sizeof(struct gp_wire_queue) },
		{ GP_WIRE_QUEUE_REMOVE, sizeof(struct gp_wire_slot) },
		{ GP_WIRE_APPLIED, sizeof(struct gp_wire_applied) },
		{ GP_WIRE_LOST, sizeof(struct gp_wire_lost) },
		{ GP_WIRE_SYNCED, sizeof(struct gp_wire_header) },
		{ GP_WIRE_RUNTIME, sizeof(struct gp_wire_runtime) },
		{ GP_WIRE_ATTR, sizeof(struct gp_wire_attr_message) },
		{ GP_WIRE_GROUP, sizeof(struct gp_wire_group) },
		{ GP_WIRE_SLICED, sizeof(struct gp_wire_slice) },
		{ GP_WIRE_CONTROL, sizeof(struct gp_control_request) },
	};
	static _Alignas(8) char bytes[1024];
	struct gp_wire_header *header = (void *)bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		*header = (struct gp_wire_header){ GP_WIRE_MAGIC, GP_WIRE_VERSION, types[i].type, types[i].size, 0 };
		if (types[i].type == GP_WIRE_LOST)
			((struct gp_wire_lost *)(void *)bytes)->why = GP_LOST_LEASE;
		expect_good(bytes);
		header->size = types[i].size + 1;
		expect_bad(bytes);
		header->size = types[i].size - 1;
		expect_bad(bytes);
		if (types[i].size > sizeof(*header)) {
			header->size = sizeof(*header);
			expect_bad(bytes);
		}
		memset(bytes, 0, sizeof(bytes));
	}
}

static void test_hello(void **state)
{
	const struct gp_wire_hello good = { .header = HEADER(good, GP_WIRE_HELLO),
					    .version_min = 1,
					    .version_max = 2,
					    .flags = GP_HELLO_DOORBELLS | GP_HELLO_RUNTIME | GP_HELLO_AGAIN };
	struct gp_wire_hello hello = good;

	(void)state;
	expect_good(&hello);
	hello.version_min = 3;
	expect_bad(&hello);
	hello = good;
	hello.reserved = 1;
	expect_bad(&hello);
	hello = good;
	hello.flags |= 1u << 31;
	expect_bad(&hello);
	hello = good;
	memset(hello.name, 'x', sizeof(hello.name));
	expect_bad(&hello);
	hello = good;
	memset(hello.runtime, 'x', sizeof(hello.runtime));
	expect_bad(&hello);
	hello = good;
	memset(hello.agent, 'x', sizeof(hello.agent));
	expect_bad(&hello);
}

static void test_queue(void **state)
{
	const struct gp_wire_queue good = { .header = HEADER(good, GP_WIRE_QUEUE_ADD),
					    .slot = GP_WIRE_QUEUE_MAX - 1,
					    .kind = GP_WIRE_COPY,
					    .hw_priority = 15,
					    .flags = GP_QUEUE_SEEN | GP_QUEUE_CLOSED | GP_QUEUE_GWS | GP_QUEUE_FETCH |
						     GP_QUEUE_BLIND };
	struct gp_wire_queue queue = good;
	struct gp_wire_slot gone = { .header = HEADER(gone, GP_WIRE_QUEUE_REMOVE), .slot = GP_WIRE_QUEUE_MAX - 1 };

	(void)state;
	expect_good(&queue);
	queue.slot = GP_WIRE_QUEUE_MAX;
	expect_bad(&queue);
	queue = good;
	queue.kind = GP_WIRE_COPY + 1;
	expect_bad(&queue);
	queue = good;
	queue.hw_priority = 16;
	expect_bad(&queue);
	queue = good;
	queue.flags |= 1u << 31;
	expect_bad(&queue);
	expect_good(&gone);
	gone.slot = GP_WIRE_QUEUE_MAX;
	expect_bad(&gone);
}

/* More changes than an order can have, all of them there. */
static void test_changes(void **state)
{
	static struct {
		struct gp_wire_applied head;
		struct gp_wire_change changes[GP_WIRE_ORDER_MAX + 1];
	} applied = { .head = { .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_APPLIED,
					    sizeof(applied) - sizeof(applied.changes[0]), 0 },
				.count = GP_WIRE_ORDER_MAX } };
	struct {
		struct gp_wire_lost head;
		struct gp_wire_change changes[1];
	} lost = { .head = { .header = HEADER(lost, GP_WIRE_LOST), .why = GP_LOST_DESTROY, .count = 1 } };

	(void)state;
	expect_good(&applied);
	applied.head.header.size = sizeof(applied);
	applied.head.count = GP_WIRE_ORDER_MAX + 1;
	expect_bad(&applied);
	expect_good(&lost);
	lost.head.why = GP_LOST_DESTROY + 1;
	expect_bad(&lost);
	lost.head.why = 0;
	expect_bad(&lost);
}

static void test_group(void **state)
{
	const struct gp_wire_group good = { .header = HEADER(good, GP_WIRE_GROUP),
					    .slot = GP_WIRE_QUEUE_MAX - 1,
					    .channel_count = GP_WIRE_CHANNEL_MAX };
	struct gp_wire_group group = good;
	const struct gp_wire_slice sliced = { .header = HEADER(sliced, GP_WIRE_SLICED),
					      .slot = GP_WIRE_QUEUE_MAX - 1,
					      .result = -EIO };
	struct gp_wire_slice slice = sliced;

	(void)state;
	expect_good(&group);
	group.slot = GP_WIRE_QUEUE_MAX;
	expect_bad(&group);
	group = good;
	group.fd = -1;
	expect_bad(&group);
	group = good;
	group.reserved = 1;
	expect_bad(&group);
	group = good;
	group.channel_count = GP_WIRE_CHANNEL_MAX + 1;
	expect_bad(&group);
	expect_good(&slice);
	slice.slot = GP_WIRE_QUEUE_MAX;
	expect_bad(&slice);
	slice = sliced;
	slice.result = 1;
	expect_bad(&slice);
	slice = sliced;
	slice.reserved = 1;
	expect_bad(&slice);
}

static void test_small(void **state)
{
	struct gp_wire_runtime runtime = { .header = HEADER(runtime, GP_WIRE_RUNTIME), .enable = 1 };
	struct gp_control_request request = { .header = HEADER(request, GP_WIRE_CONTROL),
					      .flags = GP_CONTROL_PAUSE_END };

	(void)state;
	expect_good(&runtime);
	runtime.enable = 2;
	expect_bad(&runtime);
	runtime.enable = 1;
	runtime.reserved = 1;
	expect_bad(&runtime);
	expect_good(&request);
	request.flags = 2;
	expect_bad(&request);
	request.flags = 0;
	request.reserved = 1;
	expect_bad(&request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attributes), cmocka_unit_test(test_sizes),   cmocka_unit_test(test_hello),
		cmocka_unit_test(test_queue),      cmocka_unit_test(test_changes), cmocka_unit_test(test_group),
		cmocka_unit_test(test_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
