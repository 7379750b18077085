/* SPDX-License-Identifier: MIT */
/* What `gpreempt doctor` looks at: the driver's files, the processes that use it, the daemon. Gathered once, then
 * judged by the rules. What cannot be read is unknown; nothing here fails because of it. */
#ifndef GP_CLI_DOCTOR_FACTS_H
#define GP_CLI_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include "cli/state.h"
#include "lib/safety.h"

#define GP_FACTS_UNKNOWN     UINT64_MAX
#define GP_FACTS_GPU_MAX     64u
#define GP_FACTS_PROCESS_MAX 4096u
#define GP_FACTS_RENDER_MAX  128u
#define GP_FACTS_ROOT_ENV    "GPREEMPT_DOCTOR_ROOT" /* a tree with sys/, proc/, dev/ instead of the machine's */
#define GP_FACTS_PATH_SIZE   512

struct gp_facts_gpu {
	uint32_t node;
	uint64_t gpu_id, cu_count, slot_count, sdma_queue_count, xcc_count, gfx_version,
		render_minor; /* gfx942: 90402 */
	uint64_t process_max; /* processes before the runlist is oversubscribed: VMIDs, or hws_max_conc_proc */
	char name[64];
	struct gp_safety_part part; /* versions that decide whether it is safe to preempt */
	/* From the processes. */
	uint32_t process_count, compute_count, copy_count;
};
struct gp_facts_process {
	uint64_t pid;
	char name[32];
	bool has_agent; /* its environment preloads the agent */
	bool is_environment_known;
	uint64_t hw_queues;       /* GPU_MAX_HW_QUEUES */
	uint64_t ignore_priority; /* DEBUG_HIP_IGNORE_STREAM_PRIORITY: 0, 1 */
	uint64_t hip_major;
	uint32_t compute_count;
	bool is_cuda; /* has an NVIDIA GPU open; its contexts are not counted */
};
struct gp_facts_file {
	char path[64];
	bool is_there, is_usable; /* usable: may be read and written */
	uint32_t mode, gid;
	char group[32];
};

struct gp_facts_nvidia_gpu {
	uint64_t gpu_id, minor;
	char model[64], bdf[16];
	bool has_mig, is_vgpu;
	char compute_mode[32], persistence[32]; /* as nvidia-smi says; empty: unknown */
	struct gp_facts_file file;
};
struct gp_facts_nvidia {
	bool has_driver, is_open; /* open: the open kernel modules */
	char version[32];
	uint64_t major, mps_pid; /* 0: MPS does not run */
	struct gp_facts_file control;
	uint32_t gpu_count;
	struct gp_facts_nvidia_gpu gpus[GP_FACTS_GPU_MAX];
};

struct gp_doctor_facts {
	char kernel[96];
	uint64_t kernel_major, kernel_minor, kfd_major, kfd_minor;
	/* Module parameters of amdgpu. */
	uint64_t cwsr_enable, sched_policy, num_kcq, hws_max_conc_proc, mes;
	bool has_module;
	struct gp_facts_file kfd;
	uint32_t render_count, gpu_count, process_count;
	struct gp_facts_file renders[GP_FACTS_RENDER_MAX];
	struct gp_facts_gpu gpus[GP_FACTS_GPU_MAX];
	struct gp_facts_process *processes;
	uint32_t locked_count; /* processes that nobody can look at: their folder in /proc is locked */
	uint64_t locked_pid;   /* the first of them */
	struct gp_facts_nvidia nvidia;
	/* The kernel's log, where it may be read. */
	bool is_log_known;
	uint32_t oversubscribed_lines, preemption_lines, reset_lines;
	char log_line[256]; /* the last of those */
	/* The daemon. */
	bool has_daemon;
	struct gp_state state;
	int daemon_error;     /* negative errno: why not */
	char daemon_why[512]; /* the same in words */
};

int gp_facts_gather(struct gp_doctor_facts *facts, struct gp_error *error); /* -ENOMEM only */
void gp_facts_fini(struct gp_doctor_facts *facts);
void gp_facts_add_processes(struct gp_doctor_facts *facts, const char *root); /* part of gather: facts_process.c */
void gp_facts_add_log(struct gp_doctor_facts *facts, const char *root);       /* part of gather: facts_log.c */
void gp_facts_add_nvidia(struct gp_doctor_facts *facts, const char *root);    /* part of gather: facts_nvidia.c */
void gp_facts_add_cuda(struct gp_doctor_facts *facts, const char *root, uint64_t pid);
void gp_facts_file(struct gp_facts_file *file, const char *root, const char *path);
void gp_facts_log(struct gp_doctor_facts *facts, const char *text, size_t size); /* counts lines of a kernel log */
/* The first member of what a helper is told and says. */
struct gp_facts_look {
	char root[GP_FACTS_PATH_SIZE];
	uint64_t pid;
};
/* Has a helper look at a process: any user can hold up for ever whoever opens files in its folder. size: with what
 * follows the head. False: it is locked. */
bool gp_facts_look(struct gp_doctor_facts *facts, void (*function)(void *look), struct gp_facts_look *look,
		   size_t size);
/* One file of a process: that of a living thread if its first thread has ended. What shows memory and descriptors is
 * empty in /proc/PID then. */
void gp_facts_process_path(const char *root, uint64_t pid, const char *name, char ret_path[GP_FACTS_PATH_SIZE]);
/* One number in a file; unknown if it is not one. "N" and "Y" are 0 and 1. */
uint64_t gp_facts_number(const char *root, const char *path);

#endif
