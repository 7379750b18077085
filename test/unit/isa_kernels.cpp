// SPDX-License-Identifier: MIT
// Kernels of every ordinary kind, compiled twice: for GPUs, whose code the interpreter executes, and for the CPU
// (isa_host.h), whose results are the expectation. All take the same arguments: n words in, n words out. Contraction is
// off in both, so results are equal bit for bit, but for those that use what hardware only approximates (ABOUT).
#ifdef ISA_HOST
#include "isa_host.h"
#else
#include <hip/hip_runtime.h>
#endif
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

#ifdef ISA_HOST
#define KERNEL(name) static void name(const u32 *in, u32 *out, u32 n)
#else
#define KERNEL(name) extern "C" __global__ void name(const u32 *in, u32 *out, u32 n)
#endif
#define I (blockIdx.x * blockDim.x + threadIdx.x)
// A kernel whose item i computes one word from three.
#define EACH(name, expression)                                                  \
	KERNEL(name)                                                            \
	{                                                                       \
		u32 i = I, x = in[i], y = in[(i + 1) % n], z = in[(i + 7) % n]; \
		(void)y, (void)z;                                               \
		out[i] = (u32)(expression);                                     \
	}
static __device__ inline float F(u32 x) { float f; memcpy(&f, &x, 4); return f; }
static __device__ inline u32 B(float f) { u32 x; memcpy(&x, &f, 4); return x; }
// A float of ordinary size made of any word.
static __device__ inline float N(u32 x) { return (float)(i32)x * 0x1p-20f; }
static __device__ inline double D(u32 x, u32 y) { return (double)(i64)((u64)x << 32 | y) * 0x1p-40; }
static __device__ inline u32 fold(double d) { u64 x; memcpy(&x, &d, 8); return (u32)x ^ (u32)(x >> 32); }
static __device__ inline u32 fold64(u64 x) { return (u32)x ^ (u32)(x >> 32); }

