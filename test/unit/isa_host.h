// SPDX-License-Identifier: MIT
// What isa_kernels.cpp needs of HIP, on the CPU: each work item is a context of its own, barriers and exchanges between
// lanes switch between them. Shares nothing with the interpreter.
#ifndef GP_TEST_UNIT_ISA_HOST_H
#define GP_TEST_UNIT_ISA_HOST_H

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

struct host_index {
	unsigned x, y, z;
};
static host_index threadIdx, blockIdx, blockDim, gridDim;
#define __device__
#define __shared__ static

typedef void host_kernel(const uint32_t *in, uint32_t *out, uint32_t n);

enum { HOST_ITEM_MAX = 1024, HOST_STACK = 65536 };
struct host_item {
	ucontext_t context;
	bool ended, waits;
	unsigned waves_met; // exchanges it took part in
};
static host_item host_items[HOST_ITEM_MAX];
static char *host_stacks;
static ucontext_t host_main;
static unsigned host_at, host_count;
static uint32_t host_slots[HOST_ITEM_MAX];
static host_kernel *host_run_kernel;
static const uint32_t *host_in;
static uint32_t *host_out, host_n;

static void host_entry()
{
	host_run_kernel(host_in, host_out, host_n);
	host_items[host_at].ended = true;
	swapcontext(&host_items[host_at].context, &host_main);
}

static inline void host_yield()
{
	unsigned me = host_at;
	swapcontext(&host_items[me].context, &host_main);
}

static inline void __syncthreads()
{
	host_items[host_at].waits = true;
	host_yield();
}

// All lanes of a wave give their value, then each takes one.
static inline uint32_t host_exchange(uint32_t value, unsigned from)
{
	unsigned me = threadIdx.x, first = me & ~63u;

	host_slots[me] = value;
	__syncthreads();
	uint32_t got = host_slots[first + (from & 63u)];
	__syncthreads();
	return got;
}

template <typename T> static inline T host_exchange_as(T value, unsigned from)
{
	uint32_t bits;
	memcpy(&bits, &value, 4);
	bits = host_exchange(bits, from);
	memcpy(&value, &bits, 4);
	return value;
}
template <typename T> static inline T __shfl(T value, int from)
{
	return host_exchange_as(value, (unsigned)from);
}
template <typename T> static inline T __shfl_xor(T value, int mask)
{
	return host_exchange_as(value, (threadIdx.x & 63u) ^ (unsigned)mask);
}
template <typename T> static inline T __shfl_down(T value, unsigned by)
{
	unsigned lane = threadIdx.x & 63u;
	return host_exchange_as(value, lane + by < 64u ? lane + by : lane);
}
template <typename T> static inline T __shfl_up(T value, unsigned by)
{
	unsigned lane = threadIdx.x & 63u;
	return host_exchange_as(value, lane >= by ? lane - by : lane);
}
static inline uint64_t __ballot(int predicate)
{
	uint64_t mask = 0;
	host_slots[threadIdx.x] = predicate != 0;
	__syncthreads();
	for (unsigned i = 0; i < 64; i++)
		mask |= (uint64_t)host_slots[(threadIdx.x & ~63u) + i] << i;
	__syncthreads();
	return mask;
}

/* Items take turns at barriers only: a plain read and write is atomic here. */
#define HOST_ATOMIC(name, next)                                       \
	template <typename T> static inline T atomic##name(T *p, T x) \
	{                                                             \
		T old = *p;                                           \
		*p = (T)(next);                                       \
		return old;                                           \
	}
HOST_ATOMIC(Add, old + x)
HOST_ATOMIC(Sub, old - x)
HOST_ATOMIC(Min, x < old ? x : old)
HOST_ATOMIC(Max, x > old ? x : old)
HOST_ATOMIC(And, old &x)
HOST_ATOMIC(Or, old | x)
HOST_ATOMIC(Xor, old ^ x)
HOST_ATOMIC(Exch, x)
template <typename T> static inline T atomicCAS(T *p, T c, T x)
{
	T old = *p;
	if (old == c)
		*p = x;
	return old;
}
static inline unsigned atomicInc(unsigned *p, unsigned x)
{
	unsigned old = *p;
	*p = old >= x ? 0 : old + 1;
	return old;
}
static inline unsigned atomicDec(unsigned *p, unsigned x)
{
	unsigned old = *p;
	*p = old == 0 || old > x ? x : old - 1;
	return old;
}
static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
	return __builtin_popcountll(x);
}
static inline int __clz(int x)
{
	return x ? __builtin_clz((unsigned)x) : 32;
}
static inline int __ffs(int x)
{
	return __builtin_ffs(x);
}
static inline unsigned __brev(unsigned x)
{
	unsigned r = 0;
	for (int i = 0; i < 32; i++)
		r |= (x >> i & 1u) << (31 - i);
	return r;
}
static inline unsigned __umulhi(unsigned x, unsigned y)
{
	return (unsigned)((uint64_t)x * y >> 32);
}
static inline int __mulhi(int x, int y)
{
	return (int)((int64_t)x * y >> 32);
}
struct float4 {
	float x, y, z, w;
};

static void host_block()
{
	for (;;) {
		unsigned ended = 0;

		for (host_at = 0; host_at < host_count; host_at++) {
			host_item *item = &host_items[host_at];

			if (item->ended) {
				ended++;
				continue;
			}
			item->waits = false;
			threadIdx.x = host_at;
			swapcontext(&host_main, &item->context);
			ended += item->ended;
		}
		if (ended == host_count)
			return;
	}
}

static void host_launch(host_kernel *kernel, unsigned blocks, unsigned threads, const uint32_t *in, uint32_t *out,
			uint32_t n)
{
	if (!host_stacks)
		host_stacks = (char *)malloc((size_t)HOST_ITEM_MAX * HOST_STACK);
	host_run_kernel = kernel;
	host_in = in;
	host_out = out;
	host_n = n;
	host_count = threads;
	blockDim = { threads, 1, 1 };
	gridDim = { blocks, 1, 1 };
	for (unsigned b = 0; b < blocks; b++) {
		blockIdx = { b, 0, 0 };
		for (unsigned i = 0; i < threads; i++) {
			host_items[i] = host_item();
			getcontext(&host_items[i].context);
			host_items[i].context.uc_stack.ss_sp = host_stacks + (size_t)i * HOST_STACK;
			host_items[i].context.uc_stack.ss_size = HOST_STACK;
			host_items[i].context.uc_link = &host_main;
			makecontext(&host_items[i].context, host_entry, 0);
		}
		host_block();
	}
}

#endif
