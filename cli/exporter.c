/* SPDX-License-Identifier: MIT */
/*
 * gpreempt-exporter: the daemon's metrics over HTTP, for Prometheus. It stands between a network and the daemon: it
 * asks the daemon one question, at most once a second however many ask it; it runs as nobody in particular, refuses to
 * be root, and has a limit on everything that a stranger can make it hold. One thread; every connection carries one
 * request. What it asks the daemon it waits for (GPREEMPT_WAIT), and so do those who asked.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cli/control.h"
#include "lib/clock.h"
#include "lib/http.h"
#include "lib/output.h"

#define EXPORTER_LISTEN      "127.0.0.1:9857"
#define EXPORTER_CONNECTIONS 32u        /* at once; one more ends the one that has been there longest */
#define EXPORTER_TEXT_MAX    (1u << 20) /* bytes: eight GPUs are 20 KB */
#define EXPORTER_PATIENCE_MS 5000       /* for a request, and again for taking the answer */
#define EXPORTER_AGE_MS      1000       /* what the daemon said is told again for so long */
#define EXPORTER_BACKLOG     64
#define EXPORTER_DRAIN_MS    1000  /* for the other side to take what was sent, and to close */
#define EXPORTER_DRAIN_MAX   65536 /* bytes: what else it sends meanwhile is thrown away */
#define EXPORTER_DEAF_MS     100   /* no descriptor or memory for a connection: then it is tried again */

/* clang-format off */
static const char exporter_help[] =
"Usage: gpreempt-exporter [--listen ADDRESS:PORT]\n"
"Serves the metrics of gpreemptd to Prometheus at http://ADDRESS:PORT/metrics.\n"
"\n"
"  -l, --listen ADDRESS:PORT   a number, [::]:9857 for all; default " EXPORTER_LISTEN "\n"
"\n"
"It refuses to run as root. Exit status: 0 ended by SIGTERM; 1 it cannot listen; 2 wrong usage.\n";

