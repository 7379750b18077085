/* SPDX-License-Identifier: MIT */
/* A made-up result for the tests of the views: runs alone, stock and hpf of a service beside training jobs. */
#ifndef GP_TEST_VIEW_SAMPLE_H
#define GP_TEST_VIEW_SAMPLE_H

#include "view/result.h"

struct gp_result *view_sample_create(uint32_t batch_count); /* batch clients beside the service */
void view_sample_destroy(struct gp_result *result);

#endif
