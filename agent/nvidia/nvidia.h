/* SPDX-License-Identifier: MIT */
/*
 * The NVIDIA side of the agent: what it knows of the resource manager (RM) in this process. The agent's lock guards it.
 *
 * A queue is a channel group with a compute object below one of its channels: one context. The agent makes no object,
 * maps and frees nothing of the application's; it calls a handful of controls on the application's own file.
 */
#ifndef GP_AGENT_NVIDIA_NVIDIA_H
#define GP_AGENT_NVIDIA_NVIDIA_H

#include <gpreempt/rm.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/agent.h"
#include "agent/fds.h"

#define GP_NVIDIA_NONE       UINT32_MAX
#define GP_NVIDIA_OBJECT_MAX 4096u /* a context has about 60 that are kept; chosen */

/* An object that is kept track of: clients, devices, subdevices, groups, channels, compute objects. */
struct gp_nvidia_object {
	bool used;
	bool off;        /* a channel the application itself has disabled */
	bool held;       /* a channel that we have disabled, perhaps: no second time (gate.c) */
	bool ending;     /* while it is found out what ends with another */
	bool going;      /* its RM_FREE is under way: no order touches it */
	bool unreadable; /* a channel whose parameters are of no known size; a group with one there is no room for */
	uint32_t client, parent, handle, class_id;
	uint32_t engine;         /* of groups and channels */
	uint32_t file;           /* of a group: which of our duplicates; GP_NVIDIA_NONE */
	struct gp_slot *slot;    /* of a group that is a queue */
	uint32_t entries, userd; /* of a channel: its ring, the memory of its registers */
	uint64_t userd_offset, ring;
};

/* A queue, beside its slot: by the slot's index. */
struct gp_nvidia_group {
	uint32_t client, group, subdevice;
	bool has_slice;                     /* slice_us is known */
	uint64_t slice_us;                  /* as the application has it */
	uint64_t slice_ours;                /* set by us; 0: it is the application's */
	bool restore_due;                   /* the application's could not be set again yet */
	uint64_t exact_count, coarse_count; /* entries that could be followed, and could not */
	uint32_t exact_run;                 /* since the last that could not */
	uint64_t gone;                      /* entries of channels that are gone */
	bool is_blind;                      /* not all of its channels are looked at */
	uint32_t looks;                     /* so far */
	uint64_t held_ns;                   /* since when nothing of it can run; 0: something can */
	uint64_t begun_ns;                  /* when it became a queue */
	uint64_t ran_ns;                    /* when its first kernel was seen to have run; 0: none has */
	uint64_t still_ns, still_wait_ns;   /* since when it has work and does not get on, and is not closed (watch) */
};

struct gp_nvidia {
	uint32_t epoch; /* the agent's, when this was written */
	bool probed, preemption_asked, is_full;
	const char *refused; /* why this driver is left alone; NULL: it is not */
	bool refused_due;    /* the daemon is not told yet */
	char version[32];
	uint64_t called_ns; /* the application's last call that was looked into */
	uint32_t file_clients[GP_FD_RM_MAX], file_counts[GP_FD_RM_MAX];
};
extern struct gp_nvidia gp_nvidia;
extern const struct gp_driver gp_nvidia_driver;
int gp_nvidia_ioctl(int fd, unsigned long request, void *arg); /* what does not concern us is forwarded */

/* file.c; no lock, and in signal handlers too */
uint32_t gp_nvidia_file_closes(unsigned first, unsigned last);
void gp_nvidia_file_closed(uint32_t files);
extern struct gp_nvidia_object gp_nvidia_objects[GP_NVIDIA_OBJECT_MAX];
extern struct gp_nvidia_group gp_nvidia_groups[GP_WIRE_QUEUE_MAX];

/* object.c */
bool gp_nvidia_class_is_kept(uint32_t class_id);
bool gp_nvidia_class_is_client(uint32_t class_id);
bool gp_nvidia_class_is_channel(uint32_t class_id);
bool gp_nvidia_class_is_compute(uint32_t class_id);
struct gp_nvidia_object *gp_nvidia_object_add(const struct gp_nvidia_object *object); /* NULL: the table is full */
struct gp_nvidia_object *gp_nvidia_object_find(uint32_t client, uint32_t handle);
bool gp_nvidia_object_is_below(const struct gp_nvidia_object *object, uint32_t client, uint32_t handle); /* or is it */
void gp_nvidia_object_remove(struct gp_nvidia_object *object);
uint32_t gp_nvidia_object_limit(void);
void gp_nvidia_objects_reset(void);

