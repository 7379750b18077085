/* SPDX-License-Identifier: MIT */
/* subuid(5): which user has which range of uids. */
#ifndef GP_DAEMON_SUBUID_H
#define GP_DAEMON_SUBUID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define GP_SUBUID_MAX      4096u      /* ranges; more are left out */
#define GP_SUBUID_SIZE_MAX (4u << 20) /* bytes of a file; more are not read */
#define GP_SUBUID_FIRST    65536u     /* ranges that begin below do not count: they are other users' uids */

struct gp_subuid_range {
	uid_t first, count;
	bool is_user; /* uid is the user's; otherwise the first of the user's ranges: the name is not known here */
	uid_t uid;
};

/* Reads the well-formed ranges of texts as in subuid(5) and passwd(5), and skips everything else. Root's ranges belong
 * to no user: is_user is false. Returns how many; max at most. */
uint32_t gp_subuid_parse(const char *subuid, size_t subuid_size, const char *passwd, size_t passwd_size,
			 struct gp_subuid_range *ranges, uint32_t max);

extern const char *gp_subuid_path, *gp_subuid_passwd_path; /* a test has its own */

/* The two files as last read; read again when one of them has changed. */
struct gp_subuid;
struct gp_subuid *gp_subuid_create(const char *subuid_path, const char *passwd_path); /* NULL: no memory */
void gp_subuid_destroy(struct gp_subuid *subuid);
const struct gp_subuid_range *gp_subuid_find(struct gp_subuid *subuid, uid_t uid); /* NULL: in no range */

/* What a file was when it was read; all zeros: it was not there. */
struct gp_subuid_stamp {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec modified, changed;
};
/* Whether the file has changed since stamp was taken, and takes it anew. */
bool gp_subuid_has_changed(const char *path, struct gp_subuid_stamp *stamp);

#endif
