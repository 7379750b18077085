/* SPDX-License-Identifier: MIT */
/* The way of the application's calls to the drivers of the list. */
#include "agent/driver.h"
#include "agent/next.h"

#define DRIVER_DECLARED(name) extern const struct gp_driver_calls gp_driver_calls_##name;
GP_DRIVER_LIST(DRIVER_DECLARED)

#define DRIVER_CALLS(name) &gp_driver_calls_##name,
static const struct gp_driver_calls *const driver_list[] = { GP_DRIVER_LIST(DRIVER_CALLS) };

int gp_driver_ioctl(int fd, unsigned long request, void *arg, uint8_t letter)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		if (driver_list[i]->ioctl_letter == letter)
			return driver_list[i]->ioctl(fd, request, arg);
	return gp_next_ioctl(fd, request, arg);
}

bool gp_driver_map_touches(uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		if (driver_list[i]->map_touches && driver_list[i]->map_touches(address, length))
			return true;
	return false;
}

void gp_driver_map_forget(uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		if (driver_list[i]->map_touches)
			driver_list[i]->map_forget(address, length);
}

bool gp_driver_map_is_expected(void)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		if (driver_list[i]->map_touches && driver_list[i]->map_is_expected())
			return true;
	return false;
}

void gp_driver_map_add(int fd, uint64_t address, uint64_t length)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		if (driver_list[i]->map_touches)
			driver_list[i]->map_add(fd, address, length);
}

void gp_driver_files_close(unsigned first, unsigned last, struct gp_driver_files *ret_files)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		ret_files->bits[i] = driver_list[i]->file_closes ? driver_list[i]->file_closes(first, last) : 0;
}

void gp_driver_files_closed(const struct gp_driver_files *files)
{
	for (uint32_t i = 0; i < GP_DRIVER_COUNT; i++)
		if (files->bits[i])
			driver_list[i]->file_closed(files->bits[i]);
}
