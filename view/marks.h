/* SPDX-License-Identifier: MIT */
/* Marks and slices in words, and in the order in which a view draws them. */
#ifndef GP_VIEW_MARKS_H
#define GP_VIEW_MARKS_H

#include <stddef.h>
#include "view/result.h"

#define GP_MARKS_TEXT_SIZE 320u

/* "train closed: serve has work" — who, what happened, why. Returns buffer. */
const char *gp_marks_text(const struct gp_result_run *run, const struct gp_result_mark *mark, char *buffer,
			  size_t buffer_size);
/* "?" for an index that is not a client of the run. */
const char *gp_marks_client(const struct gp_result_run *run, uint32_t client);

/* Indices of the run's slices by device, priority (most urgent first), queue and start, so that one lane after the
 * other can be drawn; the caller frees. NULL if there is no memory or no slice. */
uint32_t *gp_marks_slice_order(const struct gp_result_run *run);

#endif
