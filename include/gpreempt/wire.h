/* SPDX-License-Identifier: MIT */
/*
 * The messages between agents, commands and the daemon. One Unix socket (SOCK_SEQPACKET), one message per packet, fixed
 * layouts in the machine's own byte order: both ends are on one machine. docs/protocol.md describes when each message
 * is sent.
 *
 * Either end treats the other as hostile: the receiver checks every size, count and index, and ends the connection at a
 * message whose size is not that of its type. Unused fields are zero.
 *
 * Compatible change: new message types are appended and are sent only to a peer whose version knows them. Layouts never
 * change within GP_WIRE_VERSION. A daemon serves every version from GP_WIRE_VERSION_MIN on.
 */
#ifndef GPREEMPT_WIRE_H
#define GPREEMPT_WIRE_H

#include <gpreempt/mechanism.h>
#include <stdint.h>

#define GP_WIRE_VERSION     3u /* 2: GROUP, SLICED, SLICE; 3: SHARE, GP_ATTR_NEW */
#define GP_WIRE_VERSION_MIN 1u
#define GP_WIRE_MAGIC       0x67707265u /* "gpre" */
#define GP_WIRE_SIZE_MAX    32768u      /* of one message, header included */
#define GP_WIRE_QUEUE_MAX   1024u       /* queues of one client: slots of its page */
#define GP_WIRE_ORDER_MAX   512u
#define GP_WIRE_NAME_SIZE   64u              /* with the closing zero */
#define GP_WIRE_TIME_MAX    3600000000000ull /* of a deadline or budget: an hour, in ns */
#define GP_WIRE_TEXT_SIZE   512u             /* with the closing zero */
#define GP_WIRE_SOCKET      "/run/gpreempt/gpreempt.sock"
#define GP_WIRE_SOCKET_ENV  "GPREEMPT_SOCKET"

struct gp_wire_header {
	uint32_t magic;
	uint16_t version, type;
	uint32_t size;   /* of the whole message */
	uint32_t cookie; /* chosen by the sender of the request, repeated in the answer */
};

enum gp_wire_type {
	/* Agent to daemon. */
	GP_WIRE_HELLO = 1,        /* struct gp_wire_hello: first message of an agent */
	GP_WIRE_QUEUE_ADD = 2,    /* struct gp_wire_queue */
	GP_WIRE_QUEUE_CHANGE = 3, /* struct gp_wire_queue: the runtime or the API changed its attributes */
	GP_WIRE_QUEUE_REMOVE = 4, /* struct gp_wire_slot: the program is about to destroy the queue */
	GP_WIRE_APPLIED = 5,      /* struct gp_wire_applied */
	GP_WIRE_LOST = 6,         /* struct gp_wire_lost: the agent has opened gates without an order */
	GP_WIRE_SYNCED = 7,       /* no body: the agent has read all counters; cookie of the SYNC */
	GP_WIRE_RUNTIME = 8,      /* struct gp_wire_runtime: RUNTIME_ENABLE or _DISABLE is called; answer: RUNTIME_OK */
	GP_WIRE_ATTR = 9,         /* struct gp_wire_attr_message: the process's attributes, set through the API */
	GP_WIRE_GROUP = 10,       /* struct gp_wire_group: the handles of a queue of an NVIDIA device; after its ADD */
	GP_WIRE_SLICED = 11,      /* struct gp_wire_slice: the answer to a SLICE */
	GP_WIRE_SHARE = 12,       /* struct gp_wire_share: the process has exported or imported GPU memory or events */
	/* Daemon to agent. */
	GP_WIRE_WELCOME = 32,    /* struct gp_wire_welcome; descriptors: page (memfd), doorbell (eventfd) */
	GP_WIRE_REFUSED = 33,    /* struct gp_wire_text: why; the daemon ends the connection */
	GP_WIRE_ORDER = 34,      /* struct gp_wire_order: change these gates now */
	GP_WIRE_SAMPLE = 35,     /* struct gp_wire_sample: how often the agent reads the counters */
	GP_WIRE_SYNC = 36,       /* no body: the agent reads all counters once, now */
	GP_WIRE_MECHANISM = 37,  /* struct gp_wire_mechanism: the mechanism that changes the gates from now on */
	GP_WIRE_RUNTIME_OK = 38, /* no body: the daemon is no longer debugger, the agent may forward the call */
	GP_WIRE_ATTR_NOW = 39,   /* struct gp_wire_attr_message: the attributes in force (after HELLO, set, ceiling) */
	GP_WIRE_SLICE = 40, /* struct gp_wire_slice: how long the device runs this queue before it looks at others */
	/* Commands to the daemon, and its answers: control.h. */
	GP_WIRE_CONTROL = 64,
	GP_WIRE_GRANT = 65, /* struct gp_control_grant; answered as CONTROL is */
};

