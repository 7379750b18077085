/* SPDX-License-Identifier: MIT */
/*
 * Between `vgpu` and `vgpud`: an abstract socket named vgpu/UID/NAME, so that nothing is left behind whatever dies.
 * Both sides look at the other's credentials: a node belongs to one user. One packet asks (join, status, stop, fault;
 * listen with a seccomp listener), one packet answers, the first line of which is "ok" with name=value pairs, or
 * "error" and a sentence. Who has joined keeps the connection: a device that was started for its users ends with the
 * last of them.
 */
#ifndef GP_VGPU_CONTROL_H
#define GP_VGPU_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include "lib/error.h"

#define GP_CONTROL_PREFIX     "vgpu/"
#define GP_CONTROL_NAME_SIZE  64u
#define GP_CONTROL_TEXT_SIZE  16384u
#define GP_CONTROL_VALUE_SIZE 512u

bool gp_control_name_is_valid(const char *name);                 /* letters, digits, . _ - */
int gp_control_listen(const char *name, struct gp_error *error); /* the socket */
int gp_control_connect(const char *name); /* -ECONNREFUSED: no such device runs; -EPERM: another user took the name */
/* fd < 0: none is sent. */
int gp_vgpu_control_send(int socket, const char *text, int fd);
/* Waits. 0 bytes: the other side is gone (-EPIPE). *ret_fd is -1 when none came. */
int gp_control_receive(int socket, char *ret_text, size_t text_size, int *ret_fd);
/* value of "name=" in the first line; NULL: not there. Returns buffer. */
const char *gp_control_value(const char *text, const char *name, char *buffer, size_t buffer_size);

#endif
