/* SPDX-License-Identifier: MIT */
/*
 * Frama-C WP on the preemption budget: contracts for the real core/budget.c, which is included as it is. Proven: no
 * product or sum overflows at any value that the interface lets in; the bucket never holds more than its burst, and
 * gains over any stretch exactly what the rate says (rounded down, the rest kept); debt has an end; a wait ends when
 * the bucket can pay, not before, and within the hour.
 */
#include "core/calls.h"

/* times() is the product; the provers are told so by an axiom, and otherwise leave it alone: they lose their way in
 * products of unknowns. */
/*@ axiomatic Product {
      logic integer times(integer a, integer b);
      axiom times_is: \forall integer a, b; times(a, b) == a * b;
    }
    predicate costs_ok(struct gp_device *d) = d->attr.close_ns <= GP_DURATION_NS_MAX && d->attr.open_ns <= GP_DURATION_NS_MAX;
    predicate rate_ok(struct gp_device *d) = 1 <= d->param.overhead_permille <= 1000 && 1 <= d->param.burst <= GP_BURST_MAX;
    predicate bucket_ok(struct gp_device *d) = -720000000000000000 <= d->tokens_ns <= 720000000000000000 && d->tokens_part < 1000;
    predicate clock_ok(struct gp_sched *s, struct gp_device *d) = d->tokens_mark_ns <= s->now_ns < GP_NS_MAX;
    logic integer thousandths(struct gp_device *d) = d->tokens_ns * 1000 + d->tokens_part;
*/

/*@ requires \valid_read(device) && costs_ok(device) && transaction_count <= GP_QUEUE_MAX;
    assigns \nothing;
    ensures cost: \result == times(device->attr.close_ns + device->attr.open_ns, transaction_count);
    ensures fits: 0 <= \result <= 7549747200000000000;
    ensures burst: transaction_count <= GP_BURST_MAX ==> \result <= 720000000000000000; */
static int64_t budget_cost_ns(const struct gp_device *device, uint32_t transaction_count);

/*@ requires \valid_read(device) && 1 <= device->param.overhead_permille <= 999 && device->tokens_part < 1000;
    assigns \nothing;
    ensures fits: \result <= 3600000000000 * 999 + 999;
    ensures left_over: \result >= device->tokens_part;
    ensures not_more: \result <= times(elapsed_ns, device->param.overhead_permille) + device->tokens_part;
    ensures all_of_it: elapsed_ns <= GP_DURATION_NS_MAX ==>
	\result == times(elapsed_ns, device->param.overhead_permille) + device->tokens_part; */
static uint64_t budget_gain(const struct gp_device *device, uint64_t elapsed_ns);

/*@ requires \valid(device) && \valid(sched) && \separated(sched, device);
    requires costs_ok(device) && rate_ok(device) && bucket_ok(device) && clock_ok(sched, device);
    requires device->param.overhead_permille < 1000;
    assigns device->tokens_ns, device->tokens_part, device->tokens_mark_ns;
    ensures marked: device->tokens_mark_ns == sched->now_ns;
    ensures part: device->tokens_part < 1000;
    ensures bucket: -720000000000000000 <= device->tokens_ns <= 720000000000000000;
    ensures not_over: device->tokens_ns <= times(device->attr.close_ns + device->attr.open_ns, device->param.burst);
    ensures no_more_than_its_rate: thousandths(device) <= \old(thousandths(device)) +
	times(sched->now_ns - \old(device->tokens_mark_ns), device->param.overhead_permille);
    ensures no_less_than_its_rate: sched->now_ns - \old(device->tokens_mark_ns) <= GP_DURATION_NS_MAX &&
	device->tokens_ns < times(device->attr.close_ns + device->attr.open_ns, device->param.burst) ==>
	thousandths(device) == \old(thousandths(device)) +
	times(sched->now_ns - \old(device->tokens_mark_ns), device->param.overhead_permille); */
static void budget_fill(struct gp_sched *sched, struct gp_device *device);

/*@ requires \valid_read(device) && 1 <= device->param.overhead_permille <= 999 && device->tokens_part < 1000;
    requires 1 <= missing_ns;
    assigns \nothing;
    ensures within_the_hour: 1 <= \result <= GP_DURATION_NS_MAX;
    ensures enough: \result < GP_DURATION_NS_MAX ==>
	\result * device->param.overhead_permille + device->tokens_part >= missing_ns * 1000;
    ensures not_before: missing_ns < GP_DURATION_NS_MAX ==>
	(\result - 1) * device->param.overhead_permille + device->tokens_part < missing_ns * 1000; */
static uint64_t budget_wait_ns(const struct gp_device *device, uint64_t missing_ns);

/*@ requires \valid(device) && \valid(sched) && \separated(sched, device);
    requires costs_ok(device) && rate_ok(device) && bucket_ok(device) && clock_ok(sched, device);
    requires transaction_count <= GP_QUEUE_MAX;
    assigns device->tokens_ns, device->tokens_part, device->tokens_mark_ns, device->wake_ns;
    ensures bucket: bucket_ok(device) && clock_ok(sched, device);
    ensures awake: !\result ==> device->wake_ns <= sched->now_ns + GP_DURATION_NS_MAX;
    ensures paid: \result && device->param.overhead_permille < 1000 && transaction_count <= device->param.burst ==>
	device->tokens_ns >= times(device->attr.close_ns + device->attr.open_ns, transaction_count); */
bool gp_budget_can_pay(struct gp_sched *sched, struct gp_device *device, uint32_t transaction_count);

/*@ requires \valid(device) && costs_ok(device) && rate_ok(device) && bucket_ok(device) && transaction_count <= GP_QUEUE_MAX;
    assigns device->tokens_ns;
    ensures bucket: bucket_ok(device);
    ensures less: device->tokens_ns <= \old(device->tokens_ns); */
void gp_budget_pay(struct gp_device *device, uint32_t transaction_count);

#include "core/budget.c"
