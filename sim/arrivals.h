/* SPDX-License-Identifier: MIT */
/*
 * Arrivals of LLM requests: TIMESTAMP,ContextTokens,GeneratedTokens, one request per row, the timestamp as
 * 2023-11-16 18:15:46.6805900 (up to nine decimals, no time zone). Times are given from the earliest row on; rows
 * come in any order and are sorted.
 */
#ifndef GP_SIM_ARRIVALS_H
#define GP_SIM_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

#define GP_TRACE_ARRIVALS_MAX (1u << 20)
#define GP_TRACE_TOKENS_MAX   (1u << 24) /* of one request */

struct gp_trace_arrival {
	uint64_t offset_ns;
	uint32_t context_tokens, generated_tokens;
};
struct gp_trace_arrivals {
	uint32_t count;
	struct gp_trace_arrival *arrivals;
};

/* 0, or a negative errno with "file:line: …" and nothing returned. */
int gp_trace_arrivals_load(const char *path, struct gp_trace_arrivals *ret_arrivals, struct gp_error *error);
int gp_trace_arrivals_parse(const char *text, size_t text_size, const char *file_name,
			    struct gp_trace_arrivals *ret_arrivals, struct gp_error *error);
void gp_trace_arrivals_fini(struct gp_trace_arrivals *arrivals);

#endif
