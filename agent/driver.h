/* SPDX-License-Identifier: MIT */
/*
 * Drivers of devices. struct gp_driver_calls: what a driver looks at before it is known whose device the process uses;
 * struct gp_driver (agent.h): how the queues of the one that it uses are driven. The agent knows drivers by these
 * alone.
 */
#ifndef GP_AGENT_DRIVER_H
#define GP_AGENT_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#define GP_DRIVER_MAX 4u

/* No lock is held unless said; nothing here waits. */
struct gp_driver_calls {
	uint8_t ioctl_letter; /* _IOC_TYPE of the driver's requests; others may use it too */
	/* What does not concern the driver is forwarded. */
	int (*ioctl)(int fd, unsigned long request, void *arg);
	/* Mappings that are read. NULL, and then all four: none ever is. The last two come with the lock held. */
	bool (*map_touches)(uint64_t address, uint64_t length);
	bool (*map_is_expected)(void);
	void (*map_forget)(uint64_t address, uint64_t length);
	void (*map_add)(int fd, uint64_t address, uint64_t length);
	/* In signal handlers too. Which files descriptors first to last are of, as bits, asked before they are closed;
	 * told after, if there were any. NULL: it does not matter. */
	uint32_t (*file_closes)(unsigned first, unsigned last);
	void (*file_closed)(uint32_t files);
};

/* What is about to be closed, for each driver. */
struct gp_driver_files {
	uint32_t of[GP_DRIVER_MAX];
};

int gp_driver_ioctl(int fd, unsigned long request, void *arg, uint8_t letter);
bool gp_driver_map_touches(uint64_t address, uint64_t length);
void gp_driver_map_forget(uint64_t address, uint64_t length); /* lock held */
bool gp_driver_map_is_expected(void);
void gp_driver_map_add(int fd, uint64_t address, uint64_t length); /* lock held */
void gp_driver_files_close(unsigned first, unsigned last, struct gp_driver_files *ret_files);
void gp_driver_files_closed(const struct gp_driver_files *files);

#endif
