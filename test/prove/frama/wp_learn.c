/* SPDX-License-Identifier: MIT */
/*
 * Frama-C WP on what is learned: contracts for the real core/learn.c. Proven: no sum or product overflows, no bucket
 * beyond the table, whatever a queue's past was; a smoothed value stays between what it was and what is new; the rest
 * of a queue is what its packets say, or not known.
 */
#include "core/calls.h"

/*@ assigns \nothing;
    ensures zero: old == 0 ==> \result == new;
    ensures alive: old > 0 ==> \result > 0;
    ensures between: \result <= old || \result <= new;
    ensures eighth: old > 0 ==> \result >= old - old / 8; */
uint64_t gp_learn_smooth(uint64_t old, uint64_t new);

/*@ requires \valid(queue) && done_count >= 1 && queue->last_done_ns <= GP_NS_MAX && now_ns < GP_NS_MAX &&
   queue->packet_ns <= GP_NS_MAX; assigns queue->packet_ns, queue->last_done_ns; ensures queue->packet_ns <= GP_NS_MAX
   && queue->last_done_ns == now_ns; */
void gp_learn_done(struct gp_queue *queue, uint64_t done_count, uint64_t now_ns);

/*@ requires \valid(queue) && busy_ns < GP_NS_MAX && queue->busy_ns <= GP_NS_MAX;
    assigns queue->busy_ns;
    ensures queue->busy_ns <= GP_NS_MAX; */
void gp_learn_busy(struct gp_queue *queue, uint64_t busy_ns);

/*@ requires \valid_read(queue) && queue->completed <= queue->written && queue->last_done_ns <= now_ns &&
   queue->busy_since_ns <= now_ns; requires now_ns < GP_NS_MAX && queue->busy_ns <= GP_NS_MAX; assigns \nothing; ensures
   known: \result == GP_NEVER_NS || (1 <= \result <= GP_NS_MAX); ensures packets: \result != GP_NEVER_NS &&
   queue->written > queue->completed ==> \result == (queue->written - queue->completed) * queue->packet_ns - (now_ns -
   queue->last_done_ns); ensures busy: \result != GP_NEVER_NS && queue->written == queue->completed ==> \result ==
   queue->busy_ns - (now_ns - queue->busy_since_ns); */
uint64_t gp_learn_rest_ns(const struct gp_queue *queue, uint64_t now_ns);

#include "core/learn.c"