EACH(int_add, x + y * 3u - z)
EACH(int_mul, x * y + __umulhi(x, z) + (u32)__mulhi((i32)y, (i32)z))
EACH(int_div, x / (y | 1u))
EACH(int_mod, (u32)((i32)x % (i32)(y | 1u)))
EACH(int_shift, (x << (y & 31)) ^ (x >> (z & 31)) ^ (u32)((i32)x >> (y & 31)))
EACH(int_minmax, (u32)((i32)x < (i32)y ? x : y) + (x > z ? x : z))
EACH(int_bits, (u32)__popc(x) + (u32)__clz((i32)y) * 3u + (u32)__ffs((i32)z) * 5u + __brev(x))
EACH(int_field, (x >> 5 & 0x3ff) | (u32)((i32)(y << 9) >> 20))
EACH(int_rotate, (x << 7 | x >> 25) + (y << 13 | y >> 19))
EACH(int_select, x > y ? (y > z ? x ^ z : y) : (x == z ? 5u : x - z))
EACH(int_24, (x & 0xffffff) * (y & 0xffffff) + (z & 0xffffff))
EACH(int_abs, (u32)((i32)x < 0 ? -(i32)(x | 1) : (i32)x) + (u32)((i32)y >= 0))
EACH(int_bytes, (x & 0xff) | (y & 0xff) << 8 | (z & 0xff00) << 8 | (x >> 24) << 24)
EACH(int_short, (u32)(uint16_t)((uint16_t)x * (uint16_t)y + (uint16_t)z))
EACH(int_char, (u32)(uint8_t)(x + y) + (u32)(i32)(int8_t)(y - z))
EACH(int_three, x + y + z + ((x << 3) | z) + ((x & y) | z) + (x ^ y ^ z))
EACH(wide_add, fold64(((u64)x << 32 | y) + ((u64)z << 32 | x)))
EACH(wide_mul, fold64(((u64)x << 32 | y) * ((u64)z << 32 | 77u)))
EACH(wide_div, fold64(((u64)x << 32 | y) / (((u64)(z & 0xffff) << 16) | 1u)))
EACH(wide_shift, fold64((((u64)x << 32 | y) << (z & 63)) ^ (((u64)y << 32 | x) >> (x & 63)) ^ (u64)((i64)((u64)x << 32 | z) >> (y & 63))))
EACH(wide_compare, ((i64)((u64)x << 32 | y) < (i64)((u64)z << 32 | x)) + 2 * (((u64)x << 32 | y) > ((u64)y << 32 | z)))
EACH(wide_bits, (u32)__popcll((u64)x << 32 | y))
EACH(float_add, B(N(x) + N(y) - N(z)))
EACH(float_mul, B(N(x) * N(y) + N(z)))
EACH(float_any, B(F(x) * 0.5f + 1.0f) | (F(x) != F(x) ? 0x7fffffff : 0))
EACH(float_div, B(N(x) / N(y | 1)))
EACH(float_div_wide, B(F(x & 0x7effffff) / F((y & 0x7effffff) | 0x00800000)))
EACH(float_sqrt, B(sqrtf(fabsf(N(x)))))
EACH(float_fma, B(fmaf(N(x), N(y), N(z))))
EACH(float_round, B(floorf(N(x))) ^ B(ceilf(N(y))) ^ B(truncf(N(z))) ^ B(rintf(N(x) * 4)))
EACH(float_to_int, (u32)(i32)(N(x) * 0.25f) + (u32)fabsf(N(y)))
EACH(int_to_float, B((float)(i32)x) ^ B((float)y) ^ B((float)(uint8_t)z))
EACH(float_minmax, B(fminf(N(x), N(y))) ^ B(fmaxf(N(y), N(z))))
EACH(float_compare, (N(x) < N(y)) | (N(y) <= N(z)) << 1 | (F(x) == F(y)) << 2 | (F(x) != F(z)) << 3 | (F(y) > F(z)) << 4 | !(F(x) >= F(z)) << 5)
EACH(float_class, __builtin_isnan(F(x)) | __builtin_isinf(F(y)) << 1 | (fabsf(F(z)) < 1e-30f) << 2)
EACH(float_sign, B(copysignf(N(x), N(y))) ^ B(-fabsf(N(z))))
EACH(float_ldexp, B(ldexpf(N(x), (i32)(y & 31) - 16)))
EACH(double_add, fold(D(x, y) + D(y, z)))
EACH(double_mul, fold(D(x, y) * D(z, x) - D(y, y)))
EACH(double_div, fold(D(x, y) / D(z | 1, x)))
EACH(double_sqrt, fold(sqrt(fabs(D(x, z)))))
EACH(double_fma, fold(fma(D(x, y), D(y, z), D(z, x))))
EACH(double_convert, fold((double)(i32)x) ^ fold((double)y) ^ B((float)D(x, z)) ^ (u32)(i32)(D(x, y) * 0x1p-12) ^ fold((double)F(z & 0x7f7fffff)))
EACH(double_round, fold(floor(D(x, y))) ^ fold(rint(D(y, z))) ^ fold(trunc(D(z, x))) ^ fold(ceil(D(z, y))))
EACH(double_minmax, fold(fmin(D(x, y), D(y, z))) ^ (u32)(D(x, z) < D(y, x)))

static __device__ inline _Float16 H(u32 x) { return (_Float16)((float)(int16_t)x * 0.01f); }
static __device__ inline u32 hb(_Float16 h) { uint16_t x; memcpy(&x, &h, 2); return x; }
EACH(half_add, hb((_Float16)(H(x) + H(y))) | hb((_Float16)(H(y) - H(z))) << 16)
EACH(half_mul, hb((_Float16)(H(x) * H(y))) | hb((_Float16)((float)H(y) + (float)H(z))) << 16)
EACH(half_compare, (H(x) < H(y)) | (H(y) == H(z)) << 1 | (H(x) >= H(z)) << 2)

EACH(about_trig, B(sinf(N(x) * 0x1p-6f) + cosf(N(y) * 0x1p-6f)))
EACH(about_exp, B(expf(N(x) * 0x1p-8f) + logf(fabsf(N(y)) + 1) + powf(fabsf(N(z)) * 0x1p-8f, 1.7f)))
EACH(about_rsqrt, B(1.0f / sqrtf(fabsf(N(x)) + 1)))
EACH(about_tan, B(atanf(N(x)) + tanhf(N(y) * 0x1p-8f)))
EACH(about_double, B((float)(sin(D(x, y) * 0x1p-10) + exp(D(y, z) * 0x1p-22) + log(fabs(D(z, x)) + 1))))

