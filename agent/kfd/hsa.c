/* SPDX-License-Identifier: MIT */
/*
 * The runtime's API table: the agent hooks doorbells, waits and copies. ROCr hands the table to OnLoad(). This file
 * describes its layout by slots, chosen by each table's own major version and bounded by its minor version, which is
 * its size in bytes.
 *
 * Slots (0 is the first after the 16 bytes of version), compared with hsa_api_trace.h of ROCr 5.0 to 6.2 and in
 * test/unit and test/e2e with Debian's: core major 1 and 2 alike: store_relaxed 41, store_screlease 42, wait_relaxed
 * 43, wait_scacquire 44, queue_create 7, agent_get_info 6, system_get_info 2. AMD extension: async_copy 15 in all;
 * async_copy_on_engine came as 16 in ROCr 5.6, in the middle of major 1: the size tells (51 entries before, 55 since).
 * With an unknown major the agent hooks nothing, and its log says so.
 */
#include <errno.h>
#include <string.h>
#include "agent/export.h"
#include "agent/kfd/hsa.h"
#include "agent/kfd/kfd.h"
#include "agent/log.h"

/* amd_signal_t and amd_queue_t, as far as a doorbell needs them. */
struct hsa_signal {
	int64_t kind; /* negative: a doorbell */
	uint64_t value, mailbox;
	uint32_t event_id, reserved;
	uint64_t start, end;
	uint64_t queue; /* amd_queue_t */
};
#define HSA_QUEUE_WRITE_INDEX 56u

typedef void (*hsa_store_t)(uint64_t signal, int64_t value);
typedef int64_t (*hsa_wait_t)(uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t state);
typedef uint32_t (*hsa_agent_info_t)(uint64_t agent, uint32_t attribute, void *ret_value);
typedef uint32_t (*hsa_queue_create_t)(uint64_t agent, uint32_t size, uint32_t type, void *callback, void *data,
				       uint32_t private_size, uint32_t group_size, void **ret_queue);
typedef uint32_t (*hsa_system_info_t)(uint32_t attribute, void *ret_value);
typedef uint32_t (*hsa_copy_t)(void *to, uint64_t to_agent, const void *from, uint64_t from_agent, size_t size,
			       uint32_t dep_count, const uint64_t *deps, uint64_t signal);
typedef uint32_t (*hsa_copy_on_t)(void *to, uint64_t to_agent, const void *from, uint64_t from_agent, size_t size,
				  uint32_t dep_count, const uint64_t *deps, uint64_t signal, uint32_t engine,
				  bool force);

static struct {
	hsa_store_t store_relaxed, store_release;
	hsa_wait_t wait_relaxed, wait_acquire;
	hsa_agent_info_t agent_info;
	hsa_queue_create_t queue_create;
	hsa_copy_t copy;
	hsa_copy_on_t copy_on;
	struct gp_hsa_table *core, *ext;
} hsa_real;

/* Returns whether the caller makes the runtime's own store. */
static inline bool hsa_doorbell(uint64_t handle, int64_t value)
{
	const struct hsa_signal *signal = (const struct hsa_signal *)handle;
	const uint8_t *queue;
	struct gp_doorbell *doorbell;

	if (__builtin_expect(!handle || signal->kind >= 0, 0))
		return true;
	doorbell = gp_doorbell_find(signal->queue);
	if (!doorbell)
		return true;
	queue = (const uint8_t *)(uintptr_t)signal->queue;
	return gp_doorbell_ring(
		doorbell, handle, (uint64_t)value,
		__atomic_load_n((const uint64_t *)(const void *)(queue + HSA_QUEUE_WRITE_INDEX), __ATOMIC_RELAXED));
}

static void hsa_store_relaxed(uint64_t signal, int64_t value)
{
	if (hsa_doorbell(signal, value))
		hsa_real.store_relaxed(signal, value);
}

static void hsa_store_release(uint64_t signal, int64_t value)
{
	if (hsa_doorbell(signal, value))
		hsa_real.store_release(signal, value);
}

static int64_t hsa_wait_relaxed(uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t state)
{
	int64_t r = hsa_real.wait_relaxed(signal, condition, value, timeout, state);

	gp_sample_after_wait();
	return r;
}

static int64_t hsa_wait_acquire(uint64_t signal, uint32_t condition, int64_t value, uint64_t timeout, uint32_t state)
{
	int64_t r = hsa_real.wait_acquire(signal, condition, value, timeout, state);

	gp_sample_after_wait();
	return r;
}

/* Kernels may ring a queue that the application creates: they read the address of its doorbell and cannot write to a
 * page of the agent's. So the agent never watches it (trap.c). The runtime creates its own queues without this
 * function. */
