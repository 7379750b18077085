/* SPDX-License-Identifier: MIT */
/* The daemon's WELCOME, as an agent of a test's or a bench's own takes it off its socket. */
#ifndef GP_TEST_WELCOME_H
#define GP_TEST_WELCOME_H

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <gpreempt/page.h>
#include <gpreempt/wire.h>

/* flags: of recvmsg(). NULL, or what was not as it must be; nothing is returned then. */
static inline const char *gp_test_welcome(int fd, int flags, struct gp_wire_welcome *ret_welcome,
					  struct gp_page **ret_page, int *ret_doorbell_fd)
{
	struct gp_wire_welcome welcome;
	struct iovec part = { &welcome, sizeof(welcome) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	struct gp_page *page;
	int fds[2];

	if (recvmsg(fd, &packet, flags) != (ssize_t)sizeof(welcome) || welcome.header.type != GP_WIRE_WELCOME)
		return "WELCOME";
	if (packet.msg_controllen != CMSG_SPACE(sizeof(fds)))
		return "the descriptors of WELCOME";
	memcpy(fds, CMSG_DATA(&control.head), sizeof(fds));
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	close(fds[0]);
	if (page == MAP_FAILED) {
		close(fds[1]);
		return "the page";
	}
	*ret_welcome = welcome;
	*ret_page = page;
	*ret_doorbell_fd = fds[1];
	return NULL;
}

#endif
