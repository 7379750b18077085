/* SPDX-License-Identifier: MIT */
/* Writes one protobuf message into a buffer of fixed size. A message that does not fit is marked, never cut in the
 * middle. */
#ifndef GP_VIEW_PROTOBUF_H
#define GP_VIEW_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GP_PROTOBUF_SIZE 2048u /* of one message: a few names of at most 512 bytes */

struct gp_protobuf {
	size_t size;
	bool is_full; /* something did not fit: the message must not be written */
	uint8_t bytes[GP_PROTOBUF_SIZE];
};

void gp_protobuf_init(struct gp_protobuf *message);
void gp_protobuf_u64(struct gp_protobuf *message, uint32_t field, uint64_t value);
/* At most 512 bytes; what is not UTF-8 becomes '?'. */
void gp_protobuf_string(struct gp_protobuf *message, uint32_t field, const char *value);
void gp_protobuf_message(struct gp_protobuf *message, uint32_t field, const struct gp_protobuf *inner);
/* As one field of the enclosing message that is the file. -EMSGSIZE if it was full; stream errors are the caller's
 * to see. */
int gp_protobuf_write(const struct gp_protobuf *message, uint32_t field, FILE *stream);

#endif
