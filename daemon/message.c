/* SPDX-License-Identifier: MIT */
/* Owns the rules for messages from outside. Touches nothing but the message. */
#include <errno.h>
#include <string.h>
#include <gpreempt/control.h>
#include <gpreempt/sched.h>
#include "daemon/cgroup.h"
#include "daemon/message.h"

#define MESSAGE_ATTR_ALL                                                                                        \
	(GP_ATTR_PRIORITY | GP_ATTR_WEIGHT | GP_ATTR_DEADLINE | GP_ATTR_BUDGET | GP_ATTR_GANG | GP_ATTR_SHARE | \
	 GP_ATTR_PROTECT)

static bool message_is_string(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

int gp_message_check_attr(const struct gp_wire_attr *attr, struct gp_error *error)
{
	if (attr->valid & ~MESSAGE_ATTR_ALL || (attr->share && !(attr->valid & GP_ATTR_SHARE)))
		return gp_error_set(error, -EINVAL, "attributes with unknown fields");
	if (attr->protect > GP_PROTECT_THROUGHPUT || (attr->protect && !(attr->valid & GP_ATTR_PROTECT)))
		return gp_error_set(error, -EINVAL, "protect %u is not known, or not meant", attr->protect);
	if (!message_is_string(attr->gang, sizeof(attr->gang)))
		return gp_error_set(error, -EINVAL, "a gang's name without an end");
	/* grant_file.c keeps the name in a file of lines: a line end in it could forge a grant. */
	for (const char *at = attr->gang; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return gp_error_set(error, -EINVAL, "a gang's name with a control character");
	if (attr->valid & GP_ATTR_PRIORITY && (attr->priority < 0 || attr->priority > GP_PRIORITY_MAX))
		return gp_error_set(error, -EINVAL, "priority %d is not within 0..%d", attr->priority, GP_PRIORITY_MAX);
	if (attr->valid & GP_ATTR_WEIGHT && (!attr->weight || attr->weight > GP_WEIGHT_MAX))
		return gp_error_set(error, -EINVAL, "weight %u is not within 1..%u", attr->weight, GP_WEIGHT_MAX);
	if (attr->share >= 1000)
		return gp_error_set(error, -EINVAL, "a share of %u thousandths", attr->share);
	if (attr->valid & GP_ATTR_DEADLINE && attr->deadline_ns > GP_DURATION_NS_MAX)
		return gp_error_set(error, -EINVAL, "a deadline beyond one hour");
	if (attr->valid & GP_ATTR_BUDGET && attr->budget_ns > GP_DURATION_NS_MAX)
		return gp_error_set(error, -EINVAL, "a budget beyond one hour");
	return 0;
}

static int message_hello(const struct gp_wire_hello *hello, struct gp_error *error)
{
	if (hello->version_min > hello->version_max || hello->reserved)
		return gp_error_set(error, -EPROTO, "HELLO: versions %u to %u", hello->version_min, hello->version_max);
	if (hello->flags & ~(GP_HELLO_DOORBELLS | GP_HELLO_RUNTIME | GP_HELLO_AGAIN))
		return gp_error_set(error, -EPROTO, "HELLO: unknown flags %#x", hello->flags);
	if (!message_is_string(hello->name, sizeof(hello->name)) ||
	    !message_is_string(hello->runtime, sizeof(hello->runtime)) ||
	    !message_is_string(hello->agent, sizeof(hello->agent)))
		return gp_error_set(error, -EPROTO, "HELLO: a name without an end");
	return gp_message_check_attr(&hello->attr, error) ? -EPROTO : 0;
}

static int message_queue(const struct gp_wire_queue *queue, struct gp_error *error)
{
	if (queue->slot >= GP_WIRE_QUEUE_MAX)
		return gp_error_set(error, -EPROTO, "queue: slot %u of %u", queue->slot, GP_WIRE_QUEUE_MAX);
	if (queue->kind > GP_WIRE_COPY || queue->hw_priority > 15 ||
	    queue->flags & ~(GP_QUEUE_SEEN | GP_QUEUE_CLOSED | GP_QUEUE_GWS | GP_QUEUE_FETCH | GP_QUEUE_BLIND))
		return gp_error_set(error, -EPROTO, "queue: kind %u, flags %#x, hardware priority %u", queue->kind,
				    queue->flags, queue->hw_priority);
	return gp_message_check_attr(&queue->attr, error) ? -EPROTO : 0;
}

/* count changes after a head of head_size bytes fill the packet exactly. */
static int message_changes(size_t size, size_t head_size, uint32_t count, const struct gp_wire_change *changes,
			   struct gp_error *error)
{
	if (count > GP_WIRE_QUEUE_MAX || size != head_size + (size_t)count * sizeof(*changes))
		return gp_error_set(error, -EPROTO, "%u gate changes in %zu bytes", count, size);
	for (uint32_t i = 0; i < count; i++) {
		if (changes[i].slot >= GP_WIRE_QUEUE_MAX || changes[i].open > 1 || changes[i].result > 0)
			return gp_error_set(error, -EPROTO, "gate change %u of %u: slot %u, open %u, result %d", i,
					    count, changes[i].slot, changes[i].open, changes[i].result);
	}
	return 0;
}

static int message_applied(const struct gp_wire_applied *applied, size_t size, struct gp_error *error)
{
	if (size < sizeof(*applied))
		return gp_error_set(error, -EPROTO, "APPLIED of %zu bytes", size);
	if (applied->issue_ns > applied->done_ns)
		return gp_error_set(error, -EPROTO, "APPLIED: done before it was begun");
	if (applied->count > GP_WIRE_ORDER_MAX)
		return gp_error_set(error, -EPROTO, "APPLIED: %u gate changes", applied->count);
	return message_changes(size, sizeof(*applied), applied->count, applied->changes, error);
}

static int message_lost(const struct gp_wire_lost *lost, size_t size, struct gp_error *error)
{
	if (size < sizeof(*lost))
		return gp_error_set(error, -EPROTO, "LOST of %zu bytes", size);
	if (lost->why < GP_LOST_LEASE || lost->why > GP_LOST_DESTROY)
		return gp_error_set(error, -EPROTO, "LOST: unknown reason %u", lost->why);
	return message_changes(size, sizeof(*lost), lost->count, lost->changes, error);
}

static int message_group(const struct gp_wire_group *group, struct gp_error *error)
{
	if (group->slot >= GP_WIRE_QUEUE_MAX || group->fd < 0 || group->reserved)
		return gp_error_set(error, -EPROTO, "GROUP: slot %u, descriptor %d", group->slot, group->fd);
	if (group->channel_count > GP_WIRE_CHANNEL_MAX)
		return gp_error_set(error, -EPROTO, "GROUP: %u channels", group->channel_count);
	return 0;
}

static int message_sliced(const struct gp_wire_slice *slice, struct gp_error *error)
{
	if (slice->slot >= GP_WIRE_QUEUE_MAX || slice->reserved || slice->result > 0)
		return gp_error_set(error, -EPROTO, "SLICED: slot %u, result %d", slice->slot, slice->result);
	return 0;
}

static int message_share(const struct gp_wire_share *share, struct gp_error *error)
{
	if (share->kind < GP_SHARE_KFD_IPC || share->kind > GP_SHARE_PROCESS || share->reserved)
		return gp_error_set(error, -EPROTO, "SHARE: unknown kind %u", share->kind);
	return 0;
}

/* Whether grant_file.c can keep the text in one line and read it back. */
static bool message_is_word(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size || (length && (text[0] == ' ' || text[length - 1] == ' ')))
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return true;
}

static int message_control(const struct gp_control_request *request, struct gp_error *error)
{
	if (request->reserved || request->flags & ~1u)
		return gp_error_set(error, -EPROTO, "a command with unknown fields");
	/* The daemon keeps what SET sets like a grant: it must read back what it wrote. */
	if (!message_is_word(request->attr.gang, sizeof(request->attr.gang)))
		return gp_error_set(error, -EPROTO, "gang: no end, control characters, or blanks around it");
	return gp_message_check_attr(&request->attr, error) ? -EPROTO : 0;
}

int gp_message_check_grant(const struct gp_control_grant *grant, struct gp_error *error)
{
	if (grant->verb < GP_GRANT_ADD || grant->verb > GP_GRANT_LIST || grant->flags & ~GP_GRANT_FORCE)
		return gp_error_set(error, -EINVAL, "a grant with unknown fields");
	if (!message_is_word(grant->tag, sizeof(grant->tag)))
		return gp_error_set(error, -EINVAL, "tag: no end, control characters, or blanks around it");
	if (!message_is_word(grant->attr.gang, sizeof(grant->attr.gang)))
		return gp_error_set(error, -EINVAL, "gang: no end, control characters, or blanks around it");
	if (!message_is_string(grant->cgroup, sizeof(grant->cgroup)))
		return gp_error_set(error, -EINVAL, "a cgroup's path without an end");
	if (grant->ceiling < GP_GRANT_NO_CEILING || grant->ceiling > GP_PRIORITY_MAX)
		return gp_error_set(error, -EINVAL, "ceiling %d is not within 0..%d", grant->ceiling, GP_PRIORITY_MAX);
	if (grant->ceiling >= 0 && grant->attr.valid & GP_ATTR_PRIORITY && grant->attr.priority > grant->ceiling)
		return gp_error_set(error, -EINVAL, "priority %d is above the ceiling of %d", grant->attr.priority,
				    grant->ceiling);
	if (grant->for_ns > GP_GRANT_NS_MAX)
		return gp_error_set(error, -EINVAL, "a grant for more than ten years");
	if (grant->verb != GP_GRANT_LIST && (grant->pid < 0 || !grant->pid == !*grant->cgroup))
		return gp_error_set(error, -EINVAL, "a grant is for a process or for a cgroup");
	if (*grant->cgroup && gp_cgroup_check(grant->cgroup, error))
		return -EINVAL;
	return gp_message_check_attr(&grant->attr, error);
}

static size_t message_fixed_size(uint32_t type)
{
	switch (type) {
	case GP_WIRE_HELLO: return sizeof(struct gp_wire_hello);
	case GP_WIRE_QUEUE_ADD:
	case GP_WIRE_QUEUE_CHANGE: return sizeof(struct gp_wire_queue);
	case GP_WIRE_QUEUE_REMOVE: return sizeof(struct gp_wire_slot);
	case GP_WIRE_SYNCED: return sizeof(struct gp_wire_header);
	case GP_WIRE_RUNTIME: return sizeof(struct gp_wire_runtime);
	case GP_WIRE_ATTR: return sizeof(struct gp_wire_attr_message);
	case GP_WIRE_GROUP: return sizeof(struct gp_wire_group);
	case GP_WIRE_SLICED: return sizeof(struct gp_wire_slice);
	case GP_WIRE_SHARE: return sizeof(struct gp_wire_share);
	case GP_WIRE_CONTROL: return sizeof(struct gp_control_request);
	case GP_WIRE_GRANT: return sizeof(struct gp_control_grant);
	default: return 0;
	}
}

static int message_body(uint32_t type, const void *data, size_t size, struct gp_error *error)
{
	switch (type) {
	case GP_WIRE_HELLO: return message_hello(data, error);
	case GP_WIRE_QUEUE_ADD:
	case GP_WIRE_QUEUE_CHANGE: return message_queue(data, error);
	case GP_WIRE_QUEUE_REMOVE:
		if (((const struct gp_wire_slot *)data)->slot >= GP_WIRE_QUEUE_MAX)
			return gp_error_set(error, -EPROTO, "QUEUE_REMOVE: no such slot");
		return 0;
	case GP_WIRE_APPLIED: return message_applied(data, size, error);
	case GP_WIRE_LOST: return message_lost(data, size, error);
	case GP_WIRE_RUNTIME:
		if (((const struct gp_wire_runtime *)data)->enable > 1 ||
		    ((const struct gp_wire_runtime *)data)->reserved)
			return gp_error_set(error, -EPROTO, "RUNTIME: neither 0 nor 1");
		return 0;
	case GP_WIRE_ATTR:
		return gp_message_check_attr(&((const struct gp_wire_attr_message *)data)->attr, error) ? -EPROTO : 0;
	case GP_WIRE_GROUP: return message_group(data, error);
	case GP_WIRE_SLICED: return message_sliced(data, error);
	case GP_WIRE_SHARE: return message_share(data, error);
	case GP_WIRE_CONTROL: return message_control(data, error);
	default: return 0;
	}
}

int gp_message_check(const void *data, size_t size, struct gp_error *error)
{
	const struct gp_wire_header *header = data;
	size_t fixed;
	int r;

	if (size < sizeof(*header) || size > GP_WIRE_SIZE_MAX)
		return gp_error_set(error, -EPROTO, "a packet of %zu bytes", size);
	if (header->magic != GP_WIRE_MAGIC || header->size != size)
		return gp_error_set(error, -EPROTO, "not one of our messages");
	/* HELLO and commands may have a version that the daemon does not know: it answers them and does not end the
	 * connection. */
	if (header->version < GP_WIRE_VERSION_MIN || header->version > GP_WIRE_VERSION)
		if (header->type != GP_WIRE_HELLO && header->type != GP_WIRE_CONTROL && header->type != GP_WIRE_GRANT)
			return gp_error_set(error, -EPROTO, "version %u", header->version);
	fixed = message_fixed_size(header->type);
	if (!fixed && header->type != GP_WIRE_APPLIED && header->type != GP_WIRE_LOST)
		return gp_error_set(error, -EPROTO, "a message of unknown type %u", header->type);
	if (fixed && size != fixed)
		return gp_error_set(error, -EPROTO, "type %u has %zu bytes, not %zu", header->type, fixed, size);
	r = message_body(header->type, data, size, error);
	return r < 0 ? r : header->type;
}
