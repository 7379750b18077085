/* SPDX-License-Identifier: MIT */
/* Large copies between host and device that are slow: less than half of what the same link carried elsewhere in this
 * trace, or, if it never did better, less than 6 GB/s (half of a PCIe 3 x16 link, assumed). Speaks from 3 % of the run.
 */
#include "report/rules.h"

#define COPY_RATE_PPM 30000u
#define COPY_RATE_LOW 6.0 /* GB/s, bytes per ns */

static bool copy_rate_check(const struct gp_report *report, struct gp_report_finding *finding)
{
	const struct gp_report_link *worst = NULL;
	GP_RULE_TEXT(time);
	GP_RULE_TEXT(share);
	GP_RULE_TEXT(size);
	double rate, best;

	for (int i = 0; i < 2; i++)
		if (report->links[i].count && (!worst || report->links[i].ns > worst->ns))
			worst = &report->links[i];
	if (!worst)
		return false;
	rate = (double)worst->size / (double)worst->ns;
	best = (double)worst->best_size / (double)worst->best_ns;
	finding->share_ppm = gp_rule_ppm(worst->ns, report->wall_ns);
	if (finding->share_ppm < COPY_RATE_PPM || (rate * 2 >= best && rate >= COPY_RATE_LOW))
		return false;
	finding->title = "Large copies are slower than the link";
	/* The link's own rate is in no trace: a better copy in the same direction shows it, an assumption does not. */
	finding->confidence = rate * 2 < best ? GP_CONFIDENCE_HIGH : GP_CONFIDENCE_LOW;
	(void)snprintf(finding->text, sizeof(finding->text),
		       "%" PRIu64
		       " copies of 1 MiB and more %s the device moved %s in %s (%s of the run): %.1f GB/s. %s %.1f "
		       "GB/s.",
		       worst->count, worst == &report->links[0] ? "to" : "from",
		       gp_units_format_size(worst->size, size, sizeof(size)), gp_rule_ns(worst->ns, time),
		       gp_rule_percent(finding->share_ppm, share), rate,
		       rate * 2 < best ?
			       "The fastest of them had" :
			       "None was faster, and a PCIe 3 link of 16 lanes (assumed) carries about 12; here it was",
		       best);
	(void)snprintf(
		finding->advice, sizeof(finding->advice),
		"Copy from pinned memory (%sHostAlloc, pin_memory in PyTorch): from other memory the driver copies twice. "
		"Look at the copies by name to see which those are.",
		gp_rule_prefix(report));
	return true;
}

const struct gp_report_rule gp_rule_copy_rate = { "copy-rate", copy_rate_check };
