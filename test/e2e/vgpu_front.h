/* SPDX-License-Identifier: MIT */
/* The tests of a front end: what their files share. */
#ifndef GP_TEST_E2E_VGPU_FRONT_H
#define GP_TEST_E2E_VGPU_FRONT_H

#include "test/e2e/vgpu_client.h"

#define FRONT_ROUNDS 2000u

int front_version(int fd); /* GET_VERSION: 0 or -errno */
int front_opens(int folder, const char *path, int flags);
uint32_t front_entries(const char *path);               /* of a folder, without the hidden ones */
uint32_t front_event_make(const struct client *client); /* 0: failed */
int front_event_end(const struct client *client, uint32_t id);

void front_test_threads(struct client *client);
void front_test_many(const char *vgpu);
void front_test_path_race(void);
void front_test_fd_race(struct client *client);
void front_test_bad_memory(struct client *client, bool lent);
void front_test_tree(void);
int front_tree_reads(void); /* exit status */
int front_tree_crowd(void);
int front_hoard(void);

#endif
