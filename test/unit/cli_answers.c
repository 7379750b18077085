/* SPDX-License-Identifier: MIT */
/* What a command believes of a daemon that may be hostile, foreign or of another version: each packet with one thing
 * wrong is refused in words, an answer has an end, and who serves the socket is root or oneself. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "cli/control.h"
#include "cli/field.h"

#define COOKIE    77u
#define OTHER_UID 12345u

struct packet {
	struct gp_control_answer head;
	char text[32];
};

static struct gp_error error;
static bool refused;

static void good(struct packet *packet)
{
	memset(packet, 0, sizeof(*packet));
	packet->head.header = (struct gp_wire_header){ GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL, 0, COOKIE };
	snprintf(packet->text, sizeof(packet->text), "{}\n");
	packet->head.header.size = sizeof(packet->head) + 3u;
}

static int check(const struct packet *packet)
{
	struct gp_control_packet have = { packet, packet->head.header.size, COOKIE };
	const char *text;
	size_t size;

	return gp_control_check(&have, &text, &size, &refused, &error);
}

static void test_packets(void **state)
{
	struct packet packet;
	struct gp_control_packet shorter = { &packet, sizeof(packet.head), COOKIE };
	const char *text = NULL;
	size_t size = 0;

	(void)state;
	good(&packet);
	assert_int_equal(check(&packet), 0);
	packet.head.more = 1;
	assert_int_equal(check(&packet), 1);
	good(&packet);
	packet.head.header.magic++;
	assert_int_equal(check(&packet), -EPROTO);
	good(&packet);
	assert_int_equal(gp_control_check(&shorter, &text, &size, &refused, &error), -EPROTO); /* says another size */
	good(&packet);
	packet.head.header.version++;
	assert_int_equal(check(&packet), -EPROTONOSUPPORT);
	good(&packet);
	packet.head.header.type = GP_WIRE_SYNC;
	assert_int_equal(check(&packet), -EPROTO);
	good(&packet);
	packet.head.header.cookie++;
	assert_int_equal(check(&packet), -EPROTO);
	good(&packet);
	packet.head.header.size = sizeof(packet.head) - 4u;
	assert_int_equal(check(&packet), -EPROTO);
	assert_non_null(strstr(error.text, "20 bytes"));
	good(&packet);
	packet.head.header.size = 3;
	assert_int_equal(check(&packet), -EPROTO);
	good(&packet);
	packet.head.result = 1;
	assert_int_equal(check(&packet), -EPROTO);
	packet.head.result = -5000;
	assert_int_equal(check(&packet), -EPROTO);
	good(&packet);
	packet.text[1] = '\0';
	assert_int_equal(check(&packet), -EPROTO);
}

/* Its sentence is printed, and nothing in it moves a cursor. */
static void test_sentence(void **state)
{
	struct packet packet;

	(void)state;
	good(&packet);
	packet.head.result = -EPERM;
	snprintf(packet.text, sizeof(packet.text), "no\x1b[2J\n");
	packet.head.header.size = (uint32_t)(sizeof(packet.head) + strlen(packet.text));
	assert_int_equal(check(&packet), -EPERM);
	assert_true(refused);
	assert_string_equal(error.text, "no?[2J?");
}

static char folder[64], path[96];

static int serve(uid_t uid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(folder, sizeof(folder), "/tmp/cli-answers-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0777), 0);
	snprintf(path, sizeof(path), "%s/s", folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	/* The kernel notes who serves when that one begins to listen. */
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)) | listen(fd, 1), 0);
	assert_int_equal(seteuid(getuid()), 0);
	setenv(GP_WIRE_SOCKET_ENV, path, 1);
	return fd;
}

static void serve_end(int fd)
{
	close(fd);
	unlink(path);
	rmdir(folder);
}

static void test_who_serves(void **state)
{
	struct gp_control control;
	int fd;

	(void)state;
	fd = serve(getuid());
	assert_int_equal(gp_control_open(&control, &error), 0);
	gp_control_close(&control);
	serve_end(fd);
	if (getuid())
		skip();
	fd = serve(OTHER_UID);
	assert_int_equal(gp_control_open(&control, &error), -EPERM);
	assert_non_null(strstr(error.text, "served by uid 12345"));
	serve_end(fd);
}

