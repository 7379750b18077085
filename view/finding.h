/* SPDX-License-Identifier: MIT */
/* The result in a sentence or two, computed from the runs, for those who read nothing else. */
#ifndef GP_VIEW_FINDING_H
#define GP_VIEW_FINDING_H

#include "view/row.h"

#define GP_FINDING_SIZE 4096u

/* "Beside train, the p99 of serve is 5.90 ms with hpf (1.03× alone); with stock scheduling requests pile up (p99 >
 * 9.53 s). train keeps 95 % of what serve leaves. Worse than with stock scheduling: train (63 % of its throughput)."
 * Says only what the runs show; "" if they show nothing of it. Names are cut and can be shown on a terminal. Returns
 * buffer. */
const char *gp_finding_text(const struct gp_result *result, char *buffer, size_t buffer_size);

/* The most urgent row with latencies, in the first run that has it. */
bool gp_finding_urgent(const struct gp_result *result, struct gp_row *ret_row);
/* What the batch clients of a run did of what they could have done beside its services, in thousandths. At best they
 * have all the time that the services leave (on several devices: all the time), or as much as they use alone where
 * that is less. False if it is not known: no batch client, or one that did nothing alone or was not run alone. */
bool gp_finding_kept(const struct gp_result *result, const struct gp_result_run *run, uint64_t *ret_permille);
/* The throughput that batch row could have had at best, per 1000 s. False if it is not known or the row has to share
 * with other batch rows. */
bool gp_finding_most(const struct gp_result *result, const struct gp_result_run *run, const struct gp_row *row,
		     uint64_t *ret_milli);

#endif
