/* SPDX-License-Identifier: MIT */
/*
 * Drivers of devices. struct gp_driver_calls: the application's calls that a driver's code looks at before the agent
 * knows whose device the process uses. struct gp_driver (agent.h): how the agent drives the queues of the device that
 * the process uses. The rest of the agent knows drivers only by these two. A new driver is a word in the list.
 */
#ifndef GP_AGENT_DRIVER_H
#define GP_AGENT_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

/* X(name): each has a struct gp_driver_calls gp_driver_calls_<name>. */
#define GP_DRIVER_LIST(X) X(kfd) X(drm) X(nvidia)

#define GP_DRIVER_ENUM(name) GP_DRIVER_##name,
enum gp_driver_number { GP_DRIVER_LIST(GP_DRIVER_ENUM) GP_DRIVER_COUNT };
#undef GP_DRIVER_ENUM

/* The caller holds no lock unless a comment says so. Only ioctl may wait. */
struct gp_driver_calls {
	uint8_t ioctl_letter; /* _IOC_TYPE of the driver's requests; other drivers may use it too */
	/* Handles the driver's requests that the agent looks at; forwards all others. */
	int (*ioctl)(int fd, unsigned long request, void *arg);
	/* Mappings that the agent reads. All four are NULL if it reads none of this driver. The last two are called
	 * with the lock held. */
	bool (*map_touches)(uint64_t address, uint64_t length);
	bool (*map_is_expected)(void);
	void (*map_forget)(uint64_t address, uint64_t length);
	void (*map_add)(int fd, uint64_t address, uint64_t length);
	/* May run in signal handlers. file_closes: which of the driver's files the descriptors first to last belong to,
	 * as bits; asked before they are closed; the driver may use bits of its own. file_closed: called after that,
	 * unless it was 0. NULL: the driver's code does not need to know. */
	uint32_t (*file_closes)(unsigned first, unsigned last);
	void (*file_closed)(uint32_t files);
};

/* The files that are about to be closed, for each driver. */
struct gp_driver_files {
	uint32_t bits[GP_DRIVER_COUNT]; /* as its file_closes answered */
};

int gp_driver_ioctl(int fd, unsigned long request, void *arg, uint8_t letter);
bool gp_driver_map_touches(uint64_t address, uint64_t length);
void gp_driver_map_forget(uint64_t address, uint64_t length); /* lock held */
bool gp_driver_map_is_expected(void);
void gp_driver_map_add(int fd, uint64_t address, uint64_t length); /* lock held */
void gp_driver_files_close(unsigned first, unsigned last, struct gp_driver_files *ret_files);
void gp_driver_files_closed(const struct gp_driver_files *files);

#endif