KERNEL(collatz)
{
	u64 v = (in[I] & 0xffff) + 1;
	u32 steps = 0;

	for (; v != 1; steps++)
		v = v & 1 ? 3 * v + 1 : v / 2;
	out[I] = steps;
}

KERNEL(mandelbrot)
{
	float cr = (float)(I % 64) * (3.0f / 64) - 2.0f, ci = (float)(I / 64) * (2.0f / 16) - 1.0f, r = 0, m = 0;
	u32 k = 0;

	while (k < 100 && r * r + m * m < 4.0f) {
		float t = r * r - m * m + cr;

		m = 2 * r * m + ci;
		r = t;
		k++;
	}
	out[I] = k;
}

KERNEL(generator)
{
	u32 s = in[I];

	for (int k = 0; k < 50; k++)
		s = s * 1664525u + 1013904223u ^ s >> 13;
	out[I] = s;
}

KERNEL(crc)
{
	u32 c = ~0u;

	for (int k = 0; k < 4; k++) {
		c ^= in[(I + k) % n];
		for (int b = 0; b < 32; b++)
			c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
	}
	out[I] = ~c;
}

KERNEL(rounds)
{
	u32 a = in[I], b = in[(I + 1) % n], c = in[(I + 2) % n], d = in[(I + 3) % n];

	for (int k = 0; k < 20; k++) {
		u32 f = (b & c) | (~b & d), t = a + f + 0x5a827999u + (u32)k;

		a = d;
		d = c;
		c = b;
		b += t << (k % 4 * 5 + 3) | t >> (29 - k % 4 * 5);
	}
	out[I] = a ^ b ^ c ^ d;
}

KERNEL(polynomial)
{
	float x = N(in[I]) * 0x1p-10f, r = 0;

	for (int k = 0; k < 12; k++)
		r = r * x + (float)(k + 1);
	out[I] = B(r);
}

KERNEL(switches)
{
	u32 x = in[I], r = 0;

	for (int k = 0; k < 8; k++, x >>= 4)
		switch (x & 15) {
		case 0: r += 17; break;
		case 1: r *= 3; break;
		case 2: r ^= x; break;
		case 5: r -= 9; break;
		case 7: r = r << 1 | r >> 31; break;
		case 11: r += n; break;
		case 14: r = ~r; break;
		default: r += x & 15;
		}
	out[I] = r;
}

KERNEL(diverge)
{
	u32 x = in[I], r = 0;

	for (u32 k = 0; k < (x & 31); k++) {
		if (in[(I + k) % n] & 1)
			continue;
		if ((in[(I + k) % n] & 0x70) == 0x70)
			break;
		for (u32 j = 0; j < (k & 3); j++)
			r += k * j + 1;
	}
	out[I] = r;
}

KERNEL(state_machine)
{
	u32 state = in[I] & 3, r = 0;

	for (int k = 0; k < 40; k++) {
		u32 bit = in[(I + k) % n] & 1;

		if (state == 0)
			state = bit ? 1 : 2;
		else if (state == 1)
			state = bit ? 3 : 0;
		else if (state == 2)
			state = bit ? 0 : 3;
		else
			state = bit ? 2 : 1;
		r = r * 5 + state;
	}
	out[I] = r;
}

// Registers by number, private memory, calls.
KERNEL(stack_array)
{
	u32 a[24], r = 0;

	for (int k = 0; k < 24; k++)
		a[k] = in[(I + k) % n];
	for (int k = 0; k < 24; k++) {
		u32 j = a[k] % 24, t = a[k];

		a[k] = a[j];
		a[j] = t + 1;
	}
	for (int k = 0; k < 24; k++)
		r = r * 31 + a[k];
	out[I] = r;
}

KERNEL(small_array)
{
	u32 a[4] = { in[I], in[(I + 1) % n], in[(I + 2) % n], in[(I + 3) % n] };

	out[I] = a[in[0] & 3] * 3 + a[in[1] & 3] + a[in[I] & 3];
}

typedef u32 sixteen __attribute__((ext_vector_type(16)));

