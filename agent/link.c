/* SPDX-License-Identifier: MIT */
/* The connection to the daemon: messages out, messages in. Nothing here waits. The agent does not trust what it
 * receives. Lock held. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "agent/agent.h"
#include "agent/fds.h"
#include "agent/file.h"
#include "agent/log.h"
#include "agent/sys.h"

#define LINK_OUTBOX_SIZE  (64u * 1024u) /* the agent disconnects from a daemon that leaves more unread */
#define LINK_RECEIVE_MAX  64u           /* messages per round, because the thread has other duties */
#define LINK_LEASE_MS_MAX 60000u

/* Which file a path names. ctime: a file system may give the number of a removed file to the next one. */
struct link_file {
	uint64_t device, number;
	int64_t changed_s, changed_ns;
};

static struct {
	struct link_file file; /* the socket's, as it was before the agent connected; number 0: not known */
	uint64_t cookie;       /* SO_COOKIE of the agent's socket: its descriptor number may be another file's by now */
	uint32_t used;
	_Alignas(8) uint8_t outbox[LINK_OUTBOX_SIZE]; /* size, message, size, message … */
} link_state;

/* 0 or -errno. */
static int link_cookie(int fd, uint64_t *ret_cookie)
{
	uint32_t size = sizeof(*ret_cookie);

	return (int)gp_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, (long)ret_cookie, (long)&size);
}

static int link_fd(void)
{
	int fd = gp_fd(GP_FD_SOCKET), r;
	uint64_t cookie = 0;

	if (fd < 0)
		return -1;
	r = link_cookie(fd, &cookie);
	/* If a filter forbids the question, the file's number must do. */
	if (r < 0 && r != -EBADF && r != -ENOTSOCK)
		return gp_fd_verified(GP_FD_SOCKET);
	return r >= 0 && cookie == link_state.cookie ? fd : -1;
}

