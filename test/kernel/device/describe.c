/* SPDX-License-Identifier: MIT */
/* Runs on the host: writes a device description as the C table that the software GPU is built with. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "lib/error.h"
#include "model/desc.h"

int main(int argc, char **argv)
{
	struct gp_error error = { 0 };
	static struct gp_desc desc;

	if (argc < 2 || gp_desc_load(argv[1], &desc, &error)) {
		fprintf(stderr, "describe: %s\n", argc < 2 ? "usage: describe FILE.ini [KEY=VALUE]..." : error.text);
		return 1;
	}
	for (int i = 2; i < argc; i++)
		if (gp_desc_override(&desc, argv[i], &error)) {
			fprintf(stderr, "describe: %s: %s\n", argv[i], error.text);
			return 1;
		}
	printf("// SPDX-License-Identifier: GPL-2.0 OR MIT\n/* Generated from %s. */\n"
	       "#include \"device.h\"\n\nconst struct gp_desc soft_desc = {\n\t.name = \"%s\", .title = \"%s\",\n"
	       "\t.values = {\n",
	       argv[1], desc.name, desc.title);
	for (int key = 0; key < GP_DESC_KEY_COUNT; key++) {
		const struct gp_desc_value *value = &desc.values[key];

		printf("\t\t[%d] = { .value = %" PRId64 "ll, .min = %" PRId64 "ll, .max = %" PRId64
		       "ll, .present = %d }, /* %s */\n",
		       key, value->value, value->min, value->max, value->present, gp_desc_key_name(key));
	}
	printf("\t},\n};\n");
	return 0;
}