__attribute__((noreturn)) static void answer_for_ever(int listener)
{
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	struct gp_control_answer *answer = (void *)buffer;
	struct gp_control_request request;
	int fd = accept(listener, NULL, NULL);

	alarm(60);
	if (recv(fd, &request, sizeof(request), 0) != sizeof(request))
		_exit(1);
	memset(buffer, ' ', sizeof(buffer));
	*answer = (struct gp_control_answer){ .header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_CONTROL,
							  sizeof(buffer), request.header.cookie },
					      .more = 1 };
	while (send(fd, buffer, sizeof(buffer), MSG_NOSIGNAL) > 0) {}
	_exit(0);
}

static void test_no_end(void **state)
{
	struct gp_control_request request = { .verb = GP_CONTROL_STATUS };
	int fd = serve(getuid());
	pid_t child = fork();
	char *text = NULL;
	size_t size;

	(void)state;
	if (!child)
		answer_for_ever(fd);
	setenv("GPREEMPT_WAIT", "20", 1); /* it is not the time that ends it */
	assert_int_equal(gp_control_once(&request, &text, &size, &refused, &error), -EFBIG);
	assert_int_equal(waitpid(child, NULL, 0), child);
	serve_end(fd);
}

/* Accepts one connection, says that it is refused, and ends it without a look at what came. */
static void turn_away(int listener)
{
	struct gp_wire_text refusal = { { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_REFUSED, sizeof(refusal), 0 },
					"too many connections" };
	int fd = accept(listener, NULL, NULL);

	assert_int_equal(send(fd, &refusal, sizeof(refusal), MSG_NOSIGNAL), sizeof(refusal));
	close(fd);
}

/* The daemon's sentence reaches the user though the daemon did not read the question, or was gone before it came. */
static void test_turned_away(void **state)
{
	struct gp_control_request request = { .verb = GP_CONTROL_STATUS };

	(void)state;
	for (int is_early = 0; is_early < 2; is_early++) {
		struct gp_control control;
		int fd = serve(getuid()), r;
		const char *text;
		size_t size;

		assert_int_equal(gp_control_open(&control, &error), 0);
		if (is_early)
			turn_away(fd);
		r = gp_control_send(&control, &request, &error);
		if (!is_early)
			turn_away(fd);
		if (!r)
			r = gp_control_next(&control, 20000, &text, &size, &error);
		assert_int_equal(r, -ECONNREFUSED);
		assert_true(control.refused);
		assert_string_equal(error.text, "too many connections");
		gp_control_close(&control);
		serve_end(fd);
	}
}

/* One that ends without a word is not said to have refused. */
static void test_hung_up(void **state)
{
	struct gp_control_request request = { .verb = GP_CONTROL_STATUS };
	int fd = serve(getuid());
	struct gp_control control;

	(void)state;
	assert_int_equal(gp_control_open(&control, &error), 0);
	close(accept(fd, NULL, NULL));
	assert_int_equal(gp_control_send(&control, &request, &error), -ECONNRESET);
	assert_false(control.refused);
	assert_string_equal(error.text, "the daemon hung up");
	gp_control_close(&control);
	serve_end(fd);
}

/* The members of one object of a list: nested ones are passed over, what is cut short is an error. */
static void test_members(void **state)
{
	static const char whole[] =
		"{\"a\":7,\"nested\":{\"a\":8,\"l\":[{}]},\"l\":[1,{\"a\":9}],\"long\\u001bkey\":\"x\"}";
	struct gp_json json;
	char key[6];

	(void)state;
	gp_json_init(&json, whole, sizeof(whole) - 1, "answer");
	assert_int_equal(gp_json_next(&json, &error), 0);
	assert_int_equal(gp_field_next(&json, key, sizeof(key), &error), 1);
	assert_string_equal(key, "a");
	assert_int_equal(json.u64, 7);
	assert_int_equal(gp_field_next(&json, key, sizeof(key), &error), 1);
	assert_memory_equal(key, "long", 4);
	assert_null(strchr(key, 033));
	assert_string_equal(json.string, "x");
	assert_int_equal(gp_field_next(&json, key, sizeof(key), &error), 0);
	assert_int_equal(json.type, GP_JSON_OBJECT_END);

	for (size_t size = 1; size < sizeof(whole) - 1; size++) {
		int r;

		gp_json_init(&json, whole, size, "answer");
		assert_int_equal(gp_json_next(&json, &error), 0);
		while ((r = gp_field_next(&json, key, sizeof(key), &error)) > 0) {}
		assert_true(r < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_packets),     cmocka_unit_test(test_sentence),
					    cmocka_unit_test(test_who_serves),  cmocka_unit_test(test_no_end),
					    cmocka_unit_test(test_turned_away), cmocka_unit_test(test_hung_up),
					    cmocka_unit_test(test_members) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
