/* SPDX-License-Identifier: MIT */
/* The host of a thread that was left behind: ignores its reports. The daemon ends without waiting for a call that does
 * not return. */
#include "device/nvidia/borrow.h"

static void no_host_done(void *daemon, uint64_t tag, const struct gp_device_done *done)
{
	(void)daemon, (void)tag, (void)done;
}
static void no_host_mechanism(void *daemon, uint64_t tag, uint32_t mechanism, const char *why)
{
	(void)daemon, (void)tag, (void)mechanism, (void)why;
}
static void no_host_failed(void *daemon, uint32_t gpu_id, const char *why)
{
	(void)daemon, (void)gpu_id, (void)why;
}
static void no_host_hangs(void *daemon, uint32_t gpu_id, bool hangs)
{
	(void)daemon, (void)gpu_id, (void)hangs;
}
static void no_host_sliced(void *daemon, uint64_t tag, const struct gp_device_slice *slice)
{
	(void)daemon, (void)tag, (void)slice;
}
static void no_host_counted(void *daemon, uint64_t tag, const struct gp_device_count *count)
{
	(void)daemon, (void)tag, (void)count;
}
static void no_host_grouped(void *daemon, uint64_t tag, const struct gp_device_grouped *grouped)
{
	(void)daemon, (void)tag, (void)grouped;
}
static int no_host_ungrouped(void *daemon, uint64_t tag, const struct gp_device_grouped *grouped, const char *why)
{
	(void)daemon, (void)tag, (void)grouped, (void)why;
	return 0;
}
const struct gp_device_host gp_nvidia_no_host = { .done = no_host_done,
						  .mechanism = no_host_mechanism,
						  .failed = no_host_failed,
						  .hangs = no_host_hangs,
						  .sliced = no_host_sliced,
						  .counted = no_host_counted,
						  .grouped = no_host_grouped,
						  .ungrouped = no_host_ungrouped };