/* Attributes of a process or of a queue. valid: which fields count. */
#define GP_ATTR_PRIORITY 1u
#define GP_ATTR_WEIGHT   2u
#define GP_ATTR_DEADLINE 4u
#define GP_ATTR_BUDGET   8u
#define GP_ATTR_GANG     16u
#define GP_ATTR_SHARE    32u                               /* version 3 */
#define GP_ATTR_PROTECT  64u                               /* version 3 */
#define GP_ATTR_NEW      (GP_ATTR_SHARE | GP_ATTR_PROTECT) /* a daemon older than version 3 would end the connection */
struct gp_wire_attr {
	uint32_t valid;
	int32_t priority;                /* 0..99, higher is more urgent */
	uint32_t weight;                 /* 1..10000 */
	uint16_t share;                  /* guaranteed, in thousandths of the device; 0: none; below 1000 */
	uint16_t protect;                /* enum gp_protect; 0: the device's */
	uint64_t deadline_ns, budget_ns; /* device time */
	char gang[GP_WIRE_NAME_SIZE]; /* clients of one uid with the same name open and close together; empty: none */
};

#define GP_HELLO_DOORBELLS 1u /* the agent observes doorbells through the runtime's API table */
#define GP_HELLO_RUNTIME   2u /* the agent or the runtime called RUNTIME_ENABLE before the first queue */
#define GP_HELLO_AGAIN     4u /* reconnected: QUEUE_ADDs follow, with the gates' present state */
struct gp_wire_hello {
	struct gp_wire_header header;
	uint32_t version_min, version_max;
	uint32_t flags, mechanisms; /* GP_MECHANISM_BITs of the mechanisms that the agent itself can use */
	int32_t pid;                /* in the client's PID namespace: shown to people, never trusted */
	uint32_t reserved;
	struct gp_wire_attr attr;        /* what the process asks for; the daemon applies the user's ceiling */
	char name[GP_WIRE_NAME_SIZE];    /* of the program */
	char runtime[GP_WIRE_NAME_SIZE]; /* "HSA 1.1, tables 1/1016 1/400" or "CUDA, RM 580.159.04"; empty: unknown */
	char agent[GP_WIRE_NAME_SIZE];   /* its version */
};

struct gp_wire_welcome {
	struct gp_wire_header header;
	uint32_t version; /* both sides use it from here on */
	uint32_t mechanism;
	uint32_t lease_ms; /* the agent opens a closed gate with work after this long without a renewal */
	uint32_t page_size;
	char stream_map[GP_WIRE_NAME_SIZE]; /* what the runtime's queue priorities mean, unless the user has set it */
};

/* A queue as the ioctls to its driver describe it. slot: its place in the page; the agent chooses it. */
enum gp_wire_queue_kind { GP_WIRE_COMPUTE = 0, GP_WIRE_COPY = 1 };
#define GP_QUEUE_SEEN   1u /* the agent observes its doorbells */
#define GP_QUEUE_CLOSED 2u /* after a reconnection: its gate is closed now */
#define GP_QUEUE_GWS    4u /* uses global wave sync: the driver cannot suspend it */
#define GP_QUEUE_FETCH  8u /* version 2: completed counts what the device fetched, not what it finished */
/* Version 2: not to be gated: the agent cannot observe its work, or its program still sets it up. */
#define GP_QUEUE_BLIND 16u
struct gp_wire_queue {
	struct gp_wire_header header;
	uint32_t slot, generation; /* generation: how often the slot was used */
	uint32_t kind, flags;
	uint32_t gpu_id, queue_id;                  /* KFD's */
	uint32_t hw_priority;                       /* 0..15: the hardware priority that the runtime asked for */
	uint32_t ring_size;                         /* bytes */
	uint64_t ring, write_pointer, read_pointer; /* addresses in the client */
	struct gp_wire_attr attr;                   /* valid fields override the process's */
};
struct gp_wire_slot {
	struct gp_wire_header header;
	uint32_t slot, generation;
};

