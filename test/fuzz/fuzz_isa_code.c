/* SPDX-License-Identifier: MIT */
/* Arbitrary code. The first byte is the target and the build of the lanes, eight more the registers' seed. Whatever the
 * code is, it touches its own registers and memory only, and comes to an end, a fault or the end of its budget. */
#include "test/fuzz/isa_fixture.h"

#define FUZZ_BUDGET 150u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct isa_fuzz fuzz;
	uint64_t seed, used;

	if (size < 13u)
		return 0;
	if (!gp_isa_select((enum gp_isa_variant)(data[0] >> 2 & 3u)))
		gp_isa_select(GP_ISA_BASE);
	isa_fuzz_open(&fuzz, (enum gp_isa_target)(data[0] & 3u));
	memcpy(&seed, data + 1, 8);
	size = size - 9u < ISA_FUZZ_CODE_SIZE ? size - 9u : ISA_FUZZ_CODE_SIZE;
	memcpy(fuzz.code, data + 9, size);
	isa_fuzz_fill(&fuzz, seed);
	gp_isa_group_run(&fuzz.group, FUZZ_BUDGET, &used);
	if (used > FUZZ_BUDGET)
		abort();
	isa_fuzz_close(&fuzz);
	return 0;
}