KERNEL(indexed_registers)
{
	sixteen a;

	for (int k = 0; k < 16; k++)
		// cppcheck-suppress uninitvar ; a vector, which it takes for a pointer
		a[k] = in[(I + k) % n];
	for (int k = 0; k < 4; k++) {
		a[in[k] & 15] = a[in[k + 4] & 15] * 3 + (u32)k;
		a[in[(I + k) % n] & 15] ^= (u32)k;
	}
	out[I] = a[in[9] & 15] + a[in[I] & 15] * 5;
}

static __device__ __attribute__((noinline)) u32 callee(u32 x, u32 y)
{
	return x * 3 + (y ^ x >> 3);
}

static __device__ __attribute__((noinline)) u32 deeper(u32 x, u32 depth)
{
	return depth ? deeper(callee(x, depth), depth - 1) + depth : x;
}

KERNEL(calls)
{
	out[I] = callee(in[I], deeper(in[(I + 1) % n], 5));
}

KERNEL(vectors)
{
	float4 v = ((const float4 *)in)[I % (n / 4)], w;

	w.x = v.w;
	w.y = v.z;
	w.z = v.y;
	w.w = v.x;
	out[I] = B(w.x) + 3 * B(w.y) + 5 * B(w.z) + 7 * B(w.w);
}

KERNEL(bytes_of_memory)
{
	const uint8_t *from = (const uint8_t *)in;
	uint8_t *to = (uint8_t *)out;

	for (u32 k = 0; k < 4; k++)
		to[I * 4 + k] = (uint8_t)(from[(I * 4 + 5 * k + 1) % (n * 4)] + 3);
}

KERNEL(shorts_of_memory)
{
	const int16_t *from = (const int16_t *)in;
	int16_t *to = (int16_t *)out;

	to[I * 2] = (int16_t)(from[(I * 2 + 3) % (n * 2)] * 2);
	to[I * 2 + 1] = (int16_t)(from[(I * 2 + 9) % (n * 2)] - 1);
}

KERNEL(wide_of_memory)
{
	const u64 *from = (const u64 *)in;

	if (I < n / 2)
		((u64 *)out)[I] = from[(I * 7) % (n / 2)] * 3 + from[I];
}

// LDS and barriers.
KERNEL(lds_reverse)
{
	__shared__ u32 a[256];

	a[threadIdx.x] = in[I];
	__syncthreads();
	out[I] = a[255 - threadIdx.x];
}

KERNEL(lds_sum)
{
	__shared__ u32 a[256];

	a[threadIdx.x] = in[I];
	for (u32 half = 128; half; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			a[threadIdx.x] += a[threadIdx.x + half];
	}
	__syncthreads();
	out[I] = a[0] + threadIdx.x;
}

KERNEL(lds_scan)
{
	__shared__ u32 a[2][256];
	u32 at = 0;

	a[0][threadIdx.x] = in[I];
	for (u32 by = 1; by < 256; by *= 2) {
		__syncthreads();
		a[1 - at][threadIdx.x] = a[at][threadIdx.x] + (threadIdx.x >= by ? a[at][threadIdx.x - by] : 0);
		at = 1 - at;
	}
	out[I] = a[at][threadIdx.x];
}

KERNEL(lds_sort)
{
	__shared__ i32 a[256];
	u32 t = threadIdx.x;

	a[t] = (i32)in[I];
	__syncthreads();
	for (u32 k = 2; k <= 256; k *= 2)
		for (u32 j = k / 2; j; j /= 2) {
			u32 o = t ^ j;

			if (o > t && (a[t] > a[o]) == !(t & k)) {
				i32 x = a[t];

				a[t] = a[o];
				a[o] = x;
			}
			__syncthreads();
		}
	out[I] = (u32)a[t];
}

KERNEL(lds_transpose)
{
	__shared__ u32 a[16][17];
	u32 x = threadIdx.x % 16, y = threadIdx.x / 16;

	a[y][x] = in[I];
	__syncthreads();
	out[I] = a[x][y];
}

KERNEL(matmul)
{
	__shared__ float a[16][16], b[16][16];
	u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
	float sum = 0;

	for (u32 tile = 0; tile < 4; tile++) {
		a[y][x] = N(in[(blockIdx.x * 256 + tile * 256 + y * 16 + x) % n]) * 0x1p-8f;
		b[y][x] = N(in[(tile * 256 + x * 16 + y + 5) % n]) * 0x1p-8f;
		__syncthreads();
		for (u32 k = 0; k < 16; k++)
			sum += a[y][k] * b[k][x];
		__syncthreads();
	}
	out[I] = B(sum);
}

