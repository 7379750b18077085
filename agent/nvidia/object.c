/* SPDX-License-Identifier: MIT */
/* RM's objects in this process, as far as queues depend on them: a table with parents, searched from the start. Calls
 * that reach it are rare: programs create and free contexts rarely, and submit work without any call. */
#include <string.h>
#include "agent/log.h"
#include "agent/nvidia/nvidia.h"

#define OBJECT_DEPTH_MAX 8u /* client, device, group, channel, compute: 5; ends a loop of false parents */

struct gp_nvidia_object gp_nvidia_objects[GP_NVIDIA_OBJECT_MAX];
static uint32_t object_limit;

bool gp_nvidia_class_is_client(uint32_t class_id)
{
	return class_id <= GP_RM_CLASS_ROOT_MAX || class_id == GP_RM_CLASS_CLIENT;
}

static bool object_class_is_of(uint32_t class_id, uint32_t family)
{
	return class_id >= GP_RM_CLASS_MIN && class_id <= 0xffffu && (class_id & 0xffu) == family;
}

bool gp_nvidia_class_is_channel(uint32_t class_id)
{
	return object_class_is_of(class_id, GP_RM_FAMILY_CHANNEL);
}

bool gp_nvidia_class_is_compute(uint32_t class_id)
{
	return object_class_is_of(class_id, GP_RM_FAMILY_COMPUTE);
}

bool gp_nvidia_class_is_kept(uint32_t class_id)
{
	return gp_nvidia_class_is_client(class_id) || class_id == GP_RM_CLASS_DEVICE ||
	       class_id == GP_RM_CLASS_SUBDEVICE || class_id == GP_RM_CLASS_GROUP || class_id == GP_RM_CLASS_MIG ||
	       gp_nvidia_class_is_channel(class_id) || gp_nvidia_class_is_compute(class_id);
}

uint32_t gp_nvidia_object_limit(void)
{
	return object_limit;
}

struct gp_nvidia_object *gp_nvidia_object_find(uint32_t client, uint32_t handle)
{
	for (uint32_t i = 0; i < object_limit; i++) {
		struct gp_nvidia_object *object = &gp_nvidia_objects[i];

		if (object->used && object->handle == handle && object->client == client)
			return object;
	}
	return NULL;
}

struct gp_nvidia_object *gp_nvidia_object_add(const struct gp_nvidia_object *object)
{
	for (uint32_t i = 0; i < GP_NVIDIA_OBJECT_MAX; i++) {
		if (gp_nvidia_objects[i].used)
			continue;
		gp_nvidia_objects[i] = *object;
		gp_nvidia_objects[i].used = true;
		if (i >= object_limit)
			object_limit = i + 1u;
		return &gp_nvidia_objects[i];
	}
	return NULL;
}

bool gp_nvidia_object_is_below(const struct gp_nvidia_object *object, uint32_t client, uint32_t handle)
{
	if (!object->used || object->client != client)
		return false;
	for (uint32_t depth = 0; object && depth < OBJECT_DEPTH_MAX; depth++) {
		if (object->handle == handle)
			return true;
		object = gp_nvidia_object_find(client, object->parent);
	}
	/* Every object of a client is below the client, also if its parent is not known. */
	return handle == client;
}

void gp_nvidia_object_remove(struct gp_nvidia_object *object)
{
	object->used = false;
	while (object_limit && !gp_nvidia_objects[object_limit - 1u].used)
		object_limit--;
}

void gp_nvidia_objects_reset(void)
{
	memset(gp_nvidia_objects, 0, object_limit * sizeof(gp_nvidia_objects[0]));
	object_limit = 0;
}