void gp_link_down(const char *why)
{
	long spare;

	if (gp_agent.link == GP_LINK_DOWN)
		return;
	gp_log(why);
	gp_agent.link = GP_LINK_DOWN;
	gp_gates_open(0);
	if (gp_agent.driver)
		gp_agent.driver->release();
	if (link_fd() >= 0)
		gp_fd_drop(GP_FD_SOCKET);
	else
		gp_fd_forget(GP_FD_SOCKET); /* the agent's thread must not wait for it */
	/* The agent keeps the doorbell's number: an application thread may be about to write to it. */
	spare = gp_sys(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (spare >= 0)
		gp_fd_replace(GP_FD_DOORBELL, (int)spare);
	gp_page_unmap();
	gp_agent.arms_without_barrier = false;
	gp_fence_settle();
	gp_agent.mechanism = GP_MECHANISM_NONE;
	gp_agent.sample_ns = 0;
	gp_agent.order_count = 0;
	gp_agent.runtime_asked = false;
	link_state.used = 0;
	gp_share_unsent();
	for (uint32_t i = 0; i < gp_slot_limit(); i++) {
		struct gp_slot *slot = &gp_slots[i];

		slot->is_announced = slot->change_due = false;
		if (slot->used)
			gp_page_slot_init(slot);
	}
}

/* Sends the messages in the outbox, as far as possible. Returns whether it is empty. */
static bool link_drain(void)
{
	int fd = link_fd();
	uint32_t size;
	long r;

	while (link_state.used) {
		if (fd < 0) {
			gp_link_down("link: our socket is gone");
			return false;
		}
		memcpy(&size, link_state.outbox, sizeof(size));
		r = gp_sys(SYS_sendto, fd, (long)(link_state.outbox + 8), size, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
		if (r == -EAGAIN || r == -EINTR)
			return false;
		if (r < 0) {
			gp_link_down("link: the daemon is gone");
			return false;
		}
		size = 8u + (size + 7u) / 8u * 8u;
		link_state.used -= size;
		memmove(link_state.outbox, link_state.outbox + size, link_state.used);
	}
	return true;
}

int gp_link_send(const void *message, uint32_t size)
{
	uint32_t room = 8u + (size + 7u) / 8u * 8u;
	struct gp_wire_header header;

	if (gp_agent.link == GP_LINK_DOWN)
		return -ENOTCONN;
	if (room > LINK_OUTBOX_SIZE - link_state.used) {
		gp_link_down("link: the daemon does not read");
		return -ENOTCONN;
	}
	memcpy(link_state.outbox + link_state.used, &size, sizeof(size));
	memcpy(link_state.outbox + link_state.used + 8, message, size);
	/* Every message carries the version agreed with this daemon. */
	memcpy(&header, message, sizeof(header));
	header.version = gp_agent.link == GP_LINK_UP ? gp_agent.version : GP_WIRE_VERSION;
	memcpy(link_state.outbox + link_state.used + 8, &header, sizeof(header));
	link_state.used += room;
	link_drain();
	return gp_agent.link == GP_LINK_DOWN ? -ENOTCONN : 0;
}

bool gp_link_has_unsent(void)
{
	return link_state.used != 0;
}

static struct gp_wire_header link_header(uint32_t type, size_t size)
{
	return (struct gp_wire_header){ GP_WIRE_MAGIC, GP_WIRE_VERSION, (uint16_t)type, (uint32_t)size, 0 };
}

/* A daemon older than version 3 would end the connection at the new attributes. */
static void link_attr_old(struct gp_wire_attr *attr)
{
	attr->valid &= ~GP_ATTR_NEW;
	attr->share = attr->protect = 0;
}

static void link_hello(void)
{
	struct gp_wire_hello hello = {
		.header = link_header(GP_WIRE_HELLO, sizeof(hello)),
		.version_min = GP_WIRE_VERSION_MIN,
		.version_max = GP_WIRE_VERSION,
		.flags = (gp_agent.hooked ? GP_HELLO_DOORBELLS : 0) |
			 (gp_agent.runtime_enabled ? GP_HELLO_RUNTIME : 0) |
			 (gp_agent.greeted_before ? GP_HELLO_AGAIN : 0),
		.mechanisms = gp_agent.driver ? gp_agent.driver->mechanisms() : 0,
		.pid = gp_agent.pid,
		.attr = gp_agent.wanted,
		.agent = GP_VERSION,
	};
	long length = gp_sys_file_read("/proc/self/comm", hello.name, sizeof(hello.name));

	/* The agent does not know the daemon's version yet. */
	link_attr_old(&hello.attr);
	if (length > 0 && hello.name[length - 1] == '\n')
		hello.name[length - 1] = 0;
	memcpy(hello.runtime, gp_agent.runtime, sizeof(hello.runtime));
	gp_link_send(&hello, sizeof(hello));
}

/* The server of the socket can hold up the application's work: it must be root, the program's own user, or the owner of
 * the socket's folder. In /tmp, say, any user could have created the socket first. */
static bool link_is_trusted(int fd)
{
	char folder[sizeof(gp_agent.socket_path)];
	struct link_peer {
		int32_t pid;
		uint32_t uid, gid;
	} peer = { 0 };
	uint32_t size = sizeof(peer);
	struct stat st;
	char *slash;

	if (gp_sys(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, (long)&peer, (long)&size) < 0)
		return false;
	if (peer.uid == 0 || peer.uid == (uint32_t)gp_sys(SYS_geteuid, 0))
		return true;
	memcpy(folder, gp_agent.socket_path, sizeof(folder));
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder ? 1 : 0] = 0;
	if (gp_sys(SYS_newfstatat, AT_FDCWD, (long)(slash ? folder : "."), (long)&st, 0) == 0 && st.st_uid == peer.uid)
		return true;
	gp_log1("link: the socket is served by a user that is neither root nor the program's own", peer.uid);
	return false;
}

/* number 0: there is none, or it cannot be looked at. */
static struct link_file link_file_now(void)
{
	struct stat st;

	if (gp_sys(SYS_newfstatat, AT_FDCWD, (long)gp_agent.socket_path, (long)&st, 0) < 0)
		return (struct link_file){ 0 };
	return (struct link_file){ (uint64_t)st.st_dev, (uint64_t)st.st_ino, (int64_t)st.st_ctim.tv_sec,
				   (int64_t)st.st_ctim.tv_nsec };
}

bool gp_link_is_replaced(void)
{
	struct link_file now = link_file_now(), *then = &link_state.file;

	return now.number && then->number &&
	       (now.device != then->device || now.number != then->number || now.changed_s != then->changed_s ||
		now.changed_ns != then->changed_ns);
}

int gp_link_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	long fd, r;

	fd = gp_sys(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (int)fd;
	memcpy(address.sun_path, gp_agent.socket_path, sizeof(address.sun_path));
	/* Before it connects: if the file changes in between, the agent connects once more, and not never. */
	link_state.file = link_file_now();
	r = gp_sys(SYS_connect, fd, (long)&address, sizeof(address));
	if (r == 0 && !link_is_trusted((int)fd))
		r = -EPERM;
	if (r < 0)
		gp_sys_close((int)fd);
	else
		r = gp_fd_take(GP_FD_SOCKET, (int)fd);
	if (r < 0)
		return (int)r;
	link_state.cookie = 0;
	link_cookie(gp_fd(GP_FD_SOCKET), &link_state.cookie);
	link_state.used = 0;
	gp_agent.link = GP_LINK_GREETED;
	gp_log("link: connected");
	link_hello();
	return gp_agent.link == GP_LINK_DOWN ? -ENOTCONN : 0;
}

/* A queue's own attributes: from the API, else from its stream's priority, else none. */
static struct gp_wire_attr link_queue_attr(const struct gp_slot *slot)
{
	struct gp_wire_attr attr = slot->api;
	int32_t process = gp_agent.now.valid & GP_ATTR_PRIORITY ? gp_agent.now.priority : 50;
	int32_t priority;

	if (!(attr.valid & GP_ATTR_PRIORITY) && !slot->is_copy &&
	    gp_stream_priority(&gp_agent.map, slot->hw_priority, process, &priority)) {
		attr.valid |= GP_ATTR_PRIORITY;
		attr.priority = priority;
	}
	return attr;
}

static void link_queue(const struct gp_slot *slot, uint32_t type)
{
	struct gp_wire_queue message = {
		.header = link_header(type, sizeof(message)),
		.slot = gp_slot_index(slot),
		.generation = slot->generation,
		.kind = slot->is_copy ? GP_WIRE_COPY : GP_WIRE_COMPUTE,
		.flags = (slot->seen ? GP_QUEUE_SEEN : 0) | (slot->closed ? GP_QUEUE_CLOSED : 0) |
			 (slot->gws ? GP_QUEUE_GWS : 0) |
			 (slot->at_fetch && gp_agent.version >= 2u ? GP_QUEUE_FETCH : 0) |
			 (slot->blind && gp_agent.version >= 2u ? GP_QUEUE_BLIND : 0),
		.gpu_id = slot->gpu_id,
		.queue_id = slot->queue_id,
		.hw_priority = slot->hw_priority & 15u,
		.ring_size = slot->ring_size,
		.ring = slot->ring,
		.write_pointer = slot->write_pointer,
		.read_pointer = slot->read_pointer,
		.attr = link_queue_attr(slot),
	};

	gp_link_send(&message, sizeof(message));
}

static void link_group(struct gp_slot *slot)
{
	struct gp_wire_group message = { 0 };

	slot->group_due = false;
	if (gp_agent.version < 2u || !gp_agent.driver || !gp_agent.driver->describe)
		return;
	if (!gp_agent.driver->describe(slot, &message)) {
		slot->group_fd = gp_fd(slot->group_use);
		return;
	}
	slot->group_fd = message.fd;
	message.header = link_header(GP_WIRE_GROUP, sizeof(message));
	message.slot = gp_slot_index(slot);
	message.generation = slot->generation;
	gp_link_send(&message, sizeof(message));
}

void gp_link_remove(struct gp_slot *slot)
{
	struct gp_wire_slot message = { link_header(GP_WIRE_QUEUE_REMOVE, sizeof(message)), gp_slot_index(slot),
					slot->generation };

	if (!slot->is_announced || gp_agent.link != GP_LINK_UP)
		return;
	gp_link_send(&message, sizeof(message));
	slot->is_announced = false;
}

static void link_flush_slot(struct gp_slot *slot)
{
	if (slot->dying)
		return;
	if (!slot->is_announced || slot->change_due) {
		link_queue(slot, slot->is_announced ? GP_WIRE_QUEUE_CHANGE : GP_WIRE_QUEUE_ADD);
		if (gp_agent.link != GP_LINK_UP)
			return;
		slot->group_due |= !slot->is_announced;
		slot->is_announced = true;
		slot->change_due = false;
	}
	/* The agent's descriptor moves when the application wants its number: GROUP tells the daemon the new one. */
	if (slot->group_due || (slot->group_use && slot->group_fd != gp_fd(slot->group_use)))
		link_group(slot);
}

void gp_link_flush(void)
{
	if (gp_agent.link == GP_LINK_DOWN || !link_drain() || gp_agent.link != GP_LINK_UP)
		return;
	if (gp_agent.attr_due) {
		struct gp_wire_attr_message message = { link_header(GP_WIRE_ATTR, sizeof(message)), gp_agent.wanted };

		if (gp_agent.version < 3)
			link_attr_old(&message.attr);
		gp_agent.attr_due = false;
		gp_link_send(&message, sizeof(message));
	}
	gp_share_flush();
	for (uint32_t i = 0; i < gp_slot_limit() && gp_agent.link == GP_LINK_UP && !link_state.used; i++)
		if (gp_slots[i].used)
			link_flush_slot(&gp_slots[i]);
}

static int link_welcome(const struct gp_wire_welcome *welcome, const int *fds, uint32_t fd_count)
{
	char map[GP_WIRE_NAME_SIZE];
	int r;

	if (gp_agent.link != GP_LINK_GREETED || fd_count != 2u || welcome->version < GP_WIRE_VERSION_MIN ||
	    welcome->version > GP_WIRE_VERSION || welcome->mechanism > GP_MECHANISM_LAST || !welcome->lease_ms ||
	    welcome->lease_ms > LINK_LEASE_MS_MAX || welcome->page_size != sizeof(struct gp_page))
		return -EPROTO;
	/* Only an eventfd: a write to a pipe without a reader would raise SIGPIPE in the application. */
	if (!gp_fd_is_like(GP_FD_WAKE, fds[1]))
		return -EPROTO;
	r = gp_page_map(fds[0]);
	if (r < 0)
		return r;
	r = (int)gp_sys(SYS_fcntl, fds[1], F_DUPFD_CLOEXEC, 3);
	if (r < 0 || gp_fd_replace(GP_FD_DOORBELL, r) < 0)
		return -EMFILE;
	/* A full eventfd must not block an application thread, whatever flags the daemon gave it. */
	r = gp_fd(GP_FD_DOORBELL);
	gp_sys(SYS_fcntl, r, F_SETFL, gp_sys(SYS_fcntl, r, F_GETFL) | O_NONBLOCK);
	memcpy(map, welcome->stream_map, sizeof(map));
	map[sizeof(map) - 1u] = 0;
	if (!gp_agent.map_by_user && *map)
		gp_stream_map_parse(&gp_agent.map, map);
	gp_agent.version = (uint16_t)welcome->version;
	gp_agent.attr_due |= gp_agent.version >= 3 && gp_agent.wanted.valid & GP_ATTR_NEW;
	gp_agent.lease_ms = welcome->lease_ms;
	gp_agent.mechanism = welcome->mechanism;
	gp_agent.renewals = __atomic_load_n(&gp_page_now->renewals, __ATOMIC_ACQUIRE);
	gp_agent.renewed_ns = gp_sys_now_ns();
	gp_agent.greeted_before = true;
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		if (gp_slots[i].used)
			gp_page_slot_init(&gp_slots[i]);
	/* Before the daemon learns of a queue, which it would arm. */
	gp_agent.arms_without_barrier = __atomic_load_n(&gp_page_now->barriers, __ATOMIC_ACQUIRE) != 1u;
	gp_fence_settle();
	__atomic_store_n(&gp_agent.link, GP_LINK_UP, __ATOMIC_RELEASE);
	gp_log1("link: welcome, mechanism", welcome->mechanism);
	gp_sample_all();
	gp_link_flush();
	return 0;
}

static int link_attr_now(const struct gp_wire_attr_message *message)
{
	const struct gp_wire_attr *attr = &message->attr;

	if ((attr->valid & GP_ATTR_PRIORITY && (attr->priority < 0 || attr->priority > 99)) ||
	    attr->gang[GP_WIRE_NAME_SIZE - 1u])
		return -EPROTO;
	gp_agent.now = *attr;
	/* Queue priorities relative to the process's have changed. */
	for (uint32_t i = 0; i < gp_slot_limit(); i++)
		gp_slots[i].change_due |= gp_slots[i].used && gp_slots[i].is_announced &&
					  gp_stream_class_of(gp_slots[i].hw_priority) != GP_STREAM_NORMAL;
	return 0;
}

static int link_order(const struct gp_wire_order *order, uint32_t size)
{
	if (order->count > GP_WIRE_ORDER_MAX || size != sizeof(*order) + order->count * sizeof(struct gp_wire_change))
		return -EPROTO;
	gp_gate_order(order);
	return 0;
}

/* The agent answers every SLICE; an error if the queue no longer exists or the device has no slices. */
static int link_slice(const struct gp_wire_slice *order)
{
	struct gp_wire_slice answer = *order;
	struct gp_slot *slot = order->slot < GP_WIRE_QUEUE_MAX ? &gp_slots[order->slot] : NULL;

	answer.header = link_header(GP_WIRE_SLICED, sizeof(answer));
	answer.header.cookie = order->header.cookie;
	if (gp_agent.exiting)
		answer.result = -ESHUTDOWN;
	else if (!slot || !slot->used || slot->dying || !slot->is_announced || slot->generation != order->generation)
		answer.result = -ESTALE;
	else if (!gp_agent.driver || !gp_agent.driver->slice)
		answer.result = -EOPNOTSUPP;
	else
		answer.result = gp_agent.driver->slice(slot, order->slice_us);
	gp_link_send(&answer, sizeof(answer));
	return 0;
}

/* The size a message of this type has; 0: unknown. */
static uint32_t link_size_of(uint32_t type)
{
	switch (type) {
	case GP_WIRE_WELCOME: return sizeof(struct gp_wire_welcome);
	case GP_WIRE_REFUSED: return sizeof(struct gp_wire_text);
	case GP_WIRE_SAMPLE: return sizeof(struct gp_wire_sample);
	case GP_WIRE_MECHANISM: return sizeof(struct gp_wire_mechanism);
	case GP_WIRE_ATTR_NOW: return sizeof(struct gp_wire_attr_message);
	case GP_WIRE_SLICE: return sizeof(struct gp_wire_slice);
	case GP_WIRE_SYNC:
	case GP_WIRE_RUNTIME_OK: return sizeof(struct gp_wire_header);
	default: return 0;
	}
}

static int link_carry_out(const struct gp_wire_header *header, const void *data, const int *fds, uint32_t fd_count)
{
	struct gp_wire_header synced = link_header(GP_WIRE_SYNCED, sizeof(synced));

	if (header->type == GP_WIRE_WELCOME)
		return link_welcome(data, fds, fd_count);
	if (header->type == GP_WIRE_REFUSED)
		return -EACCES;
	if (gp_agent.link != GP_LINK_UP)
		return -EPROTO;
	switch (header->type) {
	case GP_WIRE_ORDER: return link_order(data, header->size);
	case GP_WIRE_SAMPLE:
		gp_agent.sample_ns = ((const struct gp_wire_sample *)data)->interval_ns;
		/* More than an hour counts as never; the limit leaves room to back off without overflow. */
		if (gp_agent.sample_ns > 3600000000000ull)
			gp_agent.sample_ns = 0;
		return 0;
	case GP_WIRE_SYNC:
		gp_sample_all();
		synced.cookie = header->cookie;
		gp_link_send(&synced, sizeof(synced));
		return 0;
	case GP_WIRE_MECHANISM:
		if (((const struct gp_wire_mechanism *)data)->mechanism > GP_MECHANISM_LAST)
			return -EPROTO;
		gp_gate_mechanism(((const struct gp_wire_mechanism *)data)->mechanism);
		return 0;
	case GP_WIRE_RUNTIME_OK: __atomic_store_n(&gp_agent.runtime_asked, false, __ATOMIC_RELEASE); return 0;
	case GP_WIRE_ATTR_NOW: return link_attr_now(data);
	case GP_WIRE_SLICE: return link_slice(data);
	default: return -EPROTO;
	}
}

int gp_link_message(const void *data, uint32_t size, const int *fds, uint32_t fd_count)
{
	struct gp_wire_header header;

	if (size < sizeof(header))
		return -EPROTO;
	memcpy(&header, data, sizeof(header));
	if (header.magic != GP_WIRE_MAGIC || header.version < GP_WIRE_VERSION_MIN || header.version > GP_WIRE_VERSION ||
	    header.size != size)
		return -EPROTO;
	if (header.type == GP_WIRE_ORDER ? size < sizeof(struct gp_wire_order) : size != link_size_of(header.type))
		return -EPROTO;
	return link_carry_out(&header, data, fds, fd_count);
}

/* Takes the first two descriptors out of a message and closes all others. */
static uint32_t link_descriptors(struct msghdr *head, int fds[2])
{
	uint32_t count = 0;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(head); part; part = CMSG_NXTHDR(head, part)) {
		uint32_t n = (uint32_t)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (uint32_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
			if (count < 2u)
				fds[count++] = fd;
			else
				gp_sys_close(fd);
		}
	}
	return count;
}

