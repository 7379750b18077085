/* SPDX-License-Identifier: MIT */
/* Owns the protobuf wire format: varints and length-delimited fields, which is all that Perfetto's messages need. */
#include <errno.h>
#include <string.h>
#include "lib/utf8.h"
#include "view/protobuf.h"

#define PROTOBUF_VARINT      0u
#define PROTOBUF_LENGTH      2u
#define PROTOBUF_VARINT_SIZE 10u /* the longest varint */

void gp_protobuf_init(struct gp_protobuf *message)
{
	message->size = 0;
	message->is_full = false;
}

static size_t protobuf_varint(uint8_t *bytes, uint64_t value)
{
	size_t size = 0;

	while (value >= 0x80) {
		bytes[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	bytes[size++] = (uint8_t)value;
	return size;
}

static void protobuf_put(struct gp_protobuf *message, const void *bytes, size_t size)
{
	if (message->is_full || size > sizeof(message->bytes) - message->size) {
		message->is_full = true;
		return;
	}
	memcpy(message->bytes + message->size, bytes, size);
	message->size += size;
}

static void protobuf_put_varint(struct gp_protobuf *message, uint64_t value)
{
	uint8_t bytes[PROTOBUF_VARINT_SIZE] = { 0 };
	size_t size = protobuf_varint(bytes, value);

	protobuf_put(message, bytes, size);
}

void gp_protobuf_u64(struct gp_protobuf *message, uint32_t field, uint64_t value)
{
	protobuf_put_varint(message, (uint64_t)field << 3 | PROTOBUF_VARINT);
	protobuf_put_varint(message, value);
}

static void protobuf_bytes(struct gp_protobuf *message, uint32_t field, const void *bytes, size_t size)
{
	protobuf_put_varint(message, (uint64_t)field << 3 | PROTOBUF_LENGTH);
	protobuf_put_varint(message, size);
	protobuf_put(message, bytes, size);
}

void gp_protobuf_string(struct gp_protobuf *message, uint32_t field, const char *value)
{
	char clean[512];
	size_t used = 0;

	while (*value) {
		size_t size = gp_utf8_decode(value, strlen(value), NULL);

		if (used + (size ? size : 1) > sizeof(clean))
			break;
		if (size)
			memcpy(clean + used, value, size);
		else
			clean[used] = '?';
		size = size ? size : 1;
		used += size;
		value += size;
	}
	protobuf_bytes(message, field, clean, used);
}

void gp_protobuf_message(struct gp_protobuf *message, uint32_t field, const struct gp_protobuf *inner)
{
	message->is_full |= inner->is_full;
	protobuf_bytes(message, field, inner->bytes, inner->size);
}

int gp_protobuf_write(const struct gp_protobuf *message, uint32_t field, FILE *stream)
{
	uint8_t lead[2 * PROTOBUF_VARINT_SIZE] = { 0 };
	size_t size;

	if (message->is_full)
		return -EMSGSIZE;
	size = protobuf_varint(lead, (uint64_t)field << 3 | PROTOBUF_LENGTH);
	size += protobuf_varint(lead + size, message->size);
	fwrite(lead, 1, size, stream);
	fwrite(message->bytes, 1, message->size, stream);
	return 0;
}
