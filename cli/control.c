/* SPDX-License-Identifier: MIT */
/* Owns a command's connection to the daemon. The daemon may be absent, foreign, stuck, of another version or hostile:
 * each ends in a sentence within the time limit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/clean.h"
#include "cli/control.h"
#include "lib/clock.h"

#define CONTROL_USER       "gpreempt" /* whom packaging may let the daemon run as */
#define CONTROL_WAIT_ENV   "GPREEMPT_WAIT"
#define CONTROL_WAIT_MS    2000u
#define CONTROL_WAIT_S_MAX 3600u

/* In a user namespace of its own root outside has no number; the kernel then shows the overflow uid. */
static bool control_is_overflow(uid_t uid)
{
	unsigned int inside = 0, outside = 0, count = 0, overflow = 65534;
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");

	if (file) {
		if (fscanf(file, "%u", &overflow) != 1)
			overflow = 65534;
		fclose(file);
	}
	if (uid != overflow)
		return false;
	file = fopen("/proc/self/uid_map", "re");
	if (!file)
		return false;
	if (fscanf(file, "%u %u %u", &inside, &outside, &count) != 3)
		count = 0;
	fclose(file);
	return !(inside == 0 && outside == 0 && count == UINT32_MAX);
}

/* Who serves the socket could lie about everything; only root, its own user and ourselves are believed. */
static int control_check_peer(struct gp_control *control, struct gp_error *error)
{
	struct passwd entry, *found = NULL;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	char buffer[2048];

	if (getsockopt(control->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return gp_error_set(error, -EPERM, "%s: the owner of this socket cannot be determined: %s",
				    control->path, strerror(errno));
	control->daemon = peer.pid;
	if (peer.uid == 0 || peer.uid == geteuid() || control_is_overflow(peer.uid))
		return 0;
	if (!getpwnam_r(CONTROL_USER, &entry, buffer, sizeof(buffer), &found) && found && found->pw_uid == peer.uid)
		return 0;
	return gp_error_set(
		error, -EPERM,
		"%s is served by uid %u (pid %d), which is neither root nor you, so gpreempt does not ask that daemon. Set "
		"GPREEMPT_SOCKET to the socket of another one",
		control->path, (unsigned int)peer.uid, (int)peer.pid);
}

uint32_t gp_control_wait_ms(void)
{
	const char *text = getenv(CONTROL_WAIT_ENV);
	char *end = NULL;
	unsigned long seconds = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

	return seconds && seconds <= CONTROL_WAIT_S_MAX && !*end ? (uint32_t)seconds * 1000u : CONTROL_WAIT_MS;
}

/* connect() does not tell a socket without a daemon from what is no socket. */
static bool control_is_no_socket(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISSOCK(st.st_mode);
}

static int control_refuse_connect(const struct gp_control *control, int code, struct gp_error *error)
{
	switch (code) {
	case ENOENT:
	case ECONNREFUSED:
	case ENOTDIR:
		if (control_is_no_socket(control->path))
			return gp_error_set(
				error, -EPROTO,
				"%s is not a socket, so no daemon can serve it; remove it, or set GPREEMPT_SOCKET "
				"to the daemon's socket",
				control->path);
		if (strcmp(control->path, GP_WIRE_SOCKET))
			return gp_error_set(error, -ENOTCONN,
					    "no daemon runs (no answer at %s, the value of GPREEMPT_SOCKET); start it: "
					    "gpreemptd --socket %s",
					    control->path, control->path);
		return gp_error_set(error, -ENOTCONN,
				    "no daemon runs (no answer at %s); start it: systemctl start gpreemptd",
				    control->path);
	case EACCES:
	case EPERM:
		return gp_error_set(error, -EACCES,
				    "%s: permission denied: ask the administrator for the group of the socket "
				    "(socket_group in gpreempt.conf)",
				    control->path);
	case EPROTOTYPE:
		return gp_error_set(error, -EPROTO, "%s: this socket belongs to another program, not to gpreemptd",
				    control->path);
	case EAGAIN:
		return gp_error_set(error, -ETIMEDOUT,
				    "the daemon does not take connections (waited %u s at %s)" GP_CONTROL_LATE_ADVICE,
				    gp_control_wait_ms() / 1000u, control->path);
	default: return gp_error_set(error, -code, "%s: %s", control->path, strerror(code));
	}
}

int gp_control_open(struct gp_control *control, struct gp_error *error)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv(GP_WIRE_SOCKET_ENV);
	uint64_t deadline_ms = gp_clock_ms() + gp_control_wait_ms();
	int r;

	path = path && *path ? path : GP_WIRE_SOCKET;
	control->fd = -1;
	control->cookie = 0;
	control->refused = false;
	if (strlen(path) >= sizeof(control->path))
		return gp_error_set(error, -ENAMETOOLONG,
				    "GPREEMPT_SOCKET is longer than the %zu bytes of a socket's name",
				    sizeof(control->path) - 1);
	(void)snprintf(control->path, sizeof(control->path), "%s", path);
	memcpy(address.sun_path, control->path, sizeof(control->path));
	control->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->fd < 0)
		return gp_error_set(error, -errno, "no socket: %s", strerror(errno));
	/* A full backlog is EAGAIN at once; there is nothing to poll for. */
	while (connect(control->fd, (struct sockaddr *)&address, sizeof(address))) {
		if ((errno == EAGAIN || errno == EINTR) && gp_clock_ms() < deadline_ms) {
			(void)poll(NULL, 0, 10);
			continue;
		}
		r = control_refuse_connect(control, errno, error);
		gp_control_close(control);
		return r;
	}
	r = control_check_peer(control, error);
	if (r)
		gp_control_close(control);
	return r;
}

