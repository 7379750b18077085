/* SPDX-License-Identifier: MIT */
/* Arbitrary arguments of a kernel that uses them as addresses of every kind. */
#define FUZZ_KERNARG
/* That fuzzer, as this macro makes it. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "test/fuzz/fuzz_vgpu_execute.c"
