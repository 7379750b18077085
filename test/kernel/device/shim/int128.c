// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The kernel has no 128-bit division; the model divides now and then. */
#include <linux/types.h>

__extension__ typedef unsigned __int128 u128_t;
u128_t __udivti3(u128_t a, u128_t b);
u128_t __umodti3(u128_t a, u128_t b);

static u128_t divide(u128_t a, u128_t b, u128_t *rest)
{
	u128_t quotient = 0, remainder = 0;

	for (int i = 127; i >= 0; i--) {
		remainder = remainder << 1 | (a >> i & 1);
		if (remainder >= b) {
			remainder -= b;
			quotient |= (u128_t)1 << i;
		}
	}
	*rest = remainder;
	return quotient;
}

u128_t __udivti3(u128_t a, u128_t b)
{
	u128_t rest;

	return divide(a, b, &rest);
}

u128_t __umodti3(u128_t a, u128_t b)
{
	u128_t rest;

	divide(a, b, &rest);
	return rest;
}
