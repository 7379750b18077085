/* SPDX-License-Identifier: MIT */
/* Who is told by a thread that was left behind: the daemon's end does not wait for a call that does not come back. */
#include "device/nvidia/borrow.h"

static void nobody_done(void *daemon, uint64_t tag, const struct gp_device_done *done)
{
	(void)daemon, (void)tag, (void)done;
}
static void nobody_mechanism(void *daemon, uint64_t tag, uint32_t mechanism, const char *why)
{
	(void)daemon, (void)tag, (void)mechanism, (void)why;
}
static void nobody_failed(void *daemon, uint32_t gpu_id, const char *why)
{
	(void)daemon, (void)gpu_id, (void)why;
}
static void nobody_sliced(void *daemon, uint64_t tag, const struct gp_device_slice *slice)
{
	(void)daemon, (void)tag, (void)slice;
}
static void nobody_counted(void *daemon, uint64_t tag, const struct gp_device_count *count)
{
	(void)daemon, (void)tag, (void)count;
}
static void nobody_grouped(void *daemon, uint64_t tag, const struct gp_device_grouped *grouped)
{
	(void)daemon, (void)tag, (void)grouped;
}
const struct gp_device_host gp_nvidia_nobody = { .done = nobody_done,
						 .mechanism = nobody_mechanism,
						 .failed = nobody_failed,
						 .sliced = nobody_sliced,
						 .counted = nobody_counted,
						 .grouped = nobody_grouped };
