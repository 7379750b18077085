/* SPDX-License-Identifier: MIT */
/* Fuzzer: the reader of HTTP requests. A prefix of what was taken never means something else, and a path is plain. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_http_request request, whole;
	const char *bytes = (const char *)data;
	int status, last = 0;

	if (size > GP_HTTP_REQUEST_MAX)
		size = GP_HTTP_REQUEST_MAX;
	status = gp_http_parse(bytes, size, &whole);
	/* As it comes in, a byte at a time where that is quick: the first answer is the one that counts, and is the
	 * same. */
	for (size_t i = 0, step = 1 + size / 64; i < size && !last; i += step)
		last = gp_http_parse(bytes, i, &request);
	last = last ? last : gp_http_parse(bytes, size, &request);
	if (last != status)
		abort();
	if (status == 0 && size >= GP_HTTP_REQUEST_MAX)
		abort();
	if (status != 200)
		return 0;
	if (*whole.path != '/' || strlen(whole.path) >= sizeof(whole.path))
		abort();
	for (const char *at = whole.path; *at; at++)
		if (*at <= 0x20 || *at == 0x7f || *at == '?')
			abort();
	return 0;
}