static uint32_t hsa_queue_create(uint64_t agent, uint32_t size, uint32_t type, void *callback, void *data,
				 uint32_t private_size, uint32_t group_size, void **ret_queue)
{
	uint32_t r = hsa_real.queue_create(agent, size, type, callback, data, private_size, group_size, ret_queue);
	const struct gp_doorbell *doorbell;

	if (r || !ret_queue || !*ret_queue)
		return r;
	gp_agent_lock();
	doorbell = gp_doorbell_find((uintptr_t)*ret_queue);
	if (doorbell && gp_slots[doorbell->slot].used)
		gp_slots[doorbell->slot].unwatchable = true;
	gp_agent_unlock();
	return r;
}

#define HSA_AGENT_INFO_DEVICE 17u
#define HSA_DEVICE_GPU        1u
#define HSA_SYSTEM_MAJOR      0u
#define HSA_SYSTEM_MINOR      1u

static void hsa_announce(uint64_t to_agent, uint64_t from_agent, size_t size)
{
	uint32_t to = 0, from = 0;

	if (!gp_agent.copy_hint || hsa_real.agent_info(to_agent, HSA_AGENT_INFO_DEVICE, &to) ||
	    hsa_real.agent_info(from_agent, HSA_AGENT_INFO_DEVICE, &from))
		return;
	if (to == HSA_DEVICE_GPU && from != HSA_DEVICE_GPU)
		gp_doorbell_announce_copy(size);
}

static uint32_t hsa_copy(void *to, uint64_t to_agent, const void *from, uint64_t from_agent, size_t size,
			 uint32_t dep_count, const uint64_t *deps, uint64_t signal)
{
	hsa_announce(to_agent, from_agent, size);
	return hsa_real.copy(to, to_agent, from, from_agent, size, dep_count, deps, signal);
}

static uint32_t hsa_copy_on(void *to, uint64_t to_agent, const void *from, uint64_t from_agent, size_t size,
			    uint32_t dep_count, const uint64_t *deps, uint64_t signal, uint32_t engine, bool force)
{
	hsa_announce(to_agent, from_agent, size);
	return hsa_real.copy_on(to, to_agent, from, from_agent, size, dep_count, deps, signal, engine, force);
}

bool gp_hsa_layout(uint32_t core_major, uint32_t core_minor, uint32_t ext_major, uint32_t ext_minor,
		   struct gp_hsa_layout *ret_layout)
{
	struct gp_hsa_layout layout = { .copy = GP_HSA_NO_SLOT, .copy_on = GP_HSA_NO_SLOT };

	if (core_major < 1u || core_major > 2u || core_minor < GP_HSA_TABLE_SIZE(GP_HSA_CORE_COUNT))
		return false;
	layout.system_info = 2;
	layout.agent_info = 6;
	layout.queue_create = 7;
	layout.store_relaxed = 41;
	layout.store_release = 42;
	layout.wait_relaxed = 43;
	layout.wait_acquire = 44;
	if ((ext_major == 1u || ext_major == 2u) && ext_minor >= GP_HSA_TABLE_SIZE(GP_HSA_EXT_COUNT_MIN))
		layout.copy = 15;
	if ((ext_major == 1u || ext_major == 2u) && ext_minor >= GP_HSA_TABLE_SIZE(GP_HSA_EXT_COUNT_ENGINE))
		layout.copy_on = 16;
	*ret_layout = layout;
	return true;
}

/* Puts the agent's function into a slot and keeps the old one. After a second hsa_init the agent's is already there. */
static void hsa_hook(struct gp_hsa_table *table, uint32_t slot, void *ours, void *keep)
{
	void *now;

	if (slot == GP_HSA_NO_SLOT)
		return;
	memcpy(&now, &table->functions[slot], sizeof(now));
	if (now == ours)
		return;
	memcpy(keep, &now, sizeof(now));
	table->functions[slot] = ours;
}

static void hsa_unhook(struct gp_hsa_table *table, uint32_t slot, const void *ours, const void *kept)
{
	if (slot != GP_HSA_NO_SLOT && table->functions[slot] == ours)
		memcpy(&table->functions[slot], kept, sizeof(void *));
}

static struct gp_hsa_layout hsa_layout;

