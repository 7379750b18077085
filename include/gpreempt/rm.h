/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's resource manager (RM) as far as it is used here: ioctls of type 'F' on /dev/nvidiactl, objects named by
 * handles below a client, controls on them. Layouts as in the public headers of driver 580; each control's size must be
 * exactly the driver's, or it answers GP_RM_ERR_ARGUMENT. For the agent and the daemon, who call it, and for the tests'
 * fake, who answers.
 */
#ifndef GPREEMPT_RM_H
#define GPREEMPT_RM_H

#include <errno.h>
#include <stdint.h>

#define GP_RM_TYPE       'F'
#define GP_RM_MAJOR      195u /* of the device files */
#define GP_RM_MEMORY     0x27u
#define GP_RM_FREE       0x29u
#define GP_RM_CONTROL    0x2au
#define GP_RM_ALLOC      0x2bu
#define GP_RM_DUP        0x34u
#define GP_RM_MAP        0x4eu
#define GP_RM_UNMAP      0x4fu
#define GP_RM_VERSION    210u
#define GP_RM_XFER       211u /* carries another of these, for structures that are large */
#define GP_RM_REQUEST(n) (0xc0000000u | (unsigned)GP_RM_TYPE << 8 | (n)) /* | size << 16 */

struct gp_rm_memory {
	uint32_t client, parent, object, class_id, flags, reserved;
	uint64_t address, limit;
	uint32_t status, reserved_end;
	int32_t fd, reserved_fd;
};
struct gp_rm_free {
	uint32_t client, parent, object, status;
};
struct gp_rm_alloc { /* both forms begin so; this is the short one */
	uint32_t client, parent, object, class_id;
	uint64_t params;
	uint32_t params_size, status;
};
struct gp_rm_alloc_rights {
	uint32_t client, parent, object, class_id;
	uint64_t params, rights;
	uint32_t params_size, flags, status, reserved;
};
struct gp_rm_control {
	uint32_t client, object, command, flags;
	uint64_t params;
	uint32_t params_size, status;
};
struct gp_rm_dup {
	uint32_t client, parent, object, client_from, object_from, flags, status;
};
struct gp_rm_map { /* then mmap() on fd */
	uint32_t client, device, memory, reserved;
	uint64_t offset, length, address;
	uint32_t status, flags;
	int32_t fd, reserved_end;
};
struct gp_rm_unmap {
	uint32_t client, device, memory, reserved;
	uint64_t address;
	uint32_t status, flags;
};
struct gp_rm_xfer {
	uint32_t number, size;
	uint64_t params;
};
struct gp_rm_version {
	uint32_t command, reply;
	char text[64];
};

/* Classes. Channels and compute objects have a number per generation of GPUs; their families are told by the low byte.
 */
#define GP_RM_CLASS_ROOT_MAX   0x01u /* 0 and 1: old names of a client */
#define GP_RM_CLASS_CLIENT     0x41u
#define GP_RM_CLASS_OWN_MEMORY 0x71u /* the program's own pages, given to the GPU */
#define GP_RM_CLASS_DEVICE     0x80u
#define GP_RM_CLASS_SUBDEVICE  0x2080u
#define GP_RM_CLASS_GROUP      0xa06cu
#define GP_RM_CLASS_MIG        0xc637u /* a GPU instance: what is below it has a slice of the GPU */
#define GP_RM_CLASS_MIN        0xa000u /* of the families */
#define GP_RM_FAMILY_CHANNEL   0x6fu
#define GP_RM_FAMILY_COMPUTE   0xc0u

/* Parameters of RM_ALLOC, as far as they are read: offsets. */
#define GP_RM_DEVICE_ID         0u /* u32: which GPU */
#define GP_RM_GROUP_ENGINE      12u
#define GP_RM_GROUP_SIZE        20u
#define GP_RM_CHANNEL_RING      8u  /* u64: its ring's address for the GPU */
#define GP_RM_CHANNEL_ENTRIES   16u /* u32: of its ring */
#define GP_RM_CHANNEL_USERD     32u /* u32: the memory its registers are in … */
#define GP_RM_CHANNEL_USERD_OFF 64u /* u64: … and where in it */
#define GP_RM_CHANNEL_ENGINE    128u
#define GP_RM_CHANNEL_SIZE_MIN  132u /* all of the above; 368 in driver 580 */
#define GP_RM_ENGINE_GR0        1u
/* In USERD. */
#define GP_RM_USERD_GET  0x88u
#define GP_RM_USERD_PUT  0x8cu
#define GP_RM_USERD_SIZE 0x200u

