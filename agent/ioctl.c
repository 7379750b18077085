/* SPDX-License-Identifier: MIT */
/* ioctl() between the application and its drivers: finds the driver of a request, at the cost of one comparison for
 * each driver. */
#include <stdarg.h>
#include <sys/ioctl.h>
#include "agent/driver.h"
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
	return gp_driver_ioctl(fd, request, arg, _IOC_TYPE(request));
}
