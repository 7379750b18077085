/* SPDX-License-Identifier: MIT */
/* Each different name once, by number. Names are cleaned as they come in: UTF-8 only, no quotes around them, no
 * " [clone .kd]" behind, at most GP_NAMES_SIZE bytes. */
#ifndef GP_REPORT_TRACE_NAMES_H
#define GP_REPORT_TRACE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define GP_NAMES_MAX  32768u /* different names; what comes beyond shares the last number */
#define GP_NAMES_SIZE 1024u  /* of one, with its NUL */

struct gp_names {
	uint32_t count;
	uint32_t folded; /* names that came beyond the maximum */
	const char **texts;
	uint32_t *slots; /* hash table: number + 1 */
	struct names_block *blocks;
};

int gp_names_init(struct gp_names *names);
void gp_names_fini(struct gp_names *names); /* safe on zeroes */
/* -ENOMEM only. */
int gp_names_add(struct gp_names *names, const char *text, size_t text_size, uint32_t *ret_name);
const char *gp_names_get(const struct gp_names *names, uint32_t name);

#endif