void gp_control_close(struct gp_control *control)
{
	if (control->fd >= 0)
		close(control->fd);
	control->fd = -1;
}

/* A sentence of the daemon's, made fit to print. */
static int control_said(const char *text, size_t size, int code, struct gp_error *error)
{
	char said[GP_WIRE_TEXT_SIZE];

	size = size < sizeof(said) - 1 ? size : sizeof(said) - 1;
	size = strnlen(text, size);
	memcpy(said, text, size);
	said[size] = '\0';
	gp_clean_line(said);
	return gp_error_set(error, code, "%s", said[0] ? said : strerror(-code));
}

int gp_control_check(const struct gp_control_packet *packet, const char **ret_text, size_t *ret_size, bool *ret_refused,
		     struct gp_error *error)
{
	struct gp_control_answer answer = { 0 };
	size_t size = packet->size;

	*ret_refused = false;
	if (size < sizeof(answer.header))
		return gp_error_set(error, -EPROTO, "the daemon's answer is invalid (%zu bytes)", size);
	memcpy(&answer, packet->bytes, size < sizeof(answer) ? size : sizeof(answer));
	if (answer.header.magic != GP_WIRE_MAGIC || answer.header.size != size)
		return gp_error_set(error, -EPROTO, "the program that answers is not gpreemptd (wrong first bytes)");
	if (answer.header.type == GP_WIRE_REFUSED && size == sizeof(struct gp_wire_text)) {
		*ret_refused = true;
		return control_said((const char *)packet->bytes + offsetof(struct gp_wire_text, text),
				    GP_WIRE_TEXT_SIZE, -ECONNREFUSED, error);
	}
	if (answer.header.version != GP_WIRE_VERSION)
		return gp_error_set(
			error, -EPROTONOSUPPORT,
			"the daemon speaks version %u of the protocol, this command version %u: restart the daemon, or use the command of its version",
			answer.header.version, GP_WIRE_VERSION);
	if (answer.header.type != GP_WIRE_CONTROL || size < sizeof(answer) || answer.header.cookie != packet->cookie)
		return gp_error_set(error, -EPROTO, "the daemon's answer is invalid (type %u, %zu bytes)",
				    answer.header.type, size);
	*ret_text = (const char *)packet->bytes + sizeof(answer);
	*ret_size = size - sizeof(answer);
	if (answer.result > 0 || answer.result < -4095)
		return gp_error_set(error, -EPROTO, "the daemon's answer is invalid (result %d)", answer.result);
	if (answer.result) {
		*ret_refused = true;
		return control_said(*ret_text, *ret_size, answer.result, error);
	}
	if (memchr(*ret_text, 0, *ret_size))
		return gp_error_set(error, -EPROTO, "the daemon's answer is invalid (a zero byte in the text)");
	return answer.more != 0;
}

