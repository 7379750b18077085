/* SPDX-License-Identifier: MIT */
/* The bench of the agent's tests on the fake resource manager. Each case has a folder of its own. */
#ifndef GP_TEST_NVIDIA_RM_BENCH_H
#define GP_TEST_NVIDIA_RM_BENCH_H

#include "test/e2e/agent_test.h"
#include "test/nvidia/fake_rm.h"

#define LEASE_MS 60000u /* never by itself */

extern struct fake_rm_state *rm;
extern char rm_folder[];

void rm_start(struct test *test, uint32_t gpus);
/* … with one context, which the daemon knows. */
struct fake_queue *rm_start_one(struct test *test, uint32_t mechanism, uint32_t lease_ms);
void rm_end(struct test *test);
void rm_meet(struct test *test, uint32_t mechanism, uint32_t lease_ms, uint32_t queues);
void rm_refused(struct test *test, const char *why);
void rm_rule(uint32_t how, uint32_t command, uint32_t value, uint32_t count);
const struct fake_rm_object *rm_object(uint32_t client, uint32_t handle);
uint32_t rm_disabled(const struct fake_queue *queue);
uint64_t rm_slice(const struct fake_queue *queue);
void rm_set(const struct fake_queue *queue, uint32_t disabled, uint64_t slice_us); /* as if the daemon had called */
bool rm_until_disabled(const struct fake_queue *queue, uint32_t count);
bool rm_until_slice(const struct fake_queue *queue, uint64_t slice_us);
uint32_t rm_calls(uint32_t command);
bool rm_until_group(struct test *test, const struct fake_queue *queue);
struct fake_queue *rm_queue(struct test *test, uint32_t index);
int rm_slice_order(struct test *test, const struct fake_queue *queue, uint64_t slice_us);

/* rm_work.c */
void case_work(struct test *test);
void case_marker(struct test *test);
void case_sampled(struct test *test);
void case_blocked(struct test *test);
void case_lease(struct test *test);
void case_held(struct test *test);
void case_memory(struct test *test);

/* rm_start.c */
void case_counts(struct test *test);
void case_start(struct test *test);
void case_still(struct test *test);
void case_greeted(struct test *test);
void case_spare(struct test *test);
void case_unsure(struct test *test);
void case_swept(struct test *test);
void case_killed(struct test *test);
void case_parted(struct test *test);
void case_unasked(struct test *test);

/* rm_refused.c */
void case_statuses(struct test *test);
void case_preemption(struct test *test);
void case_refused(struct test *test);

#endif
