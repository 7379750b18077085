/* SPDX-License-Identifier: MIT */
/* What is known of this part, its firmware and its kernel (share/safety), and what follows for the daemon. */
#include <stdlib.h>
#include "device/kfd/kfd.h"
#include "lib/cleanup.h"
#include "lib/safety.h"

static void safety_say(const struct gp_safety_entry *entry, struct gp_device_info *info)
{
	gp_device_say(info, GP_MECHANISM_NONE, false, "safety/%s: %.150s", entry->name, entry->happens);
	if (entry->is_overruled)
		gp_device_say(info, GP_MECHANISM_NONE, true,
			      GP_SAFETY_OVERRULED " by gpreempt.conf: preempting may hang or reset this GPU",
			      entry->name);
}

static void safety_apply(struct gp_backend *backend, const struct gp_safety_entry *entry, struct gp_device_info *info)
{
	char text[GP_DEVICE_TEXT_SIZE];

	gp_device_say(info, GP_MECHANISM_NONE, false, "%s (%.100s)", gp_safety_action_text(entry, text, sizeof(text)),
		      entry->source);
	switch (entry->action) {
	case GP_SAFETY_REFUSE: info->is_refused = true; break;
	case GP_SAFETY_SUBMIT: backend->is_submit_only = true; break;
	case GP_SAFETY_LIMIT: info->overhead_permille = entry->limit_permille; break;
	}
}

void gp_kfd_safety(struct gp_backend *backend, const struct gp_kfd_node *nodes, struct gp_device_info *infos,
		   uint32_t count)
{
	GP_AUTO_FREE struct gp_safety *safety = calloc(1, sizeof(*safety));
	struct gp_error error = { "out of memory" };
	int r = safety ? gp_safety_read(safety, &error) : -ENOMEM;

	for (uint32_t i = 0; !r && i < backend->config.overruled_count; i++)
		gp_safety_overrule(safety, backend->config.overruled[i]);
	for (uint32_t i = 0; i < count; i++) {
		const struct gp_safety_entry *entry;
		struct gp_safety_part part;

		if (r) {
			gp_device_say(&infos[i], GP_MECHANISM_NONE, false,
				      "the daemon cannot read the list of unsafe combinations: %.120s", error.text);
			continue;
		}
		for (uint32_t j = 0; j < safety->bad_count; j++)
			gp_device_say(&infos[i], GP_MECHANISM_NONE, false,
				      "the daemon ignores a bad file of share/safety: %.140s", safety->bad[j].text);
		gp_safety_look(&nodes[i], "/sys", &part);
		entry = gp_safety_find(safety, &part);
		for (uint32_t j = 0; j < safety->count; j++)
			if (&safety->entries[j] == entry ||
			    (safety->entries[j].is_overruled && gp_safety_is_about(&safety->entries[j], &part)))
				safety_say(&safety->entries[j], &infos[i]);
		if (entry)
			safety_apply(backend, entry, &infos[i]);
	}
}