static const struct option exporter_options[] = {
	{ "listen", required_argument, NULL, 'l' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};
/* clang-format on */

struct connection {
	int fd; /* -1: free */
	uint64_t since_ms, until_ms;
	char request[GP_HTTP_REQUEST_MAX];
	size_t request_size;
	char *answer; /* NULL: the request is not whole yet */
	size_t answer_size, sent;
	bool is_answered; /* and waits for the other side to close */
	size_t drained;
};

struct exporter {
	int listen_fd;
	struct connection connections[EXPORTER_CONNECTIONS];
	char *text; /* of the daemon, as it was at text_ms */
	uint64_t text_ms;
	uint64_t requests, refused, asked;
	uint64_t deaf_until_ms; /* connections are not looked for */
};

static volatile sig_atomic_t exporter_stopped;

static void exporter_on_signal(int number)
{
	(void)number;
	exporter_stopped = 1;
}

static void connection_close(struct connection *connection)
{
	close(connection->fd);
	free(connection->answer);
	connection->fd = -1;
	connection->answer = NULL;
	connection->is_answered = false;
}

/* Before the other side has closed. Who has its answer was not refused. */
static void connection_end(struct exporter *exporter, struct connection *connection)
{
	exporter->refused += !connection->is_answered;
	connection_close(connection);
}

/* The daemon's text, not older than a second. Without a daemon: that there is none. */
static void exporter_ask(struct exporter *exporter, uint64_t now_ms)
{
	struct gp_control_request request = { .verb = GP_CONTROL_METRICS };
	bool is_refused = false;
	struct gp_error error;
	char *text = NULL;
	size_t size = 0;

	if (exporter->asked && now_ms - exporter->text_ms < EXPORTER_AGE_MS)
		return;
	exporter->asked++;
	free(exporter->text);
	exporter->text = NULL;
	if (!gp_control_once(&request, &text, &size, &is_refused, &error) && size <= EXPORTER_TEXT_MAX)
		exporter->text = text;
	else
		free(text);
	exporter->text_ms = gp_clock_ms();
}

static char *exporter_metrics(struct exporter *exporter)
{
	char *body = NULL;

	if (asprintf(&body,
		     "%s"
		     "# HELP gpreempt_up 1: the daemon answered.\n# TYPE gpreempt_up gauge\ngpreempt_up %d\n"
		     "# HELP gpreempt_exporter_requests_total HTTP requests that were whole.\n"
		     "# TYPE gpreempt_exporter_requests_total counter\n"
		     "gpreempt_exporter_requests_total %llu\n"
		     "# HELP gpreempt_exporter_refused_total Connections that were ended without an answer of ours.\n"
		     "# TYPE gpreempt_exporter_refused_total counter\n"
		     "gpreempt_exporter_refused_total %llu\n"
		     "# HELP gpreempt_exporter_questions_total Times that the daemon was asked.\n"
		     "# TYPE gpreempt_exporter_questions_total counter\n"
		     "gpreempt_exporter_questions_total %llu\n",
		     exporter->text ? exporter->text : "", !!exporter->text, (unsigned long long)exporter->requests,
		     (unsigned long long)exporter->refused, (unsigned long long)exporter->asked) < 0)
		return NULL;
	return body;
}

/* Makes the answer to a request, or to one that is refused. */
static void connection_answer(struct exporter *exporter, struct connection *connection, int status,
			      const struct gp_http_request *request, uint64_t now_ms)
{
	static const char root[] = "gpreempt-exporter: the metrics are at /metrics\n";
	const char *type = "text/plain; charset=utf-8";
	char *body = NULL, reason[64];
	int size;

	exporter->requests += status == 200;
	if (status == 200 && !strcmp(request->path, "/metrics")) {
		exporter_ask(exporter, now_ms);
		type = "text/plain; version=0.0.4; charset=utf-8";
		body = exporter_metrics(exporter);
		status = body ? 200 : 503;
	} else if (status == 200 && strcmp(request->path, "/") != 0) {
		status = 404;
	}
	(void)snprintf(reason, sizeof(reason), "%s\n", gp_http_reason(status));
	if (!body)
		body = strdup(status == 200 ? root : reason);
	size = body ? asprintf(&connection->answer,
			       "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sConnection: close\r\n"
			       "X-Content-Type-Options: nosniff\r\n\r\n%s",
			       status, gp_http_reason(status), type, strlen(body),
			       status == 405 ? "Allow: GET, HEAD\r\n" : "",
			       status == 200 && request->is_head ? "" : body) :
		      -1;
	free(body);
	if (size < 0) {
		connection->answer = NULL;
		connection_end(exporter, connection);
		return;
	}
	connection->answer_size = (size_t)size;
	connection->sent = 0;
	connection->until_ms = gp_clock_ms() + EXPORTER_PATIENCE_MS;
}

static void connection_read(struct exporter *exporter, struct connection *connection, uint64_t now_ms)
{
	struct gp_http_request request = { 0 };
	ssize_t got = recv(connection->fd, connection->request + connection->request_size,
			   sizeof(connection->request) - connection->request_size, 0);
	int status;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		connection_end(exporter, connection);
		return;
	}
	connection->request_size += (size_t)got;
	status = gp_http_parse(connection->request, connection->request_size, &request);
	if (status)
		connection_answer(exporter, connection, status, &request, now_ms);
}

