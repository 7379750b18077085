/* SPDX-License-Identifier: MIT */
/* Arbitrary records of waves in a save area: after eight bytes of code's offset they are restored, and the waves run
 * code of every family. What is restored either is refused or runs inside its own registers and memory. */
#include "test/fuzz/isa_fixture.h"

#define FUZZ_BUDGET 300u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* s_mov, v_add, ds_read, global_load and _store, buffer_load, scratch, v_readlane, s_set_gpr_idx_on, s_branch back. */
static const uint32_t fuzz_code[] = {
	0xbe800081, 0x68000300, 0xd86c0000, 0x02000000, 0xdc508000, 0x037f0000, 0xdc708000,
	0x007f0300, 0xe0501000, 0x00000400, 0xdc504000, 0x057f0000, 0xd2890005, 0x00000b00,
	0xbf110f00, 0x7e000301, 0xbf9c0000, 0xbe801c02, 0xbf06c080, 0xbf85fffe, 0xbf82ffeb,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t record_size = gp_isa_record_size(ISA_FUZZ_ROWS, 0);
	struct isa_fuzz fuzz;
	uint8_t *record = calloc(1, record_size);
	uint64_t used;

	if (!record || size < 1u) {
		free(record);
		return 0;
	}
	isa_fuzz_open(&fuzz, (enum gp_isa_target)(data[0] & 3u));
	memcpy(fuzz.code, fuzz_code, sizeof(fuzz_code));
	isa_fuzz_fill(&fuzz, size);
	for (uint32_t i = 0; i < 2u; i++) {
		gp_isa_wave_save(fuzz.group.waves[i], record);
		/* The input lies over the end of the record, where the special registers are. */
		for (size_t k = 1; k < size && k <= record_size; k++)
			record[record_size - k] ^= data[k];
		if (gp_isa_wave_restore(fuzz.group.waves[i], record, data[0] & 1u) < 0)
			fuzz.group.waves[i]->state = GP_ISA_ENDED;
	}
	gp_isa_group_run(&fuzz.group, FUZZ_BUDGET, &used);
	isa_fuzz_close(&fuzz);
	free(record);
	return 0;
}