/* Controls, with the size of their parameters. */
#define GP_RM_EXPORT_TO_FD     0x3d0bu /* begins with the descriptor of another nvidiactl, that carries the objects */
#define GP_RM_IMPORT_FROM_FD   0x3d0cu /* the same */
#define GP_RM_GROUP_SCHEDULE   0xa06c0101u /* enable; 3 bytes, 2 in driver 550 */
#define GP_RM_SLICE_SET        0xa06c0103u /* uint64_t, µs */
#define GP_RM_SLICE_GET        0xa06c0104u
#define GP_RM_GROUP_INFO       0xa06c0106u /* uint32_t: the hardware's number of the group */
#define GP_RM_CHANNEL_SCHEDULE 0xa06f0103u
#define GP_RM_GPU_ID           0x20800142u /* uint32_t */
#define GP_RM_DISABLE_CHANNELS 0x2080110bu /* struct gp_rm_disable */
#define GP_RM_CTXSW_STATS      0x20801215u /* struct gp_rm_ctxsw_stats */
#define GP_RM_CTXSW_MODES      0x20801235u /* struct gp_rm_ctxsw_modes */
#define GP_RM_DISABLE_MAX      64u
struct gp_rm_disable {
	uint8_t disable, reserved0[3];
	uint32_t count;
	uint8_t only_scheduling, rewind, reserved1[6]; /* zero: also preempts, keeps what was submitted */
	uint64_t event;                                /* zero */
	uint32_t clients[GP_RM_DISABLE_MAX], channels[GP_RM_DISABLE_MAX];
};
struct gp_rm_ctxsw_stats {
	uint32_t object, flags; /* whose: a group or a channel; flags: zero, nothing is reset */
	uint32_t save, restore, wfi, cta, cilp, gfxp;
};
struct gp_rm_ctxsw_modes {
	uint32_t channel, zcull, pm, smpc, compute, graphics; /* compute: GP_RM_PREEMPT_… */
};
#define GP_RM_PREEMPT_CILP                                                                         \
	2u /* a kernel is stopped within an instruction; 0 only when all is idle, 1 between blocks \
	    */

/* Statuses that are told apart. */
#define GP_RM_OK              0u
#define GP_RM_ERR_BUSY        0x03u
#define GP_RM_ERR_LOST        0x0fu
#define GP_RM_ERR_RESOURCES   0x1au
#define GP_RM_ERR_PERMISSIONS 0x1bu
#define GP_RM_ERR_ARGUMENT    0x1fu /* also: the size is not the driver's */
#define GP_RM_ERR_CHANNEL     0x21u
#define GP_RM_ERR_CLIENT      0x23u /* also: this is not the file it was made on */
#define GP_RM_ERR_OBJECT      0x31u
#define GP_RM_ERR_HANDLE      0x33u
#define GP_RM_ERR_STATE       0x40u
#define GP_RM_ERR_MEMORY      0x51u
#define GP_RM_ERR_SUPPORT     0x56u
#define GP_RM_ERR_NOT_FOUND   0x57u
#define GP_RM_ERR_TIMEOUT     0x65u

/* What they mean to us, in the agent and in the daemon. None is -ETIMEDOUT, which says that nobody answered. */
static inline int gp_rm_errno(uint32_t status)
{
	switch (status) {
	case GP_RM_OK: return 0;
	case GP_RM_ERR_BUSY: return -EBUSY;
	case GP_RM_ERR_LOST:
	case GP_RM_ERR_TIMEOUT: return -EIO; /* the GPU itself does not answer */
	case GP_RM_ERR_RESOURCES:
	case GP_RM_ERR_MEMORY: return -ENOMEM;
	case GP_RM_ERR_PERMISSIONS: return -EPERM;
	case GP_RM_ERR_ARGUMENT: return -EINVAL;
	case GP_RM_ERR_CLIENT: return -EBADF;
	case GP_RM_ERR_CHANNEL:
	case GP_RM_ERR_OBJECT:
	case GP_RM_ERR_HANDLE:
	case GP_RM_ERR_NOT_FOUND: return -ENOENT;
	case GP_RM_ERR_STATE: return -ECANCELED;
	case GP_RM_ERR_SUPPORT: return -EOPNOTSUPP;
	default: return -EPROTO; /* one that we do not know */
	}
}

_Static_assert(sizeof(struct gp_rm_memory) == 56 && sizeof(struct gp_rm_free) == 16 &&
		       sizeof(struct gp_rm_alloc) == 32 && sizeof(struct gp_rm_alloc_rights) == 48 &&
		       sizeof(struct gp_rm_control) == 32 && sizeof(struct gp_rm_dup) == 28 &&
		       sizeof(struct gp_rm_map) == 56 && sizeof(struct gp_rm_unmap) == 32 &&
		       sizeof(struct gp_rm_xfer) == 16 && sizeof(struct gp_rm_version) == 72,
	       "RM's ioctls");
_Static_assert(sizeof(struct gp_rm_disable) == 536 && sizeof(struct gp_rm_ctxsw_modes) == 24, "RM's controls");

#endif
