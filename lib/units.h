/* SPDX-License-Identifier: MIT */
/* Durations, sizes and rates as people write them: "150us", "2.5ms", "10s", "64KiB", "5.3TB/s". Integers inside. */
#ifndef GP_LIB_UNITS_H
#define GP_LIB_UNITS_H

#include <stddef.h>
#include <stdint.h>
#include "lib/error.h"

/* A bare number is refused except 0; so is a fraction finer than one nanosecond or byte. what names the value in the
 * sentence; the range is checked. */
int gp_units_parse_ns(const char *text, const char *what, uint64_t min_ns, uint64_t max_ns, uint64_t *ret_ns,
		      struct gp_error *error);
int gp_units_parse_size(const char *text, const char *what, uint64_t max_size, uint64_t *ret_size,
			struct gp_error *error);
/* Bytes per second: "5.3TB/s", "64 GiB/s". */
int gp_units_parse_rate(const char *text, const char *what, uint64_t max_rate, uint64_t *ret_rate,
			struct gp_error *error);
int gp_units_parse_count(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *ret_count,
			 struct gp_error *error);
/* A part of a whole below 100%: "30%", "12.5%", in thousandths. */
int gp_units_parse_share(const char *text, const char *what, uint32_t *ret_permille, struct gp_error *error);
/* "12.3 µs", "512 MiB": three significant digits, four where the next unit begins only at 1024 or there is none;
 * returns buffer. GP_UNITS_TEXT_SIZE bytes always suffice. */
#define GP_UNITS_TEXT_SIZE 32u
const char *gp_units_format_ns(uint64_t ns, char *buffer, size_t buffer_size);
const char *gp_units_format_size(uint64_t size, char *buffer, size_t buffer_size);

/* "1 row has", "2 rows have": what stands behind a count. */
static inline const char *gp_units_word(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

#endif
