/* SPDX-License-Identifier: MIT */
/* A hostile client of the daemon's, and what is known of the attack under way (attack.c). */
#ifndef GP_TEST_ATTACK_H
#define GP_TEST_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gpreempt/page.h>
#include <gpreempt/wire.h>

struct client {
	int fd, doorbell_fd;
	struct gp_page *page;
	uint64_t answer_ns; /* when the order kept is to be answered; 0: none */
	size_t size;
	_Alignas(8) char order[GP_WIRE_SIZE_MAX];
};

extern struct attack {
	const char *socket;
	uint32_t gpu_id, count;
	uint64_t end_ns;
	struct client *clients;
	uint32_t welcomed, refused, queues;
	uint64_t sent, answered;
	uint64_t kept_kb; /* of memory that the daemon touched, or was to give back */
	const char *gang; /* of those that come; NULL: none */
	const char *why;  /* the machine does not allow this attack; NULL: it does */
} attack;

uint64_t attack_now_ns(void);
int attack_dial(void);
bool attack_say(int fd, const void *message, size_t size);
bool attack_hello(struct client *client, int32_t priority);
void attack_leave(struct client *client);
void attack_add_queue(const struct client *client, uint32_t slot, uint32_t generation);

/* Reads what the daemon said; orders are answered after so long, claiming that they took so long. UINT64_MAX: never. */
void attack_listen_all(uint64_t after_ns, uint64_t took_ns);

/* entries.c: queues that enter the core again and again. */
void attack_churn(void);
void attack_lost(void);

/* keep.c: what stays with the daemon of clients that went. */
void attack_pages(void);
void attack_pins(void);
void attack_holes(void);
void attack_linger(void);

/* locked.c: what the kernel reads of a process under a lock that the process can hold. */
void attack_locked(void);

/* folder.c: the same of the lock of its folder, which it holds for seconds. "queues" are folders that were locked,
 * "answered" processes that were seen to hang. */
void attack_folder(void);

#endif
