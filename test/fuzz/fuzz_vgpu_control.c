/* SPDX-License-Identifier: MIT */
/* Lines of the control socket, as vgpud and vgpu read them: values by name, names of nodes, and faults on a node with a
 * client and two queues. Each line of the input is one packet; `P` before a space stands for the client's pid. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/command/control.h"
#include "vgpu/node/fault.h"
#include "vgpu/node/report.h"

#define FUZZ_LINES   64u
#define FUZZ_TURN_NS 200000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_line(struct fuzz_node *fuzz, const char *text)
{
	char value[64], status[GP_CONTROL_TEXT_SIZE], fault[GP_CONTROL_TEXT_SIZE + 16u];
	struct gp_error error = { "" };
	const char *place;

	gp_control_name_is_valid(text);
	gp_control_value(text, "pid", value, sizeof(value));
	gp_control_value(text, "name", value, sizeof(value));
	if (strncmp(text, "fault ", 6) == 0) {
		place = strstr(text, " P ");
		if (place)
			snprintf(fault, sizeof(fault), "%.*s %d %s", (int)(place - text - 6), text + 6,
				 fuzz->clients[0]->pid, place + 3);
		else
			snprintf(fault, sizeof(fault), "%s", text + 6);
		if (gp_fault_inject(&fuzz->node, fault, &error) < 0 && !*error.text)
			abort();
	}
	gp_report_status(&fuzz->node, status, sizeof(status));
	if (!memchr(status, 0, sizeof(status)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_node *fuzz = fuzz_node_open(NULL);
	struct fuzz_queue queues[2];
	const uint8_t *end = data + size;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    fuzz_node_queue(fuzz, FUZZ_VA, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, &queues[0]) < 0 ||
	    fuzz_node_queue(fuzz, FUZZ_VA + FUZZ_QUEUE_STEP, KFD_IOC_QUEUE_TYPE_SDMA, &queues[1]) < 0)
		abort();
	for (uint32_t i = 0; i < FUZZ_LINES && data < end; i++) {
		const uint8_t *next = memchr(data, '\n', (size_t)(end - data));
		size_t length = (size_t)((next ? next + 1 : end) - data);
		char text[256];
		int fd;

		if (send(pair[0], data, length, 0) == (ssize_t)length &&
		    gp_control_receive(pair[1], text, sizeof(text), &fd) == 0)
			fuzz_line(fuzz, text);
		fuzz_node_turn(fuzz, FUZZ_TURN_NS);
		data += length;
	}
	close(pair[0]);
	close(pair[1]);
	fuzz_node_close(fuzz);
	return 0;
}
