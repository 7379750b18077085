/* SPDX-License-Identifier: MIT */
/* Shows that kernels' names are shown without mangling, types and namespaces, and that other names stay as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "view/symbol.h"

static const struct {
	const char *name, *shown;
} cases[] = {
	{ "vectorAdd(float const*, float const*, float*, int)", "vectorAdd" },
	{ "void at::native::fill<4, at::Half>(int, at::Half)", "fill<4, Half>" },
	{ "void (anonymous namespace)::k(int)", "k" },
	{ "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, 7>(int)", "kernel<int, 7>" },
	{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
	  "ncclDevKernel_AllReduce_Sum_f32_RING_LL" },
	{ "_Z9vectorAddPKfS0_Pfi", "vectorAdd" },
	{ "_ZN2at6native12_GLOBAL__N_13fooIfEEvPT_i", "foo" },
	/* Of no such kind, or broken: as they are, and nothing is read beyond their ends. */
	{ "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH (Device -> Pinned)" },
	{ "Cijk_Ailk_Bljk_SB_MT64x16", "Cijk_Ailk_Bljk_SB_MT64x16" },
	{ "_Z", "_Z" },
	{ "_ZN", "_ZN" },
	{ "_Z99999999999999999999x", "_Z99999999999999999999x" },
	{ "_ZN3ab", "_ZN3ab" },
	{ "(", "(" },
	{ "::", "::" },
	{ "", "" },
	{ ">>>>", ">>>>" },
};

static void symbol_short(void **state)
{
	char buffer[256], small[4];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(gp_symbol_short(cases[i].name, buffer, sizeof(buffer)), cases[i].shown);
		(void)gp_symbol_short(cases[i].name, small, sizeof(small));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(symbol_short) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
