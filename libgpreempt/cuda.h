/* SPDX-License-Identifier: MIT */
/* A hint on CUDA: makes the context take the GPU before its work comes. */
#ifndef GP_LIBGPREEMPT_CUDA_H
#define GP_LIBGPREEMPT_CUDA_H

#include <stdint.h>

/* Makes the calling thread's context (without one: the only primary context of the process) take the GPU now and keep
 * it until in_ns from now and a little longer. Returns at once. Does nothing without CUDA, without a context, or on any
 * error of CUDA's: a hint is only a hint. */
void gp_cuda_bring_in(uint64_t in_ns);

#endif
