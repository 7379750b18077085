/* SPDX-License-Identifier: MIT */
/* Which mechanisms work here, best first, and why not more. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "device/nvidia/nvidia.h"

#define PROBE_DRIVER_MEASURED 580u /* docs/measurements/h200-2026-11-15.md */
#define PROBE_DRIVER_MIN      470u /* chosen: older branches are out of support and untested */

/* What keeps the daemon from scheduling a GPU. */
static bool probe_device(const struct gp_backend *backend, const struct gp_nvidia_gpu *gpu, pid_t mps,
			 struct gp_device_info *info)
{
	const struct gp_nvidia_driver *driver = &backend->driver;
	bool good = true;

	gp_device_say(info, GP_MECHANISM_NONE, driver->major >= PROBE_DRIVER_MIN,
		      "NVIDIA driver %s, %s kernel modules%s", driver->version,
		      driver->is_open ? "open" : "proprietary",
		      driver->major < PROBE_DRIVER_MIN      ? ": older than 470, which is untested" :
		      driver->major < PROBE_DRIVER_MEASURED ? ": older than 580, with which it was measured" :
							      "");
	good &= driver->major >= PROBE_DRIVER_MIN;
	if (gpu->has_mig) {
		gp_device_say(
			info, GP_MECHANISM_NONE, false,
			"MIG: this GPU is cut into instances, which gpreempt does not schedule; nvidia-smi -mig 0");
		good = false;
	}
	if (mps) {
		gp_device_say(
			info, GP_MECHANISM_NONE, false,
			"MPS runs (process %d): its clients share one context, which cannot be scheduled apart; stop it and restart gpreemptd",
			(int)mps);
		good = false;
	}
	if (gpu->is_vgpu) {
		gp_device_say(info, GP_MECHANISM_NONE, false,
			      "a vGPU (%s): its host schedules it, gpreempt in the guest cannot", gpu->model);
		good = false;
	}
	return good;
}

/* Programs open these files, the daemon does not: nvidia-modprobe creates them on demand. */
static void probe_nodes(const struct gp_backend *backend, const struct gp_nvidia_gpu *gpu, struct gp_device_info *info)
{
	char path[sizeof(backend->root) + 32];

	snprintf(path, sizeof(path), "%s/dev/nvidiactl", backend->root);
	if (access(path, F_OK))
		gp_device_say(info, GP_MECHANISM_NONE, false,
			      "there is no /dev/nvidiactl: no program can use the GPU before nvidia-modprobe makes it");
	snprintf(path, sizeof(path), "%s/dev/nvidia%u", backend->root, gpu->minor);
	if (gpu->has_minor && access(path, F_OK))
		gp_device_say(info, GP_MECHANISM_NONE, false,
			      "there is no /dev/nvidia%u: no program can use the GPU before nvidia-modprobe makes it",
			      gpu->minor);
}

static bool probe_can_trace(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, sets) && sets[0].effective >> CAP_SYS_PTRACE & 1;
}

/* Whether pidfd_getfd() works at all, tried on the daemon itself. Rights over another process show when its file is
 * taken. */
static bool probe_borrow(char *why, size_t why_size)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0), fd = -1, pipes[2];

	if (pidfd >= 0 && !pipe2(pipes, O_CLOEXEC)) {
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, pipes[0], 0);
		close(pipes[0]);
		close(pipes[1]);
	}
	snprintf(why, why_size, "pidfd_getfd() does not work here: %s (Linux 5.6; a seccomp filter?)", strerror(errno));
	if (pidfd >= 0)
		close(pidfd);
	if (fd < 0)
		return false;
	close(fd);
	snprintf(why, why_size, "gpreemptd calls the driver itself, on the clients' files%s",
		 probe_can_trace() ? "" : "; without CAP_SYS_PTRACE those of its own user only");
	return true;
}

static void probe_mechanisms(struct gp_backend *backend, struct gp_device_info *info)
{
	uint32_t wanted = backend->config.mechanisms ? backend->config.mechanisms : UINT32_MAX;
	char why[GP_DEVICE_TEXT_SIZE];

	for (uint32_t mechanism = GP_MECHANISM_BORROW; mechanism <= GP_MECHANISM_CHANNEL; mechanism++) {
		bool good = wanted & GP_MECHANISM_BIT(mechanism);

		if (!good)
			snprintf(why, sizeof(why), "not wanted by the configuration (mechanism)");
		else if (mechanism == GP_MECHANISM_BORROW)
			good = probe_borrow(why, sizeof(why));
		else
			snprintf(why, sizeof(why),
				 "agents disable their own channels; they and the lease enable them again");
		gp_device_say(info, mechanism, good, "%s", why);
		if (!good)
			continue;
		backend->usable |= GP_MECHANISM_BIT(mechanism);
		if (info->mechanism == GP_MECHANISM_NONE)
			info->mechanism = mechanism;
	}
}

void gp_nvidia_probe_driver(struct gp_backend *backend, const struct gp_nvidia_gpu *gpus, struct gp_device_info *infos,
			    uint32_t count)
{
	pid_t mps = gp_nvidia_mps(backend->root);

	for (uint32_t i = 0; i < count; i++) {
		struct gp_device_info *info = &infos[i];

		if (probe_device(backend, &gpus[i], mps, info))
			probe_mechanisms(backend, info);
		probe_nodes(backend, &gpus[i], info);
		info->unit = gp_device_unit(info->mechanism);
	}
}