KERNEL(lds_bytes)
{
	__shared__ uint8_t a[512];
	__shared__ uint16_t b[256];

	a[threadIdx.x * 2] = (uint8_t)in[I];
	a[threadIdx.x * 2 + 1] = (uint8_t)(in[I] >> 8);
	b[threadIdx.x] = (uint16_t)(in[I] >> 16);
	__syncthreads();
	out[I] = (u32)a[(threadIdx.x * 5 + 3) % 512] | (u32)b[(threadIdx.x + 77) % 256] << 16;
}

KERNEL(lds_doubles)
{
	__shared__ double a[256];

	a[threadIdx.x] = D(in[I], threadIdx.x);
	__syncthreads();
	out[I] = fold(a[(threadIdx.x * 3) % 256] + a[(threadIdx.x + 1) % 256]);
}

KERNEL(convolution)
{
	__shared__ float a[18][18];
	u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
	float sum = 0;

	for (u32 k = threadIdx.x; k < 324; k += 256)
		a[k / 18][k % 18] = N(in[(blockIdx.x * 100 + k) % n]);
	__syncthreads();
	for (u32 dy = 0; dy < 3; dy++)
		for (u32 dx = 0; dx < 3; dx++)
			sum += a[y + dy][x + dx] * (float)(dx + 3 * dy + 1);
	out[I] = B(sum);
}

