/* SPDX-License-Identifier: MIT */
/* Parses the first line of an HTTP request from an untrusted client, and finds when a request is complete. It reads no
 * headers: a server with one text needs none. */
#ifndef GP_LIB_HTTP_H
#define GP_LIB_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#define GP_HTTP_REQUEST_MAX 4096u /* bytes of a request with its headers: chosen; a scrape of Prometheus has 300 */
#define GP_HTTP_PATH_SIZE   128u

struct gp_http_request {
	bool is_head;                 /* HEAD: the headers alone */
	char path[GP_HTTP_PATH_SIZE]; /* begins with '/', printable, without the query */
};

/* 0: incomplete; 200: complete, and *ret_request is set; else the status to refuse it with: 400, 405, 414, 431, 505. */
int gp_http_parse(const char *bytes, size_t size, struct gp_http_request *ret_request);
const char *gp_http_reason(int status);

#endif