/* One message from the socket. False: there is none, or there is no socket any more. */
static bool link_receive_one(void)
{
	static _Alignas(8) uint8_t data[GP_WIRE_SIZE_MAX];
	_Alignas(struct cmsghdr) uint8_t control[256];
	struct iovec part = { data, sizeof(data) };
	struct msghdr head = { .msg_iov = &part,
			       .msg_iovlen = 1,
			       .msg_control = control,
			       .msg_controllen = sizeof(control) };
	int fds[2] = { -1, -1 }, fd = link_fd(), r;
	uint32_t fd_count;
	long size;

	if (fd < 0) {
		gp_link_down("link: our socket is gone");
		return false;
	}
	size = gp_sys(SYS_recvmsg, fd, (long)&head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* It closed with a message of ours unread; its last one, which says why, comes after the error. */
	if (size == -ECONNRESET)
		size = gp_sys(SYS_recvmsg, fd, (long)&head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (size == -EAGAIN || size == -EINTR)
		return false;
	if (size <= 0) {
		gp_link_down("link: the daemon hung up");
		return false;
	}
	fd_count = link_descriptors(&head, fds);
	r = head.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : gp_link_message(data, (uint32_t)size, fds, fd_count);
	gp_sys_close(fds[0]);
	gp_sys_close(fds[1]);
	if (r < 0) {
		gp_log1("link: message refused", r);
		gp_link_down(r == -EACCES ? "link: the daemon refuses us" : "link: not our protocol");
	}
	return gp_agent.link != GP_LINK_DOWN;
}

void gp_link_receive(void)
{
	/* The agent takes no more orders while an answer is unsent: so memory stays bounded. */
	for (uint32_t i = 0; i < LINK_RECEIVE_MAX && gp_agent.link != GP_LINK_DOWN && link_drain(); i++)
		if (!link_receive_one())
			return;
}
