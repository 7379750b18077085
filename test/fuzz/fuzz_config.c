/* SPDX-License-Identifier: MIT */
/* Fuzzer: the daemon's configuration. Whatever is accepted is within the bounds its users rely on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_config config;
	struct gp_error error;

	gp_config_init(&config);
	if (gp_config_parse(&config, (const char *)data, size, "fuzz", &error))
		return 0;
	if (!config.lease_ns || !config.client_max || !config.queue_max || config.queue_max > GP_QUEUE_MAX ||
	    config.ceiling_count > GP_CONFIG_CEILING_MAX || config.rule_count > GP_RULE_MAX || !config.policy[0] ||
	    strlen(config.socket) >= sizeof(config.socket))
		abort();
	for (uint32_t i = 0; gp_backends[i]; i++)
		for (const struct gp_device_key *key = gp_backends[i]->keys; key->name; key++)
			if (key->type == GP_DEVICE_KEY_COUNT) {
				uint32_t count;

				memcpy(&count, (const char *)&config.device[i] + key->offset, sizeof(count));
				if (count < key->min || count > key->max)
					abort();
			}
	for (uint32_t i = 0; i < config.rule_count; i++)
		if (config.rules[i].pattern[0] != '/' || config.rules[i].terms.ceiling > GP_PRIORITY_MAX ||
		    (i && config.rules[i].depth < config.rules[i - 1].depth))
			abort();
	for (uint32_t i = 0; i < config.ceiling_count; i++)
		if (config.ceilings[i].priority < 0 || config.ceilings[i].priority > GP_PRIORITY_MAX)
			abort();
	return 0;
}
