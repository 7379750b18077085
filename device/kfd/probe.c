/* SPDX-License-Identifier: MIT */
/* Which mechanisms work here, best first, and why not more: version and parameters of the driver, the daemon's rights,
 * a dry run. */
#include <stdio.h>
#include <string.h>
#include "device/kfd/debugger.h"
#include "device/kfd/gate.h"
#include "device/kfd/kfd.h"

#define PROBE_PARAMETERS  "/sys/module/amdgpu/parameters/"
#define PROBE_DILATION    "/sys/module/amdgpu/vgpu_dilation"
#define PROBE_DEBUG_MINOR 13u /* KFD 1.13, Linux 6.5: DBG_TRAP */
#define PROBE_NO_HWS      2u

static const uint32_t probe_order[] = {
	GP_MECHANISM_KERNEL, GP_MECHANISM_DEBUGGER, GP_MECHANISM_SELF,
	GP_MECHANISM_UPDATE, GP_MECHANISM_SUBMIT,   GP_MECHANISM_USERQ
}; /* best first */
#define PROBE_ORDER_COUNT (sizeof(probe_order) / sizeof(probe_order[0]))

static bool probe_parameter(const char *name, uint64_t *ret_value)
{
	char path[128];

	snprintf(path, sizeof(path), PROBE_PARAMETERS "%s", name);
	return !gp_kfd_read_number(path, ret_value);
}

/* Parameters that make preemption impossible, or that say how many processes and queues there may be. */
static bool probe_driver(struct gp_backend *backend, struct gp_device_info *info)
{
	uint64_t value;
	bool good = true;

	gp_device_say(info, GP_MECHANISM_NONE, true, "KFD interface %u.%u", backend->version_major,
		      backend->version_minor);
	if (probe_parameter("cwsr_enable", &value) && !value) {
		gp_device_say(info, GP_MECHANISM_NONE, false,
			      "amdgpu.cwsr_enable=0: running waves cannot be saved; boot with amdgpu.cwsr_enable=1");
		good = false;
	}
	if (probe_parameter("sched_policy", &value) && value == PROBE_NO_HWS) {
		gp_device_say(
			info, GP_MECHANISM_NONE, false,
			"amdgpu.sched_policy=2: without the hardware scheduler queues cannot be suspended; boot without it");
		good = false;
	}
	if (probe_parameter("hws_max_conc_proc", &value) && value && value < info->process_count_max) {
		info->process_count_max = (uint32_t)value;
		gp_device_say(info, GP_MECHANISM_NONE, true, "amdgpu.hws_max_conc_proc=%u: so many processes at once",
			      info->process_count_max);
	}
	if (probe_parameter("num_kcq", &value))
		gp_device_say(info, GP_MECHANISM_NONE, true,
			      "amdgpu.num_kcq=%llu: the kernel keeps that many hardware queues for itself",
			      (unsigned long long)value);
	if (probe_parameter("queue_preemption_timeout_ms", &value))
		gp_device_say(info, GP_MECHANISM_NONE, true,
			      "a preemption that takes longer than %llu ms resets the GPU", (unsigned long long)value);
	return good;
}

static bool probe_is_allowed(struct gp_backend *backend, struct gp_device_info *info, uint32_t mechanism)
{
	uint32_t wanted = backend->config.mechanisms;

	/* A configuration that allows submit also allows it for programs that create their queues through DRM. */
	if (wanted & GP_MECHANISM_BIT(GP_MECHANISM_SUBMIT))
		wanted |= GP_MECHANISM_BIT(GP_MECHANISM_USERQ);
	if (backend->is_submit_only && !gp_mechanism_has(mechanism, GP_STOPS_NOTHING)) {
		gp_device_say(
			info, mechanism, false,
			"not used: it stops programs that run, and share/safety says that this may hang a GPU of this machine");
		return false;
	}
	if (!wanted || wanted & GP_MECHANISM_BIT(mechanism))
		return true;
	gp_device_say(info, mechanism, false, "not wanted by the configuration (mechanism)");
	return false;
}

