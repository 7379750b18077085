/* SPDX-License-Identifier: MIT */
/* Oversubscribed: the driver said so, or the processes of the trace have more queues with work on a device than KFD has
 * slots for (24 on gfx9: 4 pipes x 8 queues less 8 for the kernel). */
#include "report/rules.h"

#define OVERSUBSCRIBED_SLOTS 24u

static bool oversubscribed_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	uint32_t worst = 0;

	/* Where the trace has streams in the place of hardware queues, or no KFD, nobody knows. */
	for (uint32_t i = 0; i < report->device_count && !report->has_stream_queues && !report->has_cuda; i++)
		worst = report->devices[i].queues > worst ? report->devices[i].queues : worst;
	if (!report->oversubscribed_count && worst <= OVERSUBSCRIBED_SLOTS)
		return false;
	finding->title = "The device is oversubscribed";
	finding->share_ppm = 1000000;
	finding->confidence = report->oversubscribed_count ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_LOW;
	if (report->oversubscribed_count)
		(void)snprintf(finding->text, sizeof(finding->text),
			       "The driver reports %" PRIu64
			       " times that the run list is oversubscribed: more queues or processes "
			       "than slots, so the firmware switches between them all the time.",
			       report->oversubscribed_count);
	else
		(void)snprintf(
			finding->text, sizeof(finding->text),
			"%" PRIu32
			" compute queues with work on one device; KFD has %u slots on MI200 and MI300 (assumed "
			"here; the trace does not name the device's). Beyond them the firmware switches all the time.",
			worst, OVERSUBSCRIBED_SLOTS);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Fewer processes per device, or GPU_MAX_HW_QUEUES=2 in each. Figures taken while oversubscribed say little "
		"about the program itself. `gpreempt sim` shows what turns would give.");
	return true;
}

const struct gp_report_rule gp_rule_oversubscribed = { "oversubscribed", oversubscribed_check };
