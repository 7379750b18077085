/* SPDX-License-Identifier: MIT */
/* What is known of this part, its firmware and its kernel (share/safety), and what follows for the daemon. */
#include <stdlib.h>
#include <string.h>
#include "device/kfd/kfd.h"
#include "lib/cleanup.h"
#include "lib/safety.h"

static bool safety_is_overruled(const struct gp_backend *backend, const char *name)
{
	const struct gp_device_config *config = &backend->config;

	for (uint32_t i = 0; i < config->overruled_count; i++)
		if (!strcmp(config->overruled[i], name))
			return true;
	return false;
}

static void safety_apply(struct gp_backend *backend, const struct gp_safety_entry *entry, struct gp_device_info *info)
{
	char text[GP_DEVICE_TEXT_SIZE];

	gp_device_say(info, GP_MECHANISM_NONE, false, "safety/%s: %.150s", entry->name, entry->happens);
	if (safety_is_overruled(backend, entry->name)) {
		gp_device_say(info, GP_MECHANISM_NONE, true,
			      "safety/%s is overruled by gpreempt.conf: preempting may hang or reset this GPU",
			      entry->name);
		return;
	}
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
	struct gp_error error = { "" };
	int r = safety ? gp_safety_read(safety, &error) : -ENOMEM;

	for (uint32_t i = 0; i < count; i++) {
		const struct gp_safety_entry *entry;
		struct gp_safety_part part;

		if (r) {
			gp_device_say(&infos[i], GP_MECHANISM_NONE, false,
				      "the daemon cannot read the list of unsafe combinations: %.120s", error.text);
			continue;
		}
		gp_safety_look(&nodes[i], "/sys", &part);
		entry = gp_safety_find(safety, &part);
		if (entry)
			safety_apply(backend, entry, &infos[i]);
	}
}
