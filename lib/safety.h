/* SPDX-License-Identifier: MIT */
/*
 * Combinations of part, firmware, kernel and ROCm on which preempting is known to hang or to reset the GPU, as files of
 * data (share/safety/NAME.ini): what happens, what the daemon does about it, and the source. The daemon obeys them,
 * `doctor` reports them. A part that no file names has no restriction.
 */
#ifndef GP_LIB_SAFETY_H
#define GP_LIB_SAFETY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"
#include "lib/kfd.h"

#define GP_SAFETY_MAX       64u
#define GP_SAFETY_NAME_SIZE 48u
#define GP_SAFETY_TEXT_SIZE 200u
#define GP_SAFETY_BAD_MAX   4u
/* What root writes into gpreempt.conf to overrule an entry. */
#define GP_SAFETY_SENTENCE "I accept that preempting may hang or reset this GPU"

/* How the daemon begins the finding that an entry is overruled; doctor recognises it by that. */
#define GP_SAFETY_OVERRULED "safety/%s is overruled"

enum gp_safety_action {
	GP_SAFETY_REFUSE, /* the daemon does not schedule the GPU */
	GP_SAFETY_SUBMIT, /* the daemon stops nothing that runs: it holds back doorbells */
	GP_SAFETY_LIMIT,  /* preempting takes at most so much of the time */
};

/* From first to last, both included; first > last: not a condition. */
struct gp_safety_range {
	uint64_t first, last;
};

struct gp_safety_entry {
	char name[GP_SAFETY_NAME_SIZE]; /* the file's, without .ini */
	char title[GP_SAFETY_TEXT_SIZE], happens[GP_SAFETY_TEXT_SIZE], source[GP_SAFETY_TEXT_SIZE];
	struct gp_safety_range gfx, mec, mes, kernel, rocm;
	enum gp_safety_action action;
	uint32_t limit_permille;
	bool is_overruled; /* by gp_safety_overrule() */
};
struct gp_safety {
	uint32_t count, bad_count;
	struct gp_safety_entry entries[GP_SAFETY_MAX];
	struct gp_error bad[GP_SAFETY_BAD_MAX]; /* what is wrong with the first files that were left out */
};

/* GP_KFD_UNKNOWN: not known. A version that is not known fulfils no condition. */
struct gp_safety_part {
	uint64_t gfx, mec, mes; /* gfx: gfx_target_version, 110501 for gfx1151 */
	uint64_t kernel, rocm;  /* 1000 * major + minor */
};

/* One file's text. -EINVAL and "file:line: …", or what is missing. */
int gp_safety_parse(const char *text, size_t size, const char *name, struct gp_safety_entry *ret_entry,
		    struct gp_error *error);
/* Reads all files of the data tree. No folder: an empty table. A bad file is left out and named in bad: the others
 * still protect their parts, and the caller reports the bad one. */
int gp_safety_read(struct gp_safety *ret_safety, struct gp_error *error);
/* Finds the versions for a GPU of this machine. sysfs: "/sys", but in tests. */
void gp_safety_look(const struct gp_kfd_node *node, const char *sysfs, struct gp_safety_part *ret_part);
/* Root has accepted what may happen according to this entry. */
void gp_safety_overrule(struct gp_safety *safety, const char *name);
bool gp_safety_is_about(const struct gp_safety_entry *entry, const struct gp_safety_part *part);
/* The strictest that fits and is not overruled; of equals the first by name. NULL: none. */
const struct gp_safety_entry *gp_safety_find(const struct gp_safety *safety, const struct gp_safety_part *part);
const char *gp_safety_action_text(const struct gp_safety_entry *entry, char *buffer, size_t size);

#endif
