/* SPDX-License-Identifier: MIT */
/* A program on the fake resource manager: what its files share. */
#ifndef GP_TEST_NVIDIA_RM_CLIENT_H
#define GP_TEST_NVIDIA_RM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include "test/nvidia/fake_gpu.h"

#define CONTEXTS 64u

struct context {
	uint32_t device, subdevice, group, copy_group, channels[80], channel_count, compute, memory_handle;
	struct fake_gpu gpu;
};
extern int ctl;         /* its nvidiactl */
extern uint32_t client; /* its RM client */
extern struct context contexts[CONTEXTS];
extern uint32_t context_count; /* atomic: threads open contexts */

uint32_t rm_control(uint32_t object, uint32_t command, void *params, uint32_t size);
bool client_open(void);
int context_open(uint32_t gpu);

/* One line of the test: what is done, and with what. */
struct request {
	const char *verb;
	uint32_t a, b;
	const char *what;
};
bool request_is(const struct request *request, const char *verb);
void answer(long number);

/* rm_busy.c */
int context_start(uint32_t pieces);
long context_start_several(uint32_t count, uint32_t pieces);
int fork_child(uint32_t way);
bool busy_request(const struct request *request);

#endif
