/* SPDX-License-Identifier: MIT */
/*
 * The NVIDIA side of the agent: what the agent knows of the resource manager (RM) in this process. The agent's lock
 * guards it.
 *
 * A queue is a channel group with a compute object below one of its channels: one context. The agent creates no object,
 * and maps and frees nothing of the application's; it calls a handful of controls on the application's own file.
 */
#ifndef GP_AGENT_NVIDIA_NVIDIA_H
#define GP_AGENT_NVIDIA_NVIDIA_H

#include <gpreempt/rm.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/agent.h"
#include "agent/fds.h"

#define GP_NVIDIA_NONE       UINT32_MAX
#define GP_NVIDIA_FD         GP_FD_FIRST(nvidia) /* the first of GP_FD_FILE_MAX: duplicates of /dev/nvidiactl */
#define GP_NVIDIA_OBJECT_MAX 4096u               /* a context has about 60 that the agent keeps; chosen */

/* An object that the agent keeps track of: client, device, subdevice, group, channel or compute object. */
struct gp_nvidia_object {
	bool used;
	bool off;        /* a channel that the application itself has disabled */
	bool held;       /* a channel that the agent may have disabled: it must not do so twice (gate.c) */
	bool ending;     /* scratch: the object ends together with the one being removed */
	bool going;      /* its RM_FREE is under way: no order touches it */
	bool unreadable; /* a channel with parameters of unknown size; a group with a channel too many */
	uint32_t client, parent, handle, class_id;
	uint32_t engine;         /* of groups and channels */
	uint32_t file;           /* of a group: which of the agent's duplicates; or GP_NVIDIA_NONE */
	struct gp_slot *slot;    /* of a group that is a queue */
	uint32_t entries, userd; /* of a channel: its ring, the memory of its registers */
	uint64_t userd_offset, ring;
};

/* What the agent knows of a queue beside its slot; by the slot's index. */
struct gp_nvidia_group {
	uint32_t client, group, subdevice;
	bool has_slice;                     /* slice_us is known */
	uint64_t slice_us;                  /* what the application has set */
	uint64_t slice_ours;                /* what the agent has set; 0: the application's is in force */
	bool restore_due;                   /* the application's slice is to be restored */
	uint64_t exact_count, coarse_count; /* entries that the agent could follow, and could not */
	uint32_t exact_run;                 /* entries followed since the last it could not */
	uint64_t gone;                      /* entries of channels that no longer exist */
	bool is_blind;                      /* the agent does not look at all of its channels */
	uint32_t looks;                     /* samples so far */
	uint64_t held_ns;                   /* since when none of its work can run; 0: some can */
	uint64_t begun_ns;                  /* when it became a queue */
	uint64_t ran_ns;                    /* when the agent first saw that a kernel had run; 0: not yet */
	uint64_t still_ns, still_wait_ns;   /* since when it is open with work and no progress; the wait */
};

struct gp_nvidia {
	uint32_t epoch; /* gp_agent.epoch for which this state holds */
	bool probed, preemption_asked, is_full;
	const char *refused; /* why the agent leaves this driver alone; NULL: it does not */
	bool refused_due;    /* the agent has not told the daemon yet */
	char version[32];
	uint64_t called_ns; /* of the application's last call that the agent looked into */
	uint32_t file_clients[GP_FD_FILE_MAX], file_counts[GP_FD_FILE_MAX];
	uint32_t lost_files; /* bits: files of which the agent has had no duplicate yet */
};
extern struct gp_nvidia gp_nvidia;
extern const struct gp_driver gp_nvidia_driver;
int gp_nvidia_ioctl(int fd, unsigned long request, void *arg); /* forwards what does not concern the agent */

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
/* Whether the object is the named one or below it. */
bool gp_nvidia_object_is_below(const struct gp_nvidia_object *object, uint32_t client, uint32_t handle);
void gp_nvidia_object_remove(struct gp_nvidia_object *object);
uint32_t gp_nvidia_object_limit(void);
void gp_nvidia_objects_reset(void);

/* file.c: one duplicate per RM client that has groups. */
bool gp_nvidia_file_is_rm(int fd);
uint32_t gp_nvidia_file_add(int fd, uint32_t client); /* GP_NVIDIA_NONE: no room */
void gp_nvidia_file_release(uint32_t file);
/* The agent's duplicate, checked first; duplicated anew if the application has closed it, or, if there is no descriptor
 * to spare, the application's own, which is good for one call. -ENOENT: no descriptor of the process has that file;
 * -EBADF: there is no such file, or the agent has changed nothing on it; other errors: not known now. */
int gp_nvidia_file_fd(uint32_t file);
int gp_nvidia_file_other(uint32_t file); /* the application's own that reaches the file's client; errors as above */
void gp_nvidia_files_tidy(void);         /* drops files that only the agent has open, with their clients */

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
void gp_nvidia_close_rest(struct gp_slot *slot); /* closes the channels of a closed group that are still enabled */
/* Channels of the slot's group: writes at most GP_WIRE_CHANNEL_MAX, returns the number of all. */
uint32_t gp_nvidia_channels(const struct gp_slot *slot, uint32_t *ret_channels);

/* slice.c */
int gp_nvidia_slice(struct gp_slot *slot, uint64_t slice_us);
int gp_nvidia_slice_get(int fd, const struct gp_slot *slot, uint64_t *ret_slice_us);
int gp_nvidia_slice_restore(struct gp_slot *slot);
void gp_nvidia_slice_again(struct gp_slot *slot); /* the application has set its own slice: sets the agent's again */

/* probe.c */
void gp_nvidia_probe(int fd, const struct gp_slot *slot);
void gp_nvidia_probe_preemption(const struct gp_slot *slot); /* at the first close: CUDA has set its mode by then */
void gp_nvidia_refuse(const char *why);
void gp_nvidia_refused_tidy(void);

/* map.c: touches and is_expected need no lock, the others do. */
bool gp_nvidia_map_touches(uint64_t address, uint64_t length);
void gp_nvidia_map_forget(uint64_t address, uint64_t length);
bool gp_nvidia_map_is_expected(void);
void gp_nvidia_map_add(int fd, uint64_t address, uint64_t length);
void gp_nvidia_map_expect(const struct gp_rm_map *args);            /* an mmap() of args' descriptor follows */
void gp_nvidia_map_forget_memory(uint32_t client, uint32_t handle); /* a memory object, a device or a client ends */
void gp_nvidia_maps_reset(void);
/* Valid while the lock is held. hint: where to look first; set to where it was found. NULL: not within a mapping. */
const volatile void *gp_nvidia_map_find(uint64_t address, uint64_t size, uint32_t *hint);
uint64_t gp_nvidia_map_of(uint32_t client, uint32_t memory, uint64_t offset, uint64_t size); /* 0: not mapped */

/* work.c */
bool gp_nvidia_work_add(const struct gp_nvidia_object *channel); /* false: no room, the agent cannot observe its work */
void gp_nvidia_work_remove(const struct gp_nvidia_object *channel, struct gp_slot *slot);
void gp_nvidia_work_reset(void);
void gp_nvidia_look_again(void); /* samples queues whose work it could not observe: something is new */
void gp_nvidia_help(void);       /* enables queues that make no progress though they are open */
void gp_nvidia_sample(struct gp_slot *const *slots, uint32_t count);

static inline struct gp_nvidia_group *gp_nvidia_group_of(const struct gp_slot *slot)
{
	return &gp_nvidia_groups[gp_slot_index(slot)];
}

#endif
