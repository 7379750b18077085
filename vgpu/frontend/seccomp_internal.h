/* SPDX-License-Identifier: MIT */
/* Inside the seccomp front end: what its files share. Others use seccomp.h. */
#ifndef GP_VGPU_SECCOMP_H
#define GP_VGPU_SECCOMP_H

#include <linux/seccomp.h>
#include "vgpu/frontend/seccomp.h"
#include "vgpu/frontend/seccomp_calls.h"
#include "vgpu/frontend/seccomp_files.h"
#include "vgpu/files/store.h"

#define GP_SECCOMP_LISTENER_MAX 1024u
#define GP_SECCOMP_TRACED_MAX   64u
#define GP_SECCOMP_LENT_MAX     256u

/* An ioctl under way: from its notification to its answer. */
struct gp_seccomp_pending {
	struct gp_seccomp_pending *next;
	uint64_t token, id;
	uint32_t listener;
	uint64_t generation; /* of the listener */
	uint64_t argument;
	pid_t thread;
	/* Only while it waits (seccomp_wait.c). */
	int status; /* /proc/THREAD/status */
	uint64_t begin_ns, look_ns;
};

struct gp_seccomp_listener {
	int fd; /* -1: free */
	uint64_t generation;
	int lender; /* the control connection of its `vgpu run`; -1: gone */
};

/* /proc/PID/mem of a process, lent by its `vgpu run` (seccomp_lent.c). */
struct gp_seccomp_lent {
	pid_t pid; /* 0: free */
	int fd;    /* -1: not there yet, or refused */
	bool asked;
	int lender; /* who was asked */
};
struct gp_seccomp_postponed;

/* Whose waiting was last seen traced, and by whom: each is interrupted once for it. */
struct gp_seccomp_traced {
	pid_t thread, tracer;
};

struct gp_seccomp {
	struct gp_vnode *node;
	struct gp_vgpu_store *store;
	struct gp_seccomp_listener listeners[GP_SECCOMP_LISTENER_MAX];
	uint32_t listener_count;
	uint64_t generation, token;
	struct gp_seccomp_files files;
	struct gp_seccomp_traced traced[GP_SECCOMP_TRACED_MAX];
	struct gp_seccomp_pending *pending; /* answers that are outstanding */
	struct seccomp_notif *notification; /* of the kernel's size, which may be larger than the header's */
	size_t notification_size;
	bool lending; /* the memory of clients is read through what is lent, never directly */
	struct gp_seccomp_lent lent[GP_SECCOMP_LENT_MAX];
	uint32_t lent_next;
	struct gp_seccomp_postponed *postponed; /* calls that wait for it, in their order */
	bool said_denied;                       /* the sentence about memory that cannot be read: once */
};

/* One notification, while it is decided. */
struct gp_seccomp_ask {
	struct gp_seccomp *seccomp;
	uint32_t listener;
	uint64_t id;
	pid_t thread;
	int nr;
	const __u64 *args;
};

void gp_seccomp_answer(const struct gp_seccomp_ask *ask, int64_t result); /* negative: errno */
void gp_seccomp_pass(const struct gp_seccomp_ask *ask);                   /* the kernel does the call itself */
/* Whether the caller still waits: until then its pid means nobody else. */
bool gp_seccomp_is_valid(const struct gp_seccomp_ask *ask);
/* The caller gets a descriptor of fd's file. 0 or more: its number, and the call is answered; negative: it is not. */
int gp_seccomp_give(const struct gp_seccomp_ask *ask, int fd, bool close_on_exec);
int gp_seccomp_read(const struct gp_seccomp_ask *ask, uint64_t address, void *ret_data, size_t size);
int gp_seccomp_write(const struct gp_seccomp_ask *ask, uint64_t address, const void *data, size_t size);
/* The process of that thread, made known if it is not, and counted as one more open. */
int gp_seccomp_process(struct gp_seccomp *seccomp, pid_t thread, struct gp_vproc **ret_process);

void gp_seccomp_dispatch(struct gp_seccomp *seccomp, uint32_t number, const struct seccomp_notif *notification);

/* seccomp_lent.c */
bool gp_seccomp_lent_is_needed(void);
/* Whether the call can be decided now; otherwise it has been put off. Of the notification just received. */
bool gp_seccomp_lent_is_ready(const struct gp_seccomp_ask *ask);
/* Between vfork and exec a process uses its parent's memory: what is opened then is not its own afterwards. */
bool gp_seccomp_is_sharing(pid_t pid);
int gp_seccomp_lent_fd(struct gp_seccomp *seccomp, pid_t thread); /* -1: none */
void gp_seccomp_lent_fini(struct gp_seccomp *seccomp);

/* seccomp_path.c */
void gp_seccomp_path(const struct gp_seccomp_ask *ask, const struct gp_seccomp_call *call);

/* seccomp_wait.c: calls whose answer takes long, watched for what would have interrupted them. */
void gp_seccomp_wait_begin(struct gp_seccomp *seccomp, struct gp_seccomp_pending *pending);
void gp_seccomp_wait_end(struct gp_seccomp_pending *pending);

#endif
