/* SPDX-License-Identifier: MIT */
/* Owns what a request may look like. RFC 9112, of which a reader may be stricter: a bare LF ends a line, anything else
 * that is odd is refused. */
#include "lib/http.h"
#include <string.h>

const char *gp_http_reason(int status)
{
	switch (status) {
	case 200: return "OK";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 408: return "Request Timeout";
	case 414: return "URI Too Long";
	case 431: return "Request Header Fields Too Large";
	case 503: return "Service Unavailable";
	case 505: return "HTTP Version Not Supported";
	default: return "Bad Request";
	}
}

/* Whether the request has the empty line after the headers. */
static bool http_is_whole(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != '\n')
			continue;
		if (i + 1 < size && bytes[i + 1] == '\n')
			return true;
		if (i + 2 < size && bytes[i + 1] == '\r' && bytes[i + 2] == '\n')
			return true;
	}
	return false;
}

static int http_path(const char *target, size_t size, struct gp_http_request *request)
{
	size_t length = 0;

	if (!size || *target != '/')
		return 400;
	while (length < size && target[length] != '?') {
		if (target[length] <= 0x20 || target[length] == 0x7f)
			return 400;
		length++;
	}
	if (length >= sizeof(request->path))
		return 414;
	memcpy(request->path, target, length);
	request->path[length] = '\0';
	return 200;
}

/* "GET /metrics HTTP/1.1", without the end of the line. */
static int http_line(const char *line, size_t size, struct gp_http_request *request)
{
	const char *first = memchr(line, ' ', size), *second;
	size_t method;

	if (!first)
		return 400;
	method = (size_t)(first - line);
	second = memchr(first + 1, ' ', size - method - 1);
	if (!second)
		return 400;
	if (method == 4 && !memcmp(line, "HEAD", 4))
		request->is_head = true;
	else if (method != 3 || memcmp(line, "GET", 3) != 0)
		return 405;
	size -= (size_t)(second + 1 - line);
	if (size != 8 || memcmp(second + 1, "HTTP/", 5) != 0)
		return 400;
	if (memcmp(second + 1, "HTTP/1.", 7) != 0)
		return 505;
	return http_path(first + 1, (size_t)(second - first - 1), request);
}

int gp_http_parse(const char *bytes, size_t size, struct gp_http_request *ret_request)
{
	struct gp_http_request request = { 0 };
	const char *end = memchr(bytes, '\n', size);
	size_t line;
	int status;

	if (!end || !http_is_whole(bytes, size))
		return size >= GP_HTTP_REQUEST_MAX ? (end ? 431 : 414) : 0;
	line = (size_t)(end - bytes);
	if (line && bytes[line - 1] == '\r')
		line--;
	status = http_line(bytes, line, &request);
	if (status == 200)
		*ret_request = request;
	return status;
}
