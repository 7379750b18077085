/* SPDX-License-Identifier: MIT */
/* Serialised streams: several streams of one process share a hardware queue, so that their work is in line although the
 * program meant it to overlap. */
#include "report/rules.h"

#define SERIALISED_PPM 20000u

static bool serialised_streams_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	const struct gp_report_queue *worst = NULL;
	uint32_t streams = 0, queues = 0;
	GP_RULE_TEXT(busy);

	for (uint32_t i = 0; i < report->queue_count; i++) {
		const struct gp_report_queue *queue = &report->queues[i];

		if (queue->is_copy || !queue->has_queue || !queue->stream_count)
			continue;
		queues++;
		streams += queue->stream_count;
		if (queue->stream_count > 1 && (!worst || queue->busy_ns > worst->busy_ns))
			worst = queue;
	}
	if (!worst)
		return false;
	finding->share_ppm = gp_rule_ppm(worst->busy_ns, report->wall_ns);
	if (finding->share_ppm < SERIALISED_PPM)
		return false;
	finding->title = "Streams share hardware queues and run in line";
	/* Streams that never had work at the same time lose nothing. */
	finding->confidence = GP_CONFIDENCE_MEDIUM;
	(void)snprintf(finding->text, sizeof(finding->text),
		       "%" PRIu32 " streams with work lie on %" PRIu32 " hardware queues; on queue %" PRIu64
		       " of device %" PRIu64 " %" PRIu32 " streams share one line of %" PRIu64 " kernels, busy for %s.",
		       streams, queues, worst->queue, worst->device, worst->stream_count, worst->count,
		       gp_rule_ns(worst->busy_ns, busy));
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"HIP folds streams onto GPU_MAX_HW_QUEUES (4) queues. Use fewer streams, or raise it with care: the "
		"device has a fixed number of slots for the queues of all processes (24 on MI200 and MI300). If there are "
		"more queues, the device runs the processes in turns.");
	return true;
}

const struct gp_report_rule gp_rule_serialised_streams = { "serialised-streams", serialised_streams_check };
