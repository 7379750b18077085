/* SPDX-License-Identifier: MIT */
/* A backend's findings, one line each. */
#include <stdarg.h>
#include <stdio.h>
#include "device/device.h"

void gp_device_say(struct gp_device_info *info, uint32_t mechanism, bool usable, const char *format, ...)
{
	struct gp_device_finding *finding = &info->findings[info->finding_count];
	va_list arguments;

	if (info->finding_count == GP_DEVICE_REPORT_MAX)
		return;
	info->finding_count++;
	finding->mechanism = mechanism;
	finding->usable = usable;
	va_start(arguments, format);
	vsnprintf(finding->text, sizeof(finding->text), format, arguments);
	va_end(arguments);
}
