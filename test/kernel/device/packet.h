/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Packets of compute queues (AQL), and signals. */
#ifndef SOFT_PACKET_H
#define SOFT_PACKET_H

#define AQL_VENDOR        0u
#define AQL_INVALID       1u
#define AQL_DISPATCH      2u
#define AQL_BARRIER_AND   3u
#define AMD_BARRIER_VALUE 2u /* a format of vendor's packets */

struct aql_packet {
	u16 header, setup;
	u16 workgroup[3], reserved0;
	u32 grid[3], private_size, group_size;
	u64 kernel, kernarg, reserved2, signal;
};

/* The program's memory is this thread's. */
bool soft_packet_waits(const struct aql_packet *packet); /* one that is no kernel: for signals */
void soft_packet_kernel(const struct aql_packet *packet, struct gp_gpu_kernel *kernel);
u32 soft_signal(u64 signal, u64 end_ns); /* returns the event that the program waits for, or 0 */

#endif
