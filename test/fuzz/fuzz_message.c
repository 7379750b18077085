/* SPDX-License-Identifier: MIT */
/* Fuzzer: the daemon's check of messages. What it lets through is read field by field, as its users do: every string
 * ends, every count fits the packet. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <gpreempt/control.h>
#include "daemon/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int good)
{
	if (!good)
		abort();
}

static void read_attr(const struct gp_wire_attr *attr)
{
	must(strlen(attr->gang) < sizeof(attr->gang));
	must(!(attr->valid & GP_ATTR_PRIORITY) || (attr->priority >= 0 && attr->priority <= 99));
}

static void read_changes(const struct gp_wire_change *changes, uint32_t count, const char *end)
{
	must((const char *)(changes + count) == end);
	for (uint32_t i = 0; i < count; i++)
		must(changes[i].slot < GP_WIRE_QUEUE_MAX && changes[i].open <= 1 && changes[i].result <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_error error;
	/* Exactly as large as the packet, so that reading past its end is seen. */
	void *copy = calloc(1, size ? size : 1);
	const char *end = (const char *)copy + size;
	const struct gp_wire_hello *hello = copy;
	const struct gp_wire_applied *applied = copy;
	const struct gp_wire_lost *lost = copy;
	const struct gp_wire_group *group = copy;
	const struct gp_wire_slice *slice = copy;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	switch (gp_message_check(copy, size, &error)) {
	case GP_WIRE_HELLO:
		must(strlen(hello->name) < sizeof(hello->name) && strlen(hello->agent) < sizeof(hello->agent));
		read_attr(&hello->attr);
		break;
	case GP_WIRE_QUEUE_ADD:
	case GP_WIRE_QUEUE_CHANGE: read_attr(&((const struct gp_wire_queue *)copy)->attr); break;
	case GP_WIRE_APPLIED: read_changes(applied->changes, applied->count, end); break;
	case GP_WIRE_LOST: read_changes(lost->changes, lost->count, end); break;
	case GP_WIRE_GROUP:
		must(group->slot < GP_WIRE_QUEUE_MAX && group->channel_count <= GP_WIRE_CHANNEL_MAX && group->fd >= 0);
		must((const char *)(group + 1) == end);
		break;
	case GP_WIRE_SHARE:
		must(((const struct gp_wire_share *)copy)->kind >= GP_SHARE_KFD_IPC &&
		     ((const struct gp_wire_share *)copy)->kind <= GP_SHARE_PROCESS);
		must((const char *)copy + sizeof(struct gp_wire_share) == end);
		break;
	case GP_WIRE_SLICED: must(slice->slot < GP_WIRE_QUEUE_MAX && slice->result <= 0); break;
	case GP_WIRE_ATTR: read_attr(&((const struct gp_wire_attr_message *)copy)->attr); break;
	case GP_WIRE_GRANT:
		must((const char *)((const struct gp_control_grant *)copy + 1) == end);
		if (gp_message_check_grant(copy, &error))
			break;
		read_attr(&((const struct gp_control_grant *)copy)->attr);
		must(strlen(((const struct gp_control_grant *)copy)->cgroup) < GP_GRANT_CGROUP);
		break;
	case GP_WIRE_CONTROL: read_attr(&((const struct gp_control_request *)copy)->attr); break;
	default: break;
	}
	free(copy);
	return 0;
}
