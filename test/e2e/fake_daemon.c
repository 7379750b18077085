/* SPDX-License-Identifier: MIT */
/*
 * A daemon that says what a test wants to hear, well or badly behaved: fake_daemon SOCKET [NAME=VALUE...].
 *   mode=       good (default), hang, hangup, garbage, version, lies, huge, endless, zero, refused, error, cookie
 *   status=FILE events=FILE metrics=FILE    the text of those answers
 *   ceiling=N agents=N opened=0|1 queues=N  of PING and SUMMARY
 * It writes "ready", then one line per request, to standard output. A process per connection; ends with its parent's
 * SIGTERM.
 */
#include <errno.h>
#include <gpreempt/control.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FAKE_TEXT_SIZE (8u << 20)

static char fake_status[FAKE_TEXT_SIZE], fake_events[FAKE_TEXT_SIZE], fake_metrics[FAKE_TEXT_SIZE];
static const char *fake_mode = "good";
static int fake_ceiling = 80, fake_agents = 1, fake_opened = 1, fake_queues = 4;

static void fake_load(const char *path, char *text)
{
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		exit(1);
	}
	size = fread(text, 1, FAKE_TEXT_SIZE - 1, file);
	text[size] = '\0';
	fclose(file);
}

static void fake_option(const char *option)
{
	const char *value = strchr(option, '=');

	if (!value) {
		fprintf(stderr, "fake_daemon: what is '%s'?\n", option);
		exit(2);
	}
	value++;
	if (!strncmp(option, "mode=", 5))
		fake_mode = value;
	else if (!strncmp(option, "status=", 7))
		fake_load(value, fake_status);
	else if (!strncmp(option, "events=", 7))
		fake_load(value, fake_events);
	else if (!strncmp(option, "metrics=", 8))
		fake_load(value, fake_metrics);
	else if (!strncmp(option, "ceiling=", 8))
		fake_ceiling = atoi(value);
	else if (!strncmp(option, "agents=", 7))
		fake_agents = atoi(value);
	else if (!strncmp(option, "opened=", 7))
		fake_opened = atoi(value);
	else if (!strncmp(option, "queues=", 7))
		fake_queues = atoi(value);
	else
		exit(2);
}

struct fake_packet {
	struct gp_wire_header header;
	int32_t result;
	uint32_t more;
	char text[GP_WIRE_SIZE_MAX - 24];
};

static void fake_send(int fd, const struct gp_control_request *request, const char *text, size_t size, int result,
		      uint32_t more)
{
	static struct fake_packet packet;

	packet.header = request->header;
	packet.header.size = (uint32_t)(24 + size);
	packet.result = result;
	packet.more = more;
	memcpy(packet.text, text, size);
	if (!strcmp(fake_mode, "version"))
		packet.header.version = 7;
	if (!strcmp(fake_mode, "cookie"))
		packet.header.cookie++;
	if (!strcmp(fake_mode, "lies"))
		packet.header.size += 8;
	if (send(fd, &packet, 24 + size, MSG_NOSIGNAL) < 0)
		_exit(0);
}

/* In several packets, as a long answer comes. */
static void fake_text(int fd, const struct gp_control_request *request, const char *text)
{
	size_t left = strlen(text);

	do {
		size_t part = left < 30000 ? left : 30000;

		fake_send(fd, request, text, part, 0, part < left);
		text += part;
		left -= part;
	} while (left);
}

/* One line a packet; the rest of time is silence, as with a daemon that has nothing to tell. */
static void fake_stream(int fd, const struct gp_control_request *request)
{
	const char *line = fake_events, *end;

	for (; (end = strchr(line, '\n')); line = end + 1)
		fake_send(fd, request, line, (size_t)(end - line) + 1, 0, 1);
	if (request->flags & GP_CONTROL_EVENTS_PAST)
		fake_send(fd, request, "", 0, 0, 0);
	else if (!strcmp(fake_mode, "hangup-events"))
		_exit(0);
}

