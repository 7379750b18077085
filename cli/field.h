/* SPDX-License-Identifier: MIT */
/* Single values of a small JSON object: the answers to PING and SUMMARY. */
#ifndef GP_CLI_FIELD_H
#define GP_CLI_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the object's own keys, not of nested ones; the first of that name counts. false: not there, null, of another type
 * or out of range, or the text is not one JSON object. */
bool gp_field_u64(const char *text, size_t size, const char *key, uint64_t *ret_value);
bool gp_field_bool(const char *text, size_t size, const char *key, bool *ret_value);
/* Cut to the buffer and fit for a terminal. */
bool gp_field_string(const char *text, size_t size, const char *key, char *ret_value, size_t value_size);

#endif