/* "HSA 1.1, tables 1/1016 1/400". */
static void hsa_describe(const struct gp_hsa_table *core, const struct gp_hsa_table *ext)
{
	hsa_system_info_t info;
	uint16_t major = 0, minor = 0;
	const uint32_t numbers[6] = { 0, 0, core->major, core->minor, ext->major, ext->minor };
	static const char *const between[7] = { "HSA ", ".", ", tables ", "/", " ", "/", "" };
	char text[GP_WIRE_NAME_SIZE] = "";
	uint32_t at = 0;

	memcpy(&info, &core->functions[hsa_layout.system_info], sizeof(info));
	info(HSA_SYSTEM_MAJOR, &major);
	info(HSA_SYSTEM_MINOR, &minor);
	for (uint32_t i = 0; i < 6u; i++) {
		uint32_t value = i == 0 ? major : i == 1u ? minor : numbers[i], divisor = 1;

		memcpy(text + at, between[i], strlen(between[i]));
		at += (uint32_t)strlen(between[i]);
		while (value / divisor >= 10u && divisor < 1000000u)
			divisor *= 10u;
		for (; divisor && at < sizeof(text) - 12u; divisor /= 10u)
			text[at++] = (char)('0' + value / divisor % 10u);
	}
	gp_attr_name(gp_agent.runtime, text);
	gp_log(text);
}

GP_EXPORT bool OnLoad(struct gp_hsa_root *root, uint64_t version, uint64_t failed_count, const char *const *failed);
GP_EXPORT void OnUnload(void);
GP_EXPORT extern const uint32_t HSA_AMD_TOOL_PRIORITY;

/* ROCr 6 loads preloaded libraries that export this. A low number loads early, so that profilers wrap the agent and not
 * the agent them. */
const uint32_t HSA_AMD_TOOL_PRIORITY = 10;

bool OnLoad(struct gp_hsa_root *root, uint64_t version, uint64_t failed_count, const char *const *failed)
{
	(void)version;
	(void)failed_count;
	(void)failed;
	if (!gp_agent_ready() || !root || root->version.minor < offsetof(struct gp_hsa_root, ext) + sizeof(void *) ||
	    !root->core || !root->ext)
		return true;
	if (!gp_hsa_layout(root->core->major, root->core->minor, root->ext->major, root->ext->minor, &hsa_layout)) {
		gp_log2("hsa: a table of an unknown version is left alone: core major, minor", root->core->major,
			root->core->minor);
		return true;
	}
	memcpy(&hsa_real.agent_info, &root->core->functions[hsa_layout.agent_info], sizeof(void *));
	hsa_describe(root->core, root->ext);
	hsa_hook(root->core, hsa_layout.store_relaxed, hsa_store_relaxed, &hsa_real.store_relaxed);
	hsa_hook(root->core, hsa_layout.store_release, hsa_store_release, &hsa_real.store_release);
	hsa_hook(root->core, hsa_layout.wait_relaxed, hsa_wait_relaxed, &hsa_real.wait_relaxed);
	hsa_hook(root->core, hsa_layout.wait_acquire, hsa_wait_acquire, &hsa_real.wait_acquire);
	hsa_hook(root->core, hsa_layout.queue_create, hsa_queue_create, &hsa_real.queue_create);
	hsa_hook(root->ext, hsa_layout.copy, hsa_copy, &hsa_real.copy);
	hsa_hook(root->ext, hsa_layout.copy_on, hsa_copy_on, &hsa_real.copy_on);
	hsa_real.core = root->core;
	hsa_real.ext = root->ext;
	gp_doorbell_store = hsa_real.store_release;
	gp_agent.hooked = true;
	return true;
}

void OnUnload(void)
{
	if (!hsa_real.core)
		return;
	/* The agent must hold nothing any more: the runtime is about to destroy its queues. */
	gp_agent_lock();
	gp_gates_open(GP_LOST_RUNTIME);
	gp_kfd_trap_off();
	gp_agent.hooked = false;
	gp_agent_unlock();
	gp_gate_delivered();
	hsa_unhook(hsa_real.core, hsa_layout.store_relaxed, hsa_store_relaxed, &hsa_real.store_relaxed);
	hsa_unhook(hsa_real.core, hsa_layout.store_release, hsa_store_release, &hsa_real.store_release);
	hsa_unhook(hsa_real.core, hsa_layout.wait_relaxed, hsa_wait_relaxed, &hsa_real.wait_relaxed);
	hsa_unhook(hsa_real.core, hsa_layout.wait_acquire, hsa_wait_acquire, &hsa_real.wait_acquire);
	hsa_unhook(hsa_real.core, hsa_layout.queue_create, hsa_queue_create, &hsa_real.queue_create);
	hsa_unhook(hsa_real.ext, hsa_layout.copy, hsa_copy, &hsa_real.copy);
	hsa_unhook(hsa_real.ext, hsa_layout.copy_on, hsa_copy_on, &hsa_real.copy_on);
	hsa_real.core = NULL;
}
