/* SPDX-License-Identifier: MIT */
/* Single values of JSON objects: the answers to PING and SUMMARY, the members of lists. */
#ifndef GP_CLI_FIELD_H
#define GP_CLI_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "lib/json.h"

/* Of the object's own keys, not of nested ones; the first of that name counts. false: not there, null, of another type
 * or out of range, or the text is not one JSON object. */
bool gp_field_u64(const char *text, size_t size, const char *key, uint64_t *ret_value);
bool gp_field_bool(const char *text, size_t size, const char *key, bool *ret_value);
/* Cut to the buffer and fit for a terminal. */
bool gp_field_string(const char *text, size_t size, const char *key, char *ret_value, size_t value_size);

/* Inside an object of a longer answer, after its OBJECT_BEGIN: the next member that is neither object nor array; those
 * are passed over. 1: its key is in ret_key, cut to the buffer and fit for a terminal, its value is the reader's token;
 * 0: the object has ended; otherwise a negative errno. */
int gp_field_next(struct gp_json *json, char *ret_key, size_t key_size, struct gp_error *error);

#endif