static void connection_write(struct exporter *exporter, struct connection *connection)
{
	ssize_t put = send(connection->fd, connection->answer + connection->sent,
			   connection->answer_size - connection->sent, MSG_NOSIGNAL);

	if (put < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (put < 0) {
		connection_end(exporter, connection);
		return;
	}
	connection->sent += (size_t)put;
	if (connection->sent < connection->answer_size)
		return;
	/* What was sent beyond the request, unread, would make the end a reset, which the answer may not survive. */
	shutdown(connection->fd, SHUT_WR);
	connection->is_answered = true;
	connection->drained = 0;
	connection->until_ms = gp_clock_ms() + EXPORTER_DRAIN_MS;
}

static void connection_drain(struct exporter *exporter, struct connection *connection)
{
	char bytes[4096];
	ssize_t got = recv(connection->fd, bytes, sizeof(bytes), 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	connection->drained += got > 0 ? (size_t)got : 0;
	if (got <= 0 || connection->drained > EXPORTER_DRAIN_MAX)
		connection_end(exporter, connection);
}

/* Who goes first: one that has its answer, else who has been there longest. NULL: there is nobody. */
static struct connection *exporter_oldest(struct exporter *exporter)
{
	struct connection *oldest = NULL;

	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
		struct connection *connection = &exporter->connections[i];

		if (connection->fd >= 0 &&
		    (!oldest || connection->is_answered > oldest->is_answered ||
		     (connection->is_answered == oldest->is_answered && connection->since_ms < oldest->since_ms)))
			oldest = connection;
	}
	return oldest;
}

/* A place: a free one, else that of somebody who goes. */
static struct connection *exporter_place(struct exporter *exporter)
{
	struct connection *oldest;

	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++)
		if (exporter->connections[i].fd < 0)
			return &exporter->connections[i];
	oldest = exporter_oldest(exporter);
	connection_end(exporter, oldest);
	return oldest;
}

static void exporter_accept(struct exporter *exporter, uint64_t now_ms)
{
	int fd = accept4(exporter->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *connection;

	if (fd < 0) {
		/* There is no descriptor or no memory, of ours or of the machine's. Somebody goes; where that does not
		 * help, the connection waits, and we do not spin. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			exporter->deaf_until_ms = now_ms + EXPORTER_DEAF_MS;
			connection = exporter_oldest(exporter);
			if (connection)
				connection_end(exporter, connection);
		}
		return;
	}
	connection = exporter_place(exporter);
	connection->fd = fd;
	connection->since_ms = now_ms;
	connection->until_ms = now_ms + EXPORTER_PATIENCE_MS;
	connection->request_size = 0;
	/* Prometheus sends its request at once: mostly it is already there. */
	connection_read(exporter, connection, now_ms);
}

static void exporter_expire(struct exporter *exporter, uint64_t now_ms)
{
	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
		if (exporter->connections[i].fd < 0 || now_ms < exporter->connections[i].until_ms)
			continue;
		connection_end(exporter, &exporter->connections[i]);
	}
}

/* What is waited for. Only what is open: poll() takes no more entries than the process may open files. */
struct watched {
	struct pollfd fds[EXPORTER_CONNECTIONS + 1];
	struct connection *connections[EXPORTER_CONNECTIONS + 1]; /* NULL: new ones */
	uint32_t count;
};

static int exporter_wait(struct exporter *exporter, struct watched *watched, uint64_t now_ms)
{
	bool is_deaf = now_ms < exporter->deaf_until_ms;
	int wait_ms = is_deaf ? (int)(exporter->deaf_until_ms - now_ms) : -1;

	watched->count = 0;
	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
		struct connection *connection = &exporter->connections[i];
		bool is_writing = connection->answer && !connection->is_answered;
		int left_ms = connection->until_ms > now_ms ? (int)(connection->until_ms - now_ms) : 0;

		if (connection->fd < 0)
			continue;
		watched->connections[watched->count] = connection;
		watched->fds[watched->count++] =
			(struct pollfd){ .fd = connection->fd, .events = is_writing ? POLLOUT : POLLIN };
		if (wait_ms < 0 || left_ms < wait_ms)
			wait_ms = left_ms;
	}
	watched->connections[watched->count] = NULL;
	watched->fds[watched->count] = (struct pollfd){ .fd = exporter->listen_fd, .events = POLLIN };
	watched->count += !is_deaf;
	return poll(watched->fds, watched->count, wait_ms);
}

