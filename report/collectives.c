/* SPDX-License-Identifier: MIT */
/* Owns the figures of collectives: how long no other kernel ran beside them, and which device comes late to them. */
#include "report/analysis.h"

#define COLLECTIVES_SAME 10u /* a tenth more or fewer are about as many */

/* Who comes late to a collective is in it the shortest. That can be told only of devices that took part in the same
 * ones: about as many as the device that is worst off. */
static void collectives_late(struct gp_analysis *analysis, uint64_t count)
{
	struct gp_report *report = analysis->report;

	for (uint32_t i = 0; i < analysis->device_count; i++) {
		const struct analysis_device *device = &analysis->devices[i];
		uint64_t collective = gp_busy_total(&device->collective);

		if (!device->has_device || device->collective_count < count - count / COLLECTIVES_SAME ||
		    device->collective_count > count + count / COLLECTIVES_SAME)
			continue;
		if (!report->collective_device_count++ || collective < report->collective_ns_min) {
			report->collective_ns_min = collective;
			report->late_device = device->device;
			report->late_rank = device->rank;
		}
	}
}

void gp_collectives(struct gp_analysis *analysis)
{
	struct gp_report *report = analysis->report;
	uint64_t count = 0;

	report->collective_count = analysis->collective_count;
	for (uint32_t i = 0; i < analysis->device_count; i++) {
		const struct analysis_device *device = &analysis->devices[i];
		uint64_t exposed = gp_busy_total(&device->compute) - gp_busy_total(&device->other);

		/* A trace may have been cut down to its collectives: what ran beside them is unknown then. */
		if (!device->collective.is_used || (report->has_exposed && !device->other.is_used))
			continue;
		if (exposed < report->exposed_ns && report->has_exposed == device->other.is_used)
			continue;
		report->has_exposed = device->other.is_used;
		report->exposed_ns = exposed;
		report->collective_ns = gp_busy_total(&device->collective);
		count = device->collective_count;
	}
	if (count)
		collectives_late(analysis, count);
}