/* A queue of an NVIDIA device is a channel group: all streams of one context. The handles are the client's own and are
 * valid only on the file behind fd, so a false handle harms no other process. The agent sends GROUP again when channels
 * come or go. */
#define GP_WIRE_CHANNEL_MAX 64u
struct gp_wire_group {
	struct gp_wire_header header;
	uint32_t slot, generation;
	int32_t fd; /* descriptor number in the client: the agent's own duplicate, open while the queue exists */
	uint32_t client, subdevice, group, channel_count, reserved; /* RM handles */
	uint64_t slice_us;                                          /* what the application has set */
	uint32_t channels[GP_WIRE_CHANNEL_MAX];
};
struct gp_wire_slice { /* SLICE, SLICED */
	struct gp_wire_header header;
	uint32_t slot, generation;
	int32_t result; /* in SLICED: 0 or a negative errno */
	uint32_t reserved;
	uint64_t slice_us; /* 0: what the application has set */
};

/* What a process shares with others, by a name that all of them know. Clients of one user that have named the same
 * thing belong together. A false name affects only processes of the user who sent it. */
enum gp_share_kind {
	GP_SHARE_KFD_IPC = 1,   /* KFD's key of an exported buffer: 128 random bits */
	GP_SHARE_DMABUF = 2,    /* the device and the inode of a dmabuf */
	GP_SHARE_RM_CLIENT = 3, /* NVIDIA: handle of an RM client: its own, or the owner of an object it duplicated */
	GP_SHARE_MEMORY = 4,    /* the device and the inode of shared memory that the GPU may read and write */
	GP_SHARE_PROCESS = 5,   /* pid, in the client's PID namespace, of the exporter of a file: itself or another */
};
struct gp_wire_share {
	struct gp_wire_header header;
	uint32_t kind, reserved;
	uint64_t key[2]; /* unused words are zero */
};

/* Gate changes for one client on one device: closes first, in one call to the driver if the mechanism can. */
struct gp_wire_change {
	uint32_t slot, generation;
	uint32_t open;  /* 0 or 1 */
	int32_t result; /* in APPLIED: 0 or a negative errno */
};
struct gp_wire_order {
	struct gp_wire_header header;
	uint64_t seq; /* of the plan; the agent refuses an order older than the last one of this device (ESTALE) */
	uint32_t gpu_id, count;
	struct gp_wire_change changes[]; /* count, at most GP_WIRE_ORDER_MAX */
};
struct gp_wire_applied {
	struct gp_wire_header header;
	uint64_t seq;
	uint32_t gpu_id, count;
	uint64_t issue_ns, done_ns; /* CLOCK_MONOTONIC of the agent: before the first and after the last call */
	struct gp_wire_change changes[];
};
struct gp_wire_lost {
	struct gp_wire_header header;
	uint32_t why;   /* enum gp_lost */
	uint32_t count; /* of changes; open: the gate's present state */
	struct gp_wire_change changes[];
};
enum gp_lost { GP_LOST_LEASE = 1, GP_LOST_RUNTIME = 2, GP_LOST_DESTROY = 3 };

struct gp_wire_sample {
	struct gp_wire_header header;
	uint64_t interval_ns; /* real time, while a queue has work or is not GP_QUEUE_SEEN; 0: never */
};
struct gp_wire_mechanism {
	struct gp_wire_header header;
	uint32_t mechanism, reserved;
};
struct gp_wire_runtime {
	struct gp_wire_header header;
	uint32_t enable, reserved; /* 1: enabled, for information; 0: about to be disabled, needs RUNTIME_OK */
};
struct gp_wire_attr_message { /* ATTR, ATTR_NOW */
	struct gp_wire_header header;
	struct gp_wire_attr attr;
};
struct gp_wire_text {
	struct gp_wire_header header;
	char text[GP_WIRE_TEXT_SIZE];
};

#endif