static void exporter_serve(struct exporter *exporter)
{
	struct watched watched;
	uint64_t now_ms;

	while (!exporter_stopped) {
		if (exporter_wait(exporter, &watched, gp_clock_ms()) < 0) {
			if (errno != EINTR)
				break;
			continue;
		}
		now_ms = gp_clock_ms();
		for (uint32_t i = 0; i < watched.count; i++) {
			struct connection *connection = watched.connections[i];

			if (!watched.fds[i].revents)
				continue;
			if (!connection) /* the last one: it may take the place of another */
				exporter_accept(exporter, now_ms);
			else if (connection->is_answered)
				connection_drain(exporter, connection);
			else if (connection->answer)
				connection_write(exporter, connection);
			else
				connection_read(exporter, connection, now_ms);
		}
		exporter_expire(exporter, now_ms);
	}
}

/* "ADDRESS:PORT" with numbers; an address of IPv6 in brackets. */
static int exporter_listen(const char *where)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM },
			*found = NULL;
	const char *colon = strrchr(where, ':');
	char host[64];
	int fd = -1, one = 1;

	if (colon && colon > where && (size_t)(colon - where) < sizeof(host)) {
		bool is_bracketed = *where == '[' && colon[-1] == ']';

		(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - where) - 2 * is_bracketed,
			       where + is_bracketed);
		/* getaddrinfo() takes the number of a port modulo 65536. */
		if (strlen(colon + 1) > 5 || strtoul(colon + 1, NULL, 10) > 65535 ||
		    getaddrinfo(host, colon + 1, &hints, &found))
			found = NULL;
	}
	if (!found) {
		fprintf(stderr,
			"gpreempt-exporter: '%s' is no ADDRESS:PORT of numbers, such as 127.0.0.1:9857 or [::]:9857\n",
			where);
		return -EINVAL;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, EXPORTER_BACKLOG)) {
		fprintf(stderr, "gpreempt-exporter: cannot listen on %s: %s\n", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -EIO;
	}
	freeaddrinfo(found);
	return fd;
}

static int exporter_parse(int argc, char **argv, const char **ret_where)
{
	int option;

	while ((option = getopt_long(argc, argv, "l:hV", exporter_options, NULL)) != -1) {
		switch (option) {
		case 'l': *ret_where = optarg; break;
		case 'h': fputs(exporter_help, stdout); return -1;
		case 'V': puts("gpreempt-exporter " GP_VERSION); return -1;
		default: fputs("gpreempt-exporter: see gpreempt-exporter --help\n", stderr); return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gpreempt-exporter: takes no argument '%s' (gpreempt-exporter --help)\n", argv[optind]);
		return GP_CLI_USAGE;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct exporter exporter;
	struct sigaction action = { .sa_handler = exporter_on_signal };
	const char *where = EXPORTER_LISTEN;
	int r = exporter_parse(argc, argv, &where);

	if (r)
		return r < 0 ? GP_CLI_OK : r;
	gp_output_reserve();
	if (!geteuid()) {
		fputs("gpreempt-exporter: does not run as root, because it listens on the network. The unit has a user of its own; "
		      "by hand: runuser -u nobody -- gpreempt-exporter\n",
		      stderr);
		return GP_CLI_FAILED;
	}
	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++)
		exporter.connections[i].fd = -1;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	exporter.listen_fd = exporter_listen(where);
	if (exporter.listen_fd < 0)
		return exporter.listen_fd == -EINVAL ? GP_CLI_USAGE : GP_CLI_FAILED;
	exporter_serve(&exporter);
	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++)
		if (exporter.connections[i].fd >= 0)
			connection_close(&exporter.connections[i]);
	close(exporter.listen_fd);
	free(exporter.text);
	return GP_CLI_OK;
}
