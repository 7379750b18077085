/* SPDX-License-Identifier: MIT */
/* The control socket: addresses, packets, and descriptors that travel with them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "vgpu/command/control.h"

bool gp_control_name_is_valid(const char *name)
{
	size_t size = strlen(name);

	return size && size < GP_CONTROL_NAME_SIZE &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == size;
}

static socklen_t control_address(const char *name, struct sockaddr_un *ret_address)
{
	int size;

	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	size = snprintf(ret_address->sun_path + 1, sizeof(ret_address->sun_path) - 1u, GP_CONTROL_PREFIX "%u/%s",
			(unsigned int)geteuid(), name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1u + (size_t)size);
}

int gp_control_listen(const char *name, struct gp_error *error)
{
	struct sockaddr_un address;
	socklen_t size = control_address(name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return gp_error_set(error, -errno, "cannot make a socket: %s", strerror(errno));
	if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 64) < 0) {
		r = -errno;
		close(fd);
		if (r == -EADDRINUSE)
			return gp_error_set(error, r, "a device named '%s' is already running", name);
		return gp_error_set(error, r, "cannot listen as '%s': %s", name, strerror(-r));
	}
	return fd;
}

int gp_control_connect(const char *name)
{
	struct sockaddr_un address;
	socklen_t size = control_address(name, &address), peer_size = sizeof(struct ucred);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r = 0;
	struct ucred peer;

	if (fd < 0)
		return -errno;
	/* An abstract name belongs to whoever takes it first: the credentials say whose it is. */
	if (connect(fd, (struct sockaddr *)&address, size) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) < 0)
		r = -errno;
	else if (peer.uid != geteuid())
		r = -EPERM;
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

int gp_vgpu_control_send(int socket, const char *text, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(size_t)text, strlen(text) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						   .cmsg_type = SCM_RIGHTS,
						   .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int gp_control_receive(int socket, char *ret_text, size_t text_size, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { ret_text, text_size - 1u };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	ssize_t size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header;

	if (size <= 0)
		return size < 0 ? -errno : -EPIPE;
	ret_text[size] = 0;
	*ret_fd = -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return 0;
}

const char *gp_control_value(const char *text, const char *name, char *buffer, size_t buffer_size)
{
	size_t name_size = strlen(name), line = strcspn(text, "\n");
	const char *at = text;

	while ((size_t)(at - text) < line) {
		size_t size = strcspn(at, " \n");

		if (size > name_size && !strncmp(at, name, name_size) && at[name_size] == '=') {
			snprintf(buffer, buffer_size, "%.*s", (int)(size - name_size - 1u), at + name_size + 1u);
			return buffer;
		}
		at += size;
		at += *at == ' ';
	}
	return NULL;
}