/* GP_MECHANISM_BITs of the mechanisms that work on this GPU. */
static uint32_t probe_mechanisms(struct gp_backend *backend, struct gp_device_info *info)
{
	bool trap = backend->version_major > 1 || backend->version_minor >= PROBE_DEBUG_MINOR;
	uint32_t usable = 0, mechanism;
	char why[GP_DEVICE_TEXT_SIZE];
	bool works;

	for (uint32_t i = 0; i < PROBE_ORDER_COUNT; i++) {
		mechanism = probe_order[i];
		if (!probe_is_allowed(backend, info, mechanism))
			continue;
		switch (mechanism) {
		case GP_MECHANISM_KERNEL:
			works = gp_kfd_gate_try(backend, info->gpu_id, why, sizeof(why));
			gp_device_say(info, mechanism, works, "%s", why);
			if (!works)
				continue;
			break;
		case GP_MECHANISM_DEBUGGER:
		case GP_MECHANISM_SELF:
			if (!trap) {
				gp_device_say(info, mechanism, false,
					      "KFD %u.%u has no DBG_TRAP; it came with 1.13 (Linux 6.5)",
					      backend->version_major, backend->version_minor);
				continue;
			}
			if (mechanism == GP_MECHANISM_DEBUGGER && !gp_kfd_debugger_try(backend, why, sizeof(why))) {
				gp_device_say(info, mechanism, false, "%s", why);
				continue;
			}
			gp_device_say(info, mechanism, true,
				      mechanism == GP_MECHANISM_DEBUGGER ?
					      "a dry run on a child of our own worked" :
					      "agents suspend their own queues; only they and the lease reopen them");
			break;
		case GP_MECHANISM_UPDATE:
			gp_device_say(info, mechanism, true, "one call per queue, on every kernel");
			break;
		case GP_MECHANISM_USERQ:
			gp_device_say(info, mechanism, true,
				      "holds doorbells back, of programs that make their queues through DRM");
			break;
		default:
			gp_device_say(info, mechanism, true, "holds doorbells back: nothing that runs is preempted");
			break;
		}
		usable |= GP_MECHANISM_BIT(mechanism);
	}
	return usable;
}

/* A client has one mechanism, whichever GPUs it uses: the best of those that work on every GPU. */
static void probe_choose(uint32_t common, uint32_t usable, struct gp_device_info *info)
{
	for (uint32_t i = 0; i < PROBE_ORDER_COUNT; i++) {
		uint32_t mechanism = probe_order[i];

		if (common & GP_MECHANISM_BIT(mechanism)) {
			info->mechanism = mechanism;
			return;
		}
		if (usable & GP_MECHANISM_BIT(mechanism))
			gp_device_say(info, mechanism, false,
				      "not used: it does not work on another GPU of this machine");
	}
}

void gp_kfd_probe(struct gp_backend *backend, struct gp_device_info *infos, uint32_t count)
{
	uint32_t usable[GP_DEVICE_MAX], common = 0;
	uint64_t dilation = 1;
	bool is_first = true;

	if (gp_kfd_read_number(PROBE_DILATION, &dilation) || !dilation || dilation > 1000000)
		dilation = 1;
	for (uint32_t i = 0; i < count; i++) {
		struct gp_device_info *info = &infos[i];

		info->dilation = (uint32_t)dilation;
		usable[i] = 0;
		if (!probe_driver(backend, info) || info->is_refused)
			continue;
		usable[i] = probe_mechanisms(backend, info);
		common = is_first ? usable[i] : common & usable[i];
		is_first = false;
	}
	backend->usable = common;
	for (uint32_t i = 0; i < count; i++) {
		struct gp_device_info *info = &infos[i];

		if (usable[i])
			probe_choose(common, usable[i], info);
		info->unit = gp_device_unit(info->mechanism);
		info->stops_all &= info->mechanism != GP_MECHANISM_SUBMIT;
		info->kernel_reopens = gp_mechanism_has(info->mechanism, GP_BY_DAEMON);
	}
}
