/* SPDX-License-Identifier: MIT */
/* A program with a queue on the virtual node: `cli_client hold` creates it, does a little work, and stays until it is
 * killed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "test/e2e/vgpu_client.h"

int main(int argc, char **argv)
{
	static struct client client;
	static struct client_queue queue;
	struct client_barrier packet = { .header = 3 | 1 << 8 };
	struct client_signal *signal;

	if (argc != 2 || strcmp(argv[1], "hold") != 0)
		return 2;
	client_open(&client);
	client_queue_create(&client, &queue, 64);
	signal = client_signal(&client, 1);
	packet.signal = (uintptr_t)signal;
	client_submit(&queue, &packet);
	if (!client_wait(signal))
		return 1;
	puts("holding");
	fflush(stdout);
	for (;;)
		pause();
}