/* One packet; -EAGAIN: none within the time, or a signal. */
static int control_receive(struct gp_control *control, int timeout_ms, size_t *ret_size, struct gp_error *error)
{
	struct pollfd wait = { .fd = control->fd, .events = POLLIN };
	ssize_t size;

	if (poll(&wait, 1, timeout_ms) <= 0)
		return -EAGAIN;
	size = recv(control->fd, control->packet, sizeof(control->packet), MSG_TRUNC);
	/* A daemon that turns us away leaves the question unread: the kernel reports that once, before its sentence. */
	if (size < 0 && errno == ECONNRESET)
		size = recv(control->fd, control->packet, sizeof(control->packet), MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (size <= 0)
		return gp_error_set(error, -ECONNRESET,
				    "the daemon hung up; gpreempt status shows whether it still runs");
	if ((size_t)size > sizeof(control->packet))
		return gp_error_set(error, -EPROTO, "the daemon's answer is invalid (a packet of %zd bytes)", size);
	*ret_size = (size_t)size;
	return 0;
}

int gp_control_next(struct gp_control *control, int timeout_ms, const char **ret_text, size_t *ret_size,
		    struct gp_error *error)
{
	struct gp_control_packet packet = { .bytes = control->packet, .cookie = control->cookie };
	int r = control_receive(control, timeout_ms, &packet.size, error);

	if (r)
		return r;
	return gp_control_check(&packet, ret_text, ret_size, &control->refused, error);
}

/* Perhaps with a sentence. */
static int control_hung_up(struct gp_control *control, struct gp_error *error)
{
	const char *text;
	size_t size;
	int r = gp_control_next(control, 0, &text, &size, error);

	return control->refused ? r : gp_error_set(error, -ECONNRESET, "the daemon hung up");
}

/* A message that begins with a header. */
static int control_put(struct gp_control *control, uint16_t type, void *message, size_t size, struct gp_error *error)
{
	struct pollfd wait = { .fd = control->fd, .events = POLLOUT };

	*(struct gp_wire_header *)message = (struct gp_wire_header){ .magic = GP_WIRE_MAGIC,
								     .version = GP_WIRE_VERSION,
								     .type = type,
								     .size = (uint32_t)size,
								     .cookie = ++control->cookie };
	control->deadline_ms = gp_clock_ms() + gp_control_wait_ms();
	control->refused = false;
	while (send(control->fd, message, size, MSG_NOSIGNAL) < 0) {
		uint64_t now_ms = gp_clock_ms();

		if (errno == EPIPE || errno == ECONNRESET)
			return control_hung_up(control, error);
		if (errno != EAGAIN && errno != EINTR)
			return gp_error_set(error, -errno, "the daemon could not be asked: %s", strerror(errno));
		if (now_ms >= control->deadline_ms)
			return gp_error_set(error, -ETIMEDOUT,
					    "the daemon takes no questions (waited %u s)" GP_CONTROL_LATE_ADVICE,
					    gp_control_wait_ms() / 1000u);
		(void)poll(&wait, 1, (int)(control->deadline_ms - now_ms));
	}
	return 0;
}

int gp_control_send(struct gp_control *control, struct gp_control_request *request, struct gp_error *error)
{
	return control_put(control, GP_WIRE_CONTROL, request, sizeof(*request), error);
}

/* r: of the question. */
static int control_collect(struct gp_control *control, int r, char **ret_text, size_t *ret_size, struct gp_error *error)
{
	size_t used = 0, room = 0;
	char *text = NULL, *grown;

	for (bool more = true; !r && more;) {
		uint64_t now_ms = gp_clock_ms();
		const char *part = NULL;
		size_t part_size = 0;

		r = now_ms < control->deadline_ms ?
			    gp_control_next(control, (int)(control->deadline_ms - now_ms), &part, &part_size, error) :
			    -EAGAIN;
		if (r == -EAGAIN && gp_clock_ms() >= control->deadline_ms)
			r = gp_error_set(error, -ETIMEDOUT,
					 "the daemon does not answer (waited %u s)" GP_CONTROL_LATE_ADVICE,
					 gp_control_wait_ms() / 1000u);
		if (r == -EAGAIN)
			r = 1;
		more = r == 1;
		r = r == 1 ? 0 : r;
		if (!r && used + part_size > GP_CONTROL_ANSWER_SIZE)
			r = gp_error_set(error, -EFBIG, "the daemon's answer does not end (%zu bytes so far)", used);
		if (!r && used + part_size + 1 > room) {
			room = (used + part_size + 1) * 2;
			grown = realloc(text, room);
			r = grown ? 0 : gp_error_set(error, -ENOMEM, "out of memory");
			text = grown ? grown : text;
		}
		if (!r && part_size && text)
			memcpy(text + used, part, part_size);
		used += r ? 0 : part_size;
	}
	if (r) {
		free(text);
		return r;
	}
	text[used] = '\0';
	*ret_text = text;
	*ret_size = used;
	return 0;
}

int gp_control_ask(struct gp_control *control, struct gp_control_request *request, char **ret_text, size_t *ret_size,
		   struct gp_error *error)
{
	return control_collect(control, gp_control_send(control, request, error), ret_text, ret_size, error);
}

int gp_control_grant(struct gp_control *control, struct gp_control_grant *grant, char **ret_text, size_t *ret_size,
		     struct gp_error *error)
{
	int r = control_put(control, GP_WIRE_GRANT, grant, sizeof(*grant), error);

	return control_collect(control, r, ret_text, ret_size, error);
}

int gp_control_once(struct gp_control_request *request, char **ret_text, size_t *ret_size, bool *ret_refused,
		    struct gp_error *error)
{
	struct gp_control control;
	int r = gp_control_open(&control, error);

	*ret_refused = false;
	if (r)
		return r;
	r = gp_control_ask(&control, request, ret_text, ret_size, error);
	*ret_refused = control.refused;
	gp_control_close(&control);
	return r;
}
