/* SPDX-License-Identifier: MIT */
/* mmap() and its kin between the application and the kernel: here the agent learns of mappings of a driver's memory
 * that it reads, and of their end. All other calls pass at the cost of a look at a short list. Nothing here looks up
 * the functions behind (gp_next_init): the caller may be an allocator that is just being set up. */
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include "agent/agent.h"
#include "agent/driver.h"
#include "agent/export.h"
#include "agent/next.h"

/* The mapping is about to go: the agent does not read it from here on. */
static void memory_goes(const void *address, size_t length)
{
	if (!gp_driver_map_touches((uintptr_t)address, length) || !gp_agent_ready())
		return;
	gp_agent_lock();
	gp_driver_map_forget((uintptr_t)address, length);
	gp_agent_unlock();
}

static void *memory_map(void *address, size_t length, int protection, int flags, int fd, long offset)
{
	void *at;

	if (flags & MAP_FIXED)
		memory_goes(address, length);
	at = gp_next_mmap(address, length, protection, flags, fd, offset);
	if (at != MAP_FAILED && fd >= 0 && protection & PROT_READ && gp_driver_map_is_expected() && gp_agent_ready()) {
		gp_agent_lock();
		gp_driver_map_add(fd, (uintptr_t)at, length);
		gp_agent_unlock();
	}
	return at;
}

/* Two names of one function, because a long has 64 bits. */
GP_EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return memory_map(address, length, protection, flags, fd, offset);
}

GP_EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd, __off64_t offset)
{
	return memory_map(address, length, protection, flags, fd, offset);
}

GP_EXPORT int munmap(void *address, size_t length)
{
	memory_goes(address, length);
	return gp_next_munmap(address, length);
}

GP_EXPORT int mprotect(void *address, size_t length, int protection)
{
	if (!(protection & PROT_READ))
		memory_goes(address, length);
	return gp_next_mprotect(address, length, protection);
}

GP_EXPORT void *mremap(void *address, size_t length, size_t new_length, int flags, ...)
{
	void *to = NULL;
	va_list list;

	if (flags & MREMAP_FIXED) {
		va_start(list, flags);
		to = va_arg(list, void *);
		va_end(list);
		memory_goes(to, new_length);
	}
	memory_goes(address, length);
	return gp_next_mremap(address, length, new_length, flags, to);
}
