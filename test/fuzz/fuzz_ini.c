/* SPDX-License-Identifier: MIT */
/* Fuzzer: the INI reader. Names are never empty, and lines only go forward. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lib/ini.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int handle(void *context, const char *section, const char *name, const char *value, uint32_t line,
		  struct gp_error *error)
{
	uint32_t *last = context;

	(void)error;
	if (line <= *last || strlen(section) >= GP_INI_NAME_SIZE || (name && !*name) || !name != !value)
		abort();
	*last = line;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_error error;
	uint32_t last = 0;

	(void)gp_ini_parse((const char *)data, size, "fuzz", handle, &last, &error);
	return 0;
}
