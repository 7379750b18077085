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
#include <time.h>
#include <unistd.h>
#include "cli/control.h"
#include "lib/http.h"

#define EXPORTER_LISTEN      "127.0.0.1:9857"
#define EXPORTER_CONNECTIONS 32u        /* at once; one more ends the one that has been there longest */
#define EXPORTER_TEXT_MAX    (1u << 20) /* bytes: eight GPUs are 20 KB */
#define EXPORTER_PATIENCE_MS 5000       /* for a request, and again for taking the answer */
#define EXPORTER_AGE_MS      1000       /* what the daemon said is told again for so long */
#define EXPORTER_BACKLOG     64

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
};

struct exporter {
	int listen_fd;
	struct connection connections[EXPORTER_CONNECTIONS];
	char *text; /* of the daemon, as it was at text_ms */
	uint64_t text_ms;
	uint64_t requests, refused, asked;
};

static volatile sig_atomic_t exporter_stopped;

static void exporter_on_signal(int number)
{
	(void)number;
	exporter_stopped = 1;
}

static uint64_t exporter_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void connection_close(struct connection *connection)
{
	close(connection->fd);
	free(connection->answer);
	connection->fd = -1;
	connection->answer = NULL;
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
	exporter->text_ms = exporter_now_ms();
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
		exporter->refused++;
		connection_close(connection);
		return;
	}
	connection->answer_size = (size_t)size;
	connection->sent = 0;
	connection->until_ms = exporter_now_ms() + EXPORTER_PATIENCE_MS;
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
		exporter->refused++;
		connection_close(connection);
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
		exporter->refused++;
		connection_close(connection);
		return;
	}
	connection->sent += (size_t)put;
	if (connection->sent == connection->answer_size) {
		/* What was sent beyond the request would make the end a reset, which the answer may not survive. */
		shutdown(connection->fd, SHUT_WR);
		connection_close(connection);
	}
}

/* A place: a free one, else that of who has been there longest. */
static struct connection *exporter_place(struct exporter *exporter)
{
	struct connection *oldest = &exporter->connections[0];

	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
		if (exporter->connections[i].fd < 0)
			return &exporter->connections[i];
		if (exporter->connections[i].since_ms < oldest->since_ms)
			oldest = &exporter->connections[i];
	}
	exporter->refused++;
	connection_close(oldest);
	return oldest;
}

static void exporter_accept(struct exporter *exporter, uint64_t now_ms)
{
	int fd = accept4(exporter->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *connection;

	if (fd < 0) {
		/* Too many files are open: somebody must go, or this would be tried for ever. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			(void)exporter_place(exporter);
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
		exporter->refused++;
		connection_close(&exporter->connections[i]);
	}
}

static int exporter_wait(const struct exporter *exporter, struct pollfd *fds, uint64_t now_ms)
{
	int wait_ms = -1;

	fds[0] = (struct pollfd){ .fd = exporter->listen_fd, .events = POLLIN };
	for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
		const struct connection *connection = &exporter->connections[i];
		int left_ms = connection->until_ms > now_ms ? (int)(connection->until_ms - now_ms) : 0;

		fds[i + 1] = (struct pollfd){ .fd = connection->fd, .events = connection->answer ? POLLOUT : POLLIN };
		if (connection->fd >= 0 && (wait_ms < 0 || left_ms < wait_ms))
			wait_ms = left_ms;
	}
	return poll(fds, EXPORTER_CONNECTIONS + 1, wait_ms);
}

static void exporter_serve(struct exporter *exporter)
{
	struct pollfd fds[EXPORTER_CONNECTIONS + 1];
	uint64_t now_ms;

	while (!exporter_stopped) {
		if (exporter_wait(exporter, fds, exporter_now_ms()) < 0 && errno != EINTR)
			break;
		now_ms = exporter_now_ms();
		for (uint32_t i = 0; i < EXPORTER_CONNECTIONS; i++) {
			struct connection *connection = &exporter->connections[i];

			if (connection->fd < 0 || fds[i + 1].fd != connection->fd || !fds[i + 1].revents)
				continue;
			if (connection->answer)
				connection_write(exporter, connection);
			else
				connection_read(exporter, connection, now_ms);
		}
		if (fds[0].revents & POLLIN)
			exporter_accept(exporter, now_ms);
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
	if (!geteuid()) {
		fputs("gpreempt-exporter: refused to run as root: it listens to a network. The unit has a user of its own; "
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
