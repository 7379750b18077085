/* SPDX-License-Identifier: MIT */
/* Arbitrary kernel descriptors and packets, with code that is a kernel: what a wave is given, and where it begins. */
#define FUZZ_DESCRIPTOR
/* That fuzzer, as this macro makes it. NOLINTNEXTLINE(bugprone-suspicious-include) */
#include "test/fuzz/fuzz_vgpu_execute.c"
