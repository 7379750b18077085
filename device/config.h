/* SPDX-License-Identifier: MIT */
/* What gpreempt.conf says about the devices of one backend, and the keys of a backend's section. */
#ifndef GP_DEVICE_CONFIG_H
#define GP_DEVICE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/safety.h"

#define GP_DEVICE_OVERRULED_MAX 16u
#define GP_DEVICE_ROOT_SIZE     256u
#define GP_DEVICE_OWN_MAX       8u

/* The configuration for the devices of one backend; a backend ignores what does not apply to it. */
struct gp_device_config {
	uint32_t mechanisms;        /* GP_MECHANISM_BITs of the allowed ones; 0: all */
	bool criu;                  /* may set processes that cannot be debugged aside by the checkpoint interface */
	bool fetch_counters;        /* see struct gp_device_attr */
	uint64_t close_ns, open_ns; /* costs assumed until they are measured, device time */
	uint64_t switch_ns, short_ns, mid_ns, long_ns; /* see struct gp_device_info; whole microseconds */
	char root[GP_DEVICE_ROOT_SIZE];                /* prefix of /proc and /dev; "" except in tests */
	/* Entries of share/safety that root has overruled. */
	char overruled[GP_DEVICE_OVERRULED_MAX][GP_SAFETY_NAME_SIZE];
	uint32_t overruled_count;
	/* Keys that only this backend has; its folder says which is which. */
	union gp_device_own {
		uint64_t ns;    /* TIME, US */
		uint32_t count; /* COUNT */
	} own[GP_DEVICE_OWN_MAX];
};

/* A key of a backend's section in gpreempt.conf. The daemon sets it at start only. */
enum gp_device_key_type {
	GP_DEVICE_KEY_TIME,       /* uint64_t, ns; min..max */
	GP_DEVICE_KEY_US,         /* the same, and whole microseconds */
	GP_DEVICE_KEY_COUNT,      /* uint32_t; min..max */
	GP_DEVICE_KEY_TEXT,       /* char[max] */
	GP_DEVICE_KEY_COUNTERS,   /* bool: "completion" or "fetch" */
	GP_DEVICE_KEY_MECHANISMS, /* uint32_t: a set of the backend's mechanisms */
};

struct gp_device_key {
	const char *name;
	enum gp_device_key_type type;
	size_t offset; /* in struct gp_device_config */
	uint64_t min, max;
};
#define GP_DEVICE_KEY(name, type, field, min, max)                                             \
	{                                                                                      \
		name, GP_DEVICE_KEY_##type, offsetof(struct gp_device_config, field), min, max \
	}

#endif