// Atomics whose order does not show.
KERNEL(histogram)
{
	__shared__ u32 bins[256];

	bins[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(&bins[in[I] & 255], 1u);
	atomicAdd(&bins[in[I] >> 24], 2u);
	__syncthreads();
	atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

KERNEL(atomics)
{
	u32 x = in[I], at = x % 64;

	atomicAdd(&out[at], x);
	atomicSub(&out[64 + at], x);
	atomicMax(&out[128 + at], x);
	atomicAnd(&out[192 + at], x); // of zeros: stays
	atomicOr(&out[256 + at], x);
	atomicXor(&out[320 + at], x);
	atomicMax((i32 *)&out[384 + at], (i32)x);
	atomicMin((i32 *)&out[448 + at], (i32)x);
}

KERNEL(atomics_lds)
{
	__shared__ u32 a[64];
	__shared__ i32 b[2];
	u32 x = in[I];

	if (threadIdx.x < 64)
		a[threadIdx.x] = 0;
	if (threadIdx.x < 2)
		b[threadIdx.x] = 0;
	__syncthreads();
	atomicXor(&a[x & 63], x);
	atomicMin(&b[0], (i32)x);
	atomicMax(&b[1], (i32)x);
	__syncthreads();
	out[I] = a[threadIdx.x & 63] + (u32)b[0] * 3 + (u32)b[1];
}

KERNEL(atomics_wide)
{
	unsigned long long *to = (unsigned long long *)out;

	atomicAdd(&to[in[I] & 31], (unsigned long long)in[I] << 20);
	atomicMax(&to[32 + (in[I] & 31)], (unsigned long long)in[I] << 31);
}

KERNEL(atomics_float)
{
	float *to = (float *)out;

	atomicAdd(&to[in[I] & 31], (float)(in[I] >> 20)); // small whole numbers: exact in any order
}

KERNEL(compare_and_swap)
{
	u32 old = out[in[I] & 31], seen;

	do {
		seen = old;
		old = atomicCAS(&out[in[I] & 31], seen, seen * 1u + (in[I] >> 16));
	} while (old != seen);
}

KERNEL(tickets)
{
	u32 mine = atomicInc(&out[0], 0xffffffffu), other = atomicDec(&out[1], 4000u);

	atomicAdd(&out[2], mine);
	atomicXor(&out[3], other);
}

// Lanes that look at each other.
KERNEL(shuffle_down)
{
	u32 x = in[I];

	for (u32 by = 32; by; by /= 2)
		x += __shfl_down(x, by);
	out[I] = (threadIdx.x & 63) ? 0 : x;
}

KERNEL(shuffle_xor)
{
	u32 x = in[I];

	for (int by = 32; by; by /= 2)
		x = x * 3 + (u32)__shfl_xor((int)x, by);
	out[I] = x;
}

KERNEL(shuffle_up)
{
	u32 x = in[I], lane = threadIdx.x & 63;

	for (u32 by = 1; by < 64; by *= 2) {
		u32 other = __shfl_up(x, by);

		if (lane >= by)
			x += other;
	}
	out[I] = x;
}

KERNEL(shuffle_any)
{
	out[I] = (u32)__shfl((int)in[I], (int)(in[I] >> 7 & 63)) + B(__shfl(N(in[I]), 5));
}

KERNEL(ballots)
{
	u64 mask = __ballot(in[I] & 1);

	out[I] = (u32)__popcll(mask & ((1ull << (threadIdx.x & 63)) - 1)) + fold64(mask);
}

// Approximations, over many values.
KERNEL(about_softmax)
{
	__shared__ float a[256];
	float x = N(in[I]) * 0x1p-9f, most = -1e30f, sum = 0;

	a[threadIdx.x] = x;
	__syncthreads();
	for (int k = 0; k < 256; k++)
		most = fmaxf(most, a[k]);
	for (int k = 0; k < 256; k++)
		sum += expf(a[k] - most);
	out[I] = B(expf(x - most) / sum);
}

KERNEL(about_layernorm)
{
	__shared__ float a[256];
	float mean = 0, variance = 0;

	a[threadIdx.x] = N(in[I]) * 0x1p-9f;
	__syncthreads();
	for (int k = 0; k < 256; k++)
		mean += a[k];
	mean /= 256;
	for (int k = 0; k < 256; k++)
		variance += (a[k] - mean) * (a[k] - mean);
	out[I] = B((a[threadIdx.x] - mean) / sqrtf(variance / 256 + 1e-5f));
}

#ifdef ISA_HOST
#define LIST(X)                                                                                                    \
	X(int_add) X(int_mul) X(int_div) X(int_mod) X(int_shift) X(int_minmax) X(int_bits) X(int_field)            \
	X(int_rotate) X(int_select) X(int_24) X(int_abs) X(int_bytes) X(int_short) X(int_char) X(int_three)        \
	X(wide_add) X(wide_mul) X(wide_div) X(wide_shift) X(wide_compare) X(wide_bits) X(float_add) X(float_mul)   \
	X(float_any) X(float_div) X(float_div_wide) X(float_sqrt) X(float_fma) X(float_round) X(float_to_int)      \
	X(int_to_float) X(float_minmax) X(float_compare) X(float_class) X(float_sign) X(float_ldexp) X(double_add) \
	X(double_mul) X(double_div) X(double_sqrt) X(double_fma) X(double_convert) X(double_round)                 \
	X(double_minmax) X(half_add) X(half_mul) X(half_compare) X(about_trig) X(about_exp) X(about_rsqrt)         \
	X(about_tan) X(about_double) X(collatz) X(mandelbrot) X(generator) X(crc) X(rounds) X(polynomial)          \
	X(switches) X(diverge) X(state_machine) X(stack_array) X(small_array) X(indexed_registers) X(calls) X(vectors)                  \
	X(bytes_of_memory) X(shorts_of_memory) X(wide_of_memory) X(lds_reverse) X(lds_sum) X(lds_scan) X(lds_sort) \
	X(lds_transpose) X(matmul) X(lds_bytes) X(lds_doubles) X(convolution) X(histogram) X(atomics)              \
	X(atomics_lds) X(atomics_wide) X(atomics_float) X(compare_and_swap) X(tickets) X(shuffle_down)             \
	X(shuffle_xor) X(shuffle_up) X(shuffle_any) X(ballots) X(about_softmax) X(about_layernorm)
#define NAME(name) #name,
#define RUN(name) name,
static const char *const names[] = { LIST(NAME) nullptr };
static host_kernel *const kernels[] = { LIST(RUN) };

extern "C" const char *isa_kernel_name(unsigned index);
extern "C" void isa_kernel_run(unsigned index, unsigned blocks, unsigned threads, const u32 *in, u32 *out, u32 n);

extern "C" const char *isa_kernel_name(unsigned index)
{
	return names[index];
}

extern "C" void isa_kernel_run(unsigned index, unsigned blocks, unsigned threads, const u32 *in, u32 *out, u32 n)
{
	host_launch(kernels[index], blocks, threads, in, out, n);
}
#endif
