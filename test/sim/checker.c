/* SPDX-License-Identifier: MIT */
/* Owns the list of checkers, their states, and who is told what first. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "test/sim/checker.h"
#include "test/sim/checker_known.h"
#include "test/sim/checker_truth.h"

const struct checker *const checker_list[CHECKER_COUNT] = {
	&checker_once,       &checker_closed, &checker_late,  &checker_effect, &checker_limits, &checker_inversion,
	&checker_starvation, &checker_drain,  &checker_gang,  &checker_budget, &checker_owed,   &checker_age,
	&checker_rest,       &checker_slice,  &checker_floor, &checker_spin,   &checker_stay,
};

uint32_t checker_index(const struct checker *checker)
{
	uint32_t i = 0;

	while (checker_list[i] != checker)
		i++;
	return i;
}

void checker_fail(struct checker_run *run, const struct checker *checker, const char *format, ...)
{
	uint32_t i = checker_index(checker);
	va_list args;

	if (run->failed[i])
		return;
	run->failed[i] = true;
	run->failed_count++;
	va_start(args, format);
	vsnprintf(run->text[i], CHECKER_TEXT_SIZE, format, args);
	va_end(args);
}

int checker_run_init(struct checker_run *run)
{
	uint32_t i;

	*run = (struct checker_run){ .known = calloc(1, sizeof(struct known)),
				     .truth = calloc(1, sizeof(struct truth)) };
	for (i = 0; i < CHECKER_COUNT; i++)
		run->states[i] = calloc(1, checker_list[i]->state_size);
	for (i = 0; i < CHECKER_COUNT; i++) {
		if (!run->states[i] || !run->known || !run->truth) {
			checker_run_fini(run);
			return -ENOMEM;
		}
	}
	return 0;
}

void checker_run_fini(struct checker_run *run)
{
	uint32_t i;

	for (i = 0; i < CHECKER_COUNT; i++) {
		if (run->states[i] && checker_list[i]->fini)
			checker_list[i]->fini(run->states[i]);
		free(run->states[i]);
	}
	if (run->truth)
		truth_fini(run->truth);
	free(run->truth);
	free(run->known);
}

/* A plan is judged against the state it was made in; everything else against the state it leads to. */
void checker_run_event(struct checker_run *run, struct check_event *event)
{
	const char *wrong;
	uint32_t i;

	if (event->now_ns > run->now_ns)
		run->now_ns = event->now_ns;
	run->calls += event->type < CHECK_GPU_ADD;
	if (run->log)
		run->log(event);
	if (event->type == CHECK_CALM)
		run->calm = true;
	if (event->type != CHECK_PLAN) {
		wrong = known_event(run->known, event);
		if (wrong)
			checker_fail(run, &checker_effect, "at %llu ns: %s (queue %u)",
				     (unsigned long long)run->known->core_ns, wrong,
				     event->trace ? event->trace->queue.index : event->queue.index);
		wrong = truth_event(run->truth, event);
		if (wrong)
			checker_fail(run, &checker_closed, "at %llu ns: %s", (unsigned long long)run->now_ns, wrong);
	}
	for (i = 0; i < CHECKER_COUNT; i++) {
		if (!run->failed[i])
			checker_list[i]->event(run, run->states[i], event);
	}
	if (event->type == CHECK_PLAN)
		(void)known_event(run->known, event);
}
