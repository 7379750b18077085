/* SPDX-License-Identifier: MIT */
/*
 * The core's counters of a device (struct gp_stats of sched.h), once: what `status` calls them, which metric they are
 * and what its help says. Who writes them and who reads them expand the same table.
 */
#ifndef GP_COUNTERS_H
#define GP_COUNTERS_H

/* X(field, metric or NULL, help, whether it is a time in ns) */
/* clang-format off */
#define GP_COUNTER_TABLE(X)                                                                                            \
	X(plans, "plans_total", "Plans made.", false)                                                                  \
	X(transactions, "transactions_total", "Gate transactions planned.", false)                                     \
	X(closes, "gate_closes_total", "Gates ordered closed.", false)                                                 \
	X(opens, "gate_opens_total", "Gates ordered open.", false)                                                     \
	X(preemptions, "preemptions_total", "Gates closed while their queue had work.", false)                         \
	X(inversions, "inversions_total", "Times a queue waited for less urgent work.", false)                         \
	X(inversion_ns, "inversion_seconds_total", "Time waited for less urgent work, device time.", true)             \
	X(inversion_ns_max, NULL, NULL, true)                                                                          \
	X(turns, "turns_total", "Turns given to batch clients.", false)                                                \
	X(hints, "hints_total", "Announcements of work.", false)                                                       \
	X(hints_missed, "hints_missed_total", "Announced work that did not come.", false)                              \
	X(aged, "aged_turns_total", "Turns given because of the starvation bound.", false)                             \
	X(quarantines, "quarantines_total", "Queues given up on.", false)                                              \
	X(timeouts, "plan_timeouts_total", "Plans that were not answered.", false)                                     \
	X(order_failures, "order_failures_total", "Gate changes that failed.", false)                                  \
	X(stale_acks, NULL, NULL, false)                                                                               \
	X(back_offs, NULL, NULL, false)
/* clang-format on */

#endif
