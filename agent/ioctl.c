/* SPDX-License-Identifier: MIT */
/* ioctl() between the application and its drivers: whose request it is, at the cost of one comparison. */
#include <stdarg.h>
#include <sys/ioctl.h>
#include "agent/agent.h"
#include "agent/export.h"
#include "agent/next.h"

GP_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list list;
	void *arg;

	va_start(list, request);
	arg = va_arg(list, void *);
	va_end(list);
	gp_next_init();
	switch (_IOC_TYPE(request)) {
	case 'K': return gp_kfd_ioctl(fd, request, arg);
	case 'F': return gp_nvidia_ioctl(fd, request, arg);
	default: return gp_next_ioctl(fd, request, arg);
	}
}