static void fake_bad(int fd, const struct gp_control_request *request)
{
	static char noise[GP_WIRE_SIZE_MAX];
	struct gp_wire_text refused = { .header = { GP_WIRE_MAGIC, 9, GP_WIRE_REFUSED, sizeof(refused), 0 } };

	memset(noise, 'x', sizeof(noise));
	if (!strcmp(fake_mode, "hangup"))
		_exit(0);
	if (!strcmp(fake_mode, "garbage"))
		(void)send(fd, noise, 100, MSG_NOSIGNAL);
	if (!strcmp(fake_mode, "short"))
		(void)send(fd, noise, 3, MSG_NOSIGNAL);
	if (!strcmp(fake_mode, "zero"))
		fake_send(fd, request, "{\0}", 3, 0, 0);
	if (!strcmp(fake_mode, "error"))
		fake_send(fd, request, "no\033]0;owned\a such\nclient", 24, -ESRCH, 0);
	if (!strcmp(fake_mode, "refused")) {
		(void)snprintf(refused.text, sizeof(refused.text), "this daemon is \033[31mtired");
		(void)send(fd, &refused, sizeof(refused), MSG_NOSIGNAL);
	}
	while (!strcmp(fake_mode, "endless"))
		fake_send(fd, request, noise, 30000, 0, 1);
	while (!strcmp(fake_mode, "hang"))
		pause();
}

static void fake_answer(int fd, const struct gp_control_request *request)
{
	char text[256];

	switch (request->verb) {
	case GP_CONTROL_STATUS: fake_text(fd, request, fake_status); break;
	case GP_CONTROL_EVENTS: fake_stream(fd, request); break;
	case GP_CONTROL_METRICS: fake_text(fd, request, fake_metrics); break;
	case GP_CONTROL_PING:
		(void)snprintf(text, sizeof(text),
			       "{\"schema\": 1, \"version\": \"0.1.0\", \"pid\": %d, \"ceiling\": %d}", getppid(),
			       fake_ceiling);
		fake_text(fd, request, text);
		break;
	case GP_CONTROL_SUMMARY:
		(void)snprintf(text, sizeof(text), "{\"agents\": %d, \"opened_gpu\": %s, \"queues\": %d}", fake_agents,
			       fake_opened ? "true" : "false", fake_queues);
		fake_text(fd, request, text);
		break;
	case GP_CONTROL_SET:
		if (request->attr.valid & GP_ATTR_PRIORITY && request->attr.priority > fake_ceiling) {
			(void)snprintf(text, sizeof(text), "your ceiling is %d", fake_ceiling);
			fake_send(fd, request, text, strlen(text), -EPERM, 0);
			break;
		}
		(void)snprintf(text, sizeof(text),
			       "{\"pid\": %d, \"name\": \"fake\", \"priority\": %d, \"weight\": %u, \"queues\": []}",
			       request->pid, request->attr.priority, request->attr.weight);
		fake_text(fd, request, text);
		break;
	default: fake_text(fd, request, "{}");
	}
}

static void fake_serve(int fd)
{
	struct gp_control_request request;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	while (recv(fd, &request, sizeof(request), 0) == (ssize_t)sizeof(request)) {
		char line[400];
		int length = snprintf(
			line, sizeof(line),
			"verb=%u flags=%u pid=%d gpu=%u queue=%u valid=%u priority=%d weight=%u deadline=%llu "
			"budget=%llu gang=%.*s\n",
			request.verb, request.flags, request.pid, request.gpu_id, request.queue_id, request.attr.valid,
			request.attr.priority, request.attr.weight, (unsigned long long)request.attr.deadline_ns,
			(unsigned long long)request.attr.budget_ns, (int)sizeof(request.attr.gang), request.attr.gang);

		if (write(STDOUT_FILENO, line, (size_t)length) < 0)
			_exit(1);
		if (strcmp(fake_mode, "good") != 0)
			fake_bad(fd, &request);
		if (!strcmp(fake_mode, "good") || !strcmp(fake_mode, "version") || !strcmp(fake_mode, "lies") ||
		    !strcmp(fake_mode, "cookie") || !strcmp(fake_mode, "hangup-events"))
			fake_answer(fd, &request);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener, fd;

	if (argc < 2 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	for (int i = 2; i < argc; i++)
		fake_option(argv[i]);
	memcpy(address.sun_path, argv[1], strlen(argv[1]) + 1);
	(void)unlink(argv[1]);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || chmod(argv[1], 0666) ||
	    listen(listener, 16)) {
		perror(argv[1]);
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	while ((fd = accept(listener, NULL, NULL)) >= 0 || errno == EINTR) {
		if (fd >= 0 && fork() == 0) {
			close(listener);
			fake_serve(fd);
		}
		if (fd >= 0)
			close(fd);
	}
	return 1;
}