/* file.c: one duplicate per RM client that has groups. */
bool gp_nvidia_file_is_rm(int fd);
uint32_t gp_nvidia_file_add(int fd, uint32_t client); /* GP_NVIDIA_NONE: no room */
void gp_nvidia_file_release(uint32_t file);
/* Ours, after a look whether it is; taken anew where the application has closed it. -ENOENT: nobody here has that file;
 * others: it cannot be said. */
int gp_nvidia_file_fd(uint32_t file);
void gp_nvidia_files_tidy(void); /* files that only we have open end, with their clients */

/* capture.c */
void gp_nvidia_client_gone(uint32_t client);

/* gate.c */
struct gp_nvidia_call {
	uint32_t file, client, object, command;
	void *params;
	uint32_t size;
};
int gp_nvidia_control(const struct gp_nvidia_call *call); /* 0 or -errno */
int gp_nvidia_control_on(int fd, const struct gp_nvidia_call *call);
void gp_nvidia_change(uint32_t mechanism, struct gp_slot *const *slots, uint32_t count, bool open, int *results);
void gp_nvidia_release(void);
void gp_nvidia_recover(void);
void gp_nvidia_enable_one(const struct gp_slot *slot, struct gp_nvidia_object *channel);
void gp_nvidia_close_rest(struct gp_slot *slot); /* those of a closed group that are not closed yet */
/* Channels of the slot's group; at most GP_WIRE_CHANNEL_MAX are written, all are counted. */
uint32_t gp_nvidia_channels(const struct gp_slot *slot, uint32_t *ret_channels);

/* slice.c */
int gp_nvidia_slice(struct gp_slot *slot, uint64_t slice_us);
int gp_nvidia_slice_get(const struct gp_slot *slot, uint64_t *ret_slice_us);
int gp_nvidia_slice_restore(struct gp_slot *slot);
void gp_nvidia_slice_again(struct gp_slot *slot); /* the application has set its own: ours comes back over it */

/* probe.c */
void gp_nvidia_probe(const struct gp_slot *slot);
void gp_nvidia_probe_preemption(const struct gp_slot *slot); /* at the first order: CUDA has set up by then */
void gp_nvidia_refuse(const char *why);
void gp_nvidia_refused_tidy(void);
void gp_nvidia_name(void); /* writes the agent's runtime string */

/* map.c, beside what agent.h has */
/* map.c: the questions need no lock, the rest does. */
bool gp_nvidia_map_touches(uint64_t address, uint64_t length);
void gp_nvidia_map_forget(uint64_t address, uint64_t length);
bool gp_nvidia_map_is_expected(void);
void gp_nvidia_map_add(int fd, uint64_t address, uint64_t length);
void gp_nvidia_map_expect(const struct gp_rm_map *args);            /* an mmap() of its descriptor follows */
void gp_nvidia_map_forget_memory(uint32_t client, uint32_t handle); /* a memory, a device, a client ends */
void gp_nvidia_maps_reset(void);
/* Good while the lock is held. hint: where to look first, and where it was found. NULL: not within a mapping. */
const volatile void *gp_nvidia_map_find(uint64_t address, uint64_t size, uint32_t *hint);
uint64_t gp_nvidia_map_of(uint32_t client, uint32_t memory, uint64_t offset, uint64_t size); /* 0: not mapped */

/* work.c */
bool gp_nvidia_work_add(const struct gp_nvidia_object *channel); /* false: no room, its work is not seen */
void gp_nvidia_work_remove(const struct gp_nvidia_object *channel, struct gp_slot *slot);
void gp_nvidia_work_reset(void);
void gp_nvidia_look_again(void); /* queues whose work could not be seen: there is something new */
void gp_nvidia_help(void);       /* queues that stand still though they are open */
void gp_nvidia_sample(struct gp_slot *const *slots, uint32_t count);

static inline struct gp_nvidia_group *gp_nvidia_group_of(const struct gp_slot *slot)
{
	return &gp_nvidia_groups[gp_slot_index(slot)];
}

#endif
