#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes test/data/isa/ops.txt: for each operation an instruction, as LLVM's assembler encodes it, operands, and the result as
Python computes it from AMD's description of the operation. Nothing here is shared with the interpreter.

usage: test/unit/isa_ops.py > test/data/isa/ops.txt   (needs llvm-mc-15)
"""
import math
import struct
import subprocess
from fractions import Fraction

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
WORDS = [
    (0, 0, 0),
    (1, 2, 3),
    (0xFFFFFFFF, 1, 0x80000000),
    (0x80000000, 31, 7),
    (0x12345678, 0x9ABCDEF0, 0x0F0F3344),
    (0x7FFFFFFF, 0xFFFFFFFE, 5),
    (0x00FF00FF, 0x01020304, 0x0C070500),
    (0xDEADBEEF, 13, 0x00010203),
]
FLOATS = [
    (1.5, 2.25, -3.0),
    (-0.75, 1e10, 4.0),
    (3.0, -7.0, 0.5),
    (1e-3, 255.0, -1.25),
    (100.75, -0.5, 2.0),
    (-2.5, 2.5, 1.0),
    (65504.0, 3.5, -8.0),
    (0.0, -1.0, 6.0),
]
DOUBLES = [
    (1.5, 2.25, -3.0),
    (-0.75, 1e10, 4.0),
    (3.0, -7.0, 0.5),
    (123456.789, 255.0, -1.25),
    (1e200, -0.5, 2.0),
    (-2.5, 2.5, 1.0),
]
HALVES = [
    (1.5, 2.25, -3.0),
    (-0.75, 100.0, 4.0),
    (3.0, -7.0, 0.5),
    (0.125, 255.0, -1.25),
    (-2.5, 2.5, 1.0),
    (60000.0, 1.0, 8.0),
]


def s32(x):
    return x - (1 << 32) if x >> 31 & 1 else x


def s16(x):
    return (x & 0xFFFF) - (1 << 16) if x >> 15 & 1 else x & 0xFFFF


def s8(x):
    return (x & 0xFF) - 256 if x >> 7 & 1 else x & 0xFF


def s24(x):
    return (x & 0xFFFFFF) - (1 << 24) if x >> 23 & 1 else x & 0xFFFFFF


def s64(x):
    return x - (1 << 64) if x >> 63 & 1 else x


def u24(x):
    return x & 0xFFFFFF


def fb(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def bf(x):
    return struct.unpack("<f", struct.pack("<I", x))[0]


def db(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def bd(x):
    return struct.unpack("<d", struct.pack("<Q", x))[0]


def hb(x):
    try:
        return struct.unpack("<H", struct.pack("<e", x))[0]
    except OverflowError:
        return 0xFC00 if x < 0 else 0x7C00


def bh(x):
    return struct.unpack("<e", struct.pack("<H", x & 0xFFFF))[0]


def exact(f):
    return float(f)


def fma(x, y, z):
    return exact(Fraction(x) * Fraction(y) + Fraction(z))


def signed(f, x):
    return math.copysign(f, x) if f == 0 else f


def rne(x):
    return signed(float(round(Fraction(x))), x)


def trunc(x):
    return signed(float(int(x)), x)


def ceil(x):
    return signed(float(math.ceil(x)), x)


def floor(x):
    return signed(float(math.floor(x)), x)


def trunc_sat(x, low, high):
    return max(low, min(high, int(x)))


def brev(x):
    return int(format(x, "032b")[::-1], 2)


def ffs(x):
    return (x & -x).bit_length() - 1 if x else M32


def clz(x):
    return 32 - x.bit_length() if x else M32


def pc(x):
    return bin(x).count("1")


def bytes4(x):
    return [x >> k & 255 for k in (0, 8, 16, 24)]


def perm(x, y, z):
    pool = bytes4(y) + bytes4(x)
    out = 0
    for k, s in enumerate(bytes4(z)):
        b = (
            pool[s]
            if s < 8
            else (255 if (y, y, x, x)[s - 8] >> ((s - 8) % 2 * 16 + 15) & 1 else 0)
            if s < 12
            else 0
            if s == 12
            else 255
        )
        out |= b << 8 * k
    return out


def bfe_i(x, o, w):
    o, w = o & 31, w & 31
    if not w:
        return 0
    v = (s32(x) >> o) & ((1 << w) - 1)
    return (v - (1 << w) if v >> (w - 1) & 1 else v) & M32


def med(*v):
    return sorted(v)[1]


U1 = {
    "mov_b32": lambda x: x,
    "not_b32": lambda x: ~x,
    "bfrev_b32": brev,
    "ffbh_u32": clz,
    "ffbl_b32": ffs,
    "ffbh_i32": lambda x: clz(x if not x >> 31 else ~x & M32),
    "cvt_f32_i32": lambda x: fb(float(s32(x))),
    "cvt_f32_u32": lambda x: fb(float(x)),
    "cvt_f32_ubyte0": lambda x: fb(float(x & 255)),
    "cvt_f32_ubyte1": lambda x: fb(float(x >> 8 & 255)),
    "cvt_f32_ubyte2": lambda x: fb(float(x >> 16 & 255)),
    "cvt_f32_ubyte3": lambda x: fb(float(x >> 24)),
    "cvt_off_f32_i4": lambda x: fb(((x & 15) - (16 if x & 8 else 0)) / 16),
    "cvt_f16_u16": lambda x: hb(float(x & 0xFFFF)),
    "cvt_f16_i16": lambda x: hb(float(s16(x))),
    "sat_pk_u8_i16": lambda x: max(0, min(255, s16(x))) | max(0, min(255, s16(x >> 16))) << 8,
}
U2 = {
    "mul_i32_i24": lambda x, y: s24(x) * s24(y),
    "mul_hi_i32_i24": lambda x, y: s24(x) * s24(y) >> 32,
    "mul_u32_u24": lambda x, y: u24(x) * u24(y),
    "mul_hi_u32_u24": lambda x, y: u24(x) * u24(y) >> 32,
    "min_i32": lambda x, y: min(s32(x), s32(y)),
    "max_i32": lambda x, y: max(s32(x), s32(y)),
    "min_u32": min,
    "max_u32": max,
    "lshrrev_b32": lambda x, y: y >> (x & 31),
    "ashrrev_i32": lambda x, y: s32(y) >> (x & 31),
    "lshlrev_b32": lambda x, y: y << (x & 31),
    "and_b32": lambda x, y: x & y,
    "or_b32": lambda x, y: x | y,
    "xor_b32": lambda x, y: x ^ y,
    "xnor_b32": lambda x, y: ~(x ^ y),
    "add_u32": lambda x, y: x + y,
    "sub_u32": lambda x, y: x - y,
    "subrev_u32": lambda x, y: y - x,
    "add_u16": lambda x, y: (x + y) & 0xFFFF,
    "sub_u16": lambda x, y: (x - y) & 0xFFFF,
    "subrev_u16": lambda x, y: (y - x) & 0xFFFF,
    "mul_lo_u16": lambda x, y: x * y & 0xFFFF,
    "lshlrev_b16": lambda x, y: y << (x & 15) & 0xFFFF,
    "lshrrev_b16": lambda x, y: (y & 0xFFFF) >> (x & 15),
    "ashrrev_i16": lambda x, y: s16(y) >> (x & 15) & 0xFFFF,
    "max_u16": lambda x, y: max(x & 0xFFFF, y & 0xFFFF),
    "min_u16": lambda x, y: min(x & 0xFFFF, y & 0xFFFF),
    "max_i16": lambda x, y: max(s16(x), s16(y)) & 0xFFFF,
    "min_i16": lambda x, y: min(s16(x), s16(y)) & 0xFFFF,
    "mul_lo_u32": lambda x, y: x * y,
    "mul_hi_u32": lambda x, y: x * y >> 32,
    "mul_hi_i32": lambda x, y: s32(x) * s32(y) >> 32,
    "bcnt_u32_b32": lambda x, y: pc(x) + y,
    "bfm_b32": lambda x, y: ((1 << (x & 31)) - 1) << (y & 31),
    "cvt_pk_u16_u32": lambda x, y: min(x, 0xFFFF) | min(y, 0xFFFF) << 16,
    "cvt_pk_i16_i32": lambda x, y: trunc_sat(s32(x), -32768, 32767) & 0xFFFF
    | (trunc_sat(s32(y), -32768, 32767) & 0xFFFF) << 16,
    "add_i32": lambda x, y: x + y,
    "sub_i32": lambda x, y: x - y,
    "add_i16": lambda x, y: (x + y) & 0xFFFF,
    "sub_i16": lambda x, y: (x - y) & 0xFFFF,
    "pack_b32_f16": lambda x, y: x & 0xFFFF | (y & 0xFFFF) << 16,
}
U3 = {
    "mad_i32_i24": lambda x, y, z: s24(x) * s24(y) + z,
    "mad_u32_u24": lambda x, y, z: u24(x) * u24(y) + z,
    "bfe_u32": lambda x, y, z: x >> (y & 31) & ((1 << (z & 31)) - 1),
    "bfe_i32": bfe_i,
    "bfi_b32": lambda x, y, z: x & y | ~x & z,
    "alignbit_b32": lambda x, y, z: (x << 32 | y) >> (z & 31),
    "alignbyte_b32": lambda x, y, z: (x << 32 | y) >> 8 * (z & 3),
    "min3_i32": lambda x, y, z: min(s32(x), s32(y), s32(z)),
    "min3_u32": min,
    "max3_i32": lambda x, y, z: max(s32(x), s32(y), s32(z)),
    "max3_u32": max,
    "med3_i32": lambda x, y, z: med(s32(x), s32(y), s32(z)),
    "med3_u32": med,
    "sad_u32": lambda x, y, z: abs(x - y) + z,
    "sad_u8": lambda x, y, z: sum(abs(a - b) for a, b in zip(bytes4(x), bytes4(y))) + z,
    "sad_hi_u8": lambda x, y, z: (sum(abs(a - b) for a, b in zip(bytes4(x), bytes4(y))) << 16) + z,
    "msad_u8": lambda x, y, z: sum(abs(a - b) if b else 0 for a, b in zip(bytes4(x), bytes4(y))) + z,
    "sad_u16": lambda x, y, z: abs((x & 0xFFFF) - (y & 0xFFFF)) + abs((x >> 16) - (y >> 16)) + z,
    "perm_b32": perm,
    "lerp_u8": lambda x, y, z: sum(
        ((a + b + (c & 1)) >> 1) << 8 * k for k, (a, b, c) in enumerate(zip(bytes4(x), bytes4(y), bytes4(z)))
    ),
    "xad_u32": lambda x, y, z: (x ^ y) + z,
    "lshl_add_u32": lambda x, y, z: (x << (y & 31)) + z,
    "add_lshl_u32": lambda x, y, z: (x + y) << (z & 31),
    "add3_u32": lambda x, y, z: x + y + z,
    "lshl_or_b32": lambda x, y, z: x << (y & 31) | z,
    "and_or_b32": lambda x, y, z: x & y | z,
    "or3_b32": lambda x, y, z: x | y | z,
    "mad_u32_u16": lambda x, y, z: (x & 0xFFFF) * (y & 0xFFFF) + z,
    "mad_i32_i16": lambda x, y, z: s16(x) * s16(y) + z,
    "min3_i16": lambda x, y, z: min(s16(x), s16(y), s16(z)) & 0xFFFF,
    "max3_i16": lambda x, y, z: max(s16(x), s16(y), s16(z)) & 0xFFFF,
    "med3_i16": lambda x, y, z: med(s16(x), s16(y), s16(z)) & 0xFFFF,
    "min3_u16": lambda x, y, z: min(x & 0xFFFF, y & 0xFFFF, z & 0xFFFF),
    "max3_u16": lambda x, y, z: max(x & 0xFFFF, y & 0xFFFF, z & 0xFFFF),
    "med3_u16": lambda x, y, z: med(x & 0xFFFF, y & 0xFFFF, z & 0xFFFF),
    "mad_u16": lambda x, y, z: (x * y + z) & 0xFFFF,
    "mad_i16": lambda x, y, z: (x * y + z) & 0xFFFF,
    "mad_legacy_u16": lambda x, y, z: (x * y + z) & 0xFFFF,
    "mad_legacy_i16": lambda x, y, z: (x * y + z) & 0xFFFF,
    "dot2_i32_i16": lambda x, y, z: s16(x) * s16(y) + s16(x >> 16) * s16(y >> 16) + z,
    "dot2_u32_u16": lambda x, y, z: (x & 0xFFFF) * (y & 0xFFFF) + (x >> 16) * (y >> 16) + z,
    "dot4_i32_i8": lambda x, y, z: sum(s8(a) * s8(b) for a, b in zip(bytes4(x), bytes4(y))) + z,
    "dot4_u32_u8": lambda x, y, z: sum(a * b for a, b in zip(bytes4(x), bytes4(y))) + z,
    "dot8_u32_u4": lambda x, y, z: sum((x >> k & 15) * (y >> k & 15) for k in range(0, 32, 4)) + z,
}
F1 = {
    "fract_f32": lambda x: x - math.floor(x),
    "trunc_f32": trunc,
    "ceil_f32": ceil,
    "floor_f32": floor,
    "rndne_f32": rne,
    "sqrt_f32": lambda x: math.sqrt(abs(x)),
    "frexp_mant_f32": lambda x: math.frexp(x)[0],
}
F2 = {
    "add_f32": lambda x, y: x + y,
    "sub_f32": lambda x, y: x - y,
    "subrev_f32": lambda x, y: y - x,
    "mul_f32": lambda x, y: x * y,
    "min_f32": min,
    "max_f32": max,
    "mul_legacy_f32": lambda x, y: x * y,
}
F3 = {"fma_f32": fma, "min3_f32": min, "max3_f32": max, "med3_f32": med}
FU1 = {
    "cvt_u32_f32": lambda x: trunc_sat(x, 0, M32),
    "cvt_i32_f32": lambda x: trunc_sat(x, -1 << 31, (1 << 31) - 1),
    "cvt_flr_i32_f32": lambda x: math.floor(x),
    "cvt_rpi_i32_f32": lambda x: math.floor(x + 0.5),
    "cvt_f16_f32": hb,
    "frexp_exp_i32_f32": lambda x: math.frexp(x)[1],
}
D1 = {
    "trunc_f64": trunc,
    "ceil_f64": ceil,
    "floor_f64": floor,
    "rndne_f64": rne,
    "fract_f64": lambda x: float(Fraction(x) - math.floor(Fraction(x))),
    "frexp_mant_f64": lambda x: math.frexp(x)[0],
}
D2 = {"add_f64": lambda x, y: x + y, "mul_f64": lambda x, y: x * y, "min_f64": min, "max_f64": max}
H1 = {
    "floor_f16": floor,
    "ceil_f16": ceil,
    "trunc_f16": trunc,
    "rndne_f16": rne,
    "frexp_mant_f16": lambda x: math.frexp(x)[0],
}
H2 = {
    "add_f16": lambda x, y: x + y,
    "sub_f16": lambda x, y: x - y,
    "subrev_f16": lambda x, y: y - x,
    "mul_f16": lambda x, y: x * y,
    "min_f16": min,
    "max_f16": max,
}
H3 = {"fma_f16": fma, "min3_f16": min, "max3_f16": max, "med3_f16": med}
Q2 = {
    "lshlrev_b64": lambda x, y: y << (x & 63),
    "lshrrev_b64": lambda x, y: y >> (x & 63),
    "ashrrev_i64": lambda x, y: s64(y) >> (x & 63),
}
S2 = {
    "add_u32": lambda x, y: (x + y, x + y > M32),
    "sub_u32": lambda x, y: (x - y, x < y),
    "add_i32": lambda x, y: (x + y, not -1 << 31 <= s32(x) + s32(y) < 1 << 31),
    "sub_i32": lambda x, y: (x - y, not -1 << 31 <= s32(x) - s32(y) < 1 << 31),
    "min_i32": lambda x, y: (min(s32(x), s32(y)), s32(x) < s32(y)),
    "max_i32": lambda x, y: (max(s32(x), s32(y)), s32(x) > s32(y)),
    "min_u32": lambda x, y: (min(x, y), x < y),
    "max_u32": lambda x, y: (max(x, y), x > y),
    "and_b32": lambda x, y: (x & y, x & y),
    "or_b32": lambda x, y: (x | y, x | y),
    "xor_b32": lambda x, y: (x ^ y, x ^ y),
    "andn2_b32": lambda x, y: (x & ~y, x & ~y & M32),
    "orn2_b32": lambda x, y: (x | ~y, (x | ~y) & M32),
    "nand_b32": lambda x, y: (~(x & y), ~(x & y) & M32),
    "nor_b32": lambda x, y: (~(x | y), ~(x | y) & M32),
    "xnor_b32": lambda x, y: (~(x ^ y), ~(x ^ y) & M32),
    "lshl_b32": lambda x, y: (x << (y & 31), x << (y & 31) & M32),
    "lshr_b32": lambda x, y: (x >> (y & 31), x >> (y & 31)),
    "ashr_i32": lambda x, y: (s32(x) >> (y & 31), s32(x) >> (y & 31)),
    "bfm_b32": lambda x, y: (((1 << (x & 31)) - 1) << (y & 31), None),
    "mul_i32": lambda x, y: (x * y, None),
    "mul_hi_u32": lambda x, y: (x * y >> 32, None),
    "mul_hi_i32": lambda x, y: (s32(x) * s32(y) >> 32, None),
    "absdiff_i32": lambda x, y: (abs(s32(x - y & M32)), x != y),
    "lshl1_add_u32": lambda x, y: ((x << 1) + y, (x << 1) + y > M32),
    "lshl4_add_u32": lambda x, y: ((x << 4) + y, (x << 4) + y > M32),
    "pack_ll_b32_b16": lambda x, y: (x & 0xFFFF | y << 16, None),
    "pack_lh_b32_b16": lambda x, y: (x & 0xFFFF | y & 0xFFFF0000, None),
    "pack_hh_b32_b16": lambda x, y: (x >> 16 | y & 0xFFFF0000, None),
}
S1 = {
    "mov_b32": lambda x: (x, None),
    "not_b32": lambda x: (~x, ~x & M32),
    "brev_b32": lambda x: (brev(x), None),
    "bcnt0_i32_b32": lambda x: (32 - pc(x), x != M32),
    "bcnt1_i32_b32": lambda x: (pc(x), x),
    "ff0_i32_b32": lambda x: (ffs(~x & M32), None),
    "ff1_i32_b32": lambda x: (ffs(x), None),
    "flbit_i32_b32": lambda x: (clz(x), None),
    "flbit_i32": lambda x: (clz(x if not x >> 31 else ~x & M32), None),
    "sext_i32_i8": lambda x: (s8(x), None),
    "sext_i32_i16": lambda x: (s16(x), None),
    "abs_i32": lambda x: (abs(s32(x)), x),
}

rows = []


def row(name, text, operands, result, scc=None, wide=0):
    """wide: bit n, operand n is 64 bits; bit 3, the result is; bit 4, the result is scalar."""
    rows.append(
        (
            name,
            text,
            [o & M64 for o in operands] + [0] * (3 - len(operands)),
            result & (M64 if wide & 8 else M32),
            2 if scc is None else int(bool(scc)),
            wide,
        )
    )


def main():
    # Operands are v[0:1], v[2:3], v[4:5], or s[0:1], s[2:3]; the result is v[6:7], or s6.
    for name, f in U1.items():
        for x, _, _ in WORDS:
            row("v_" + name, "v_%s v6, v0" % name, [x], f(x))
    for name, f in U2.items():
        for x, y, _ in WORDS:
            row("v_" + name, "v_%s v6, v0, v2" % name, [x, y], f(x, y))
    for name, f in U3.items():
        for x, y, z in WORDS:
            row("v_" + name, "v_%s v6, v0, v2, v4" % name, [x, y, z], f(x, y, z))
    for name, f in F1.items():
        for x, _, _ in FLOATS:
            x = bf(fb(x))
            if not name.startswith("sqrt") or x >= 0:
                row("v_" + name, "v_%s v6, v0" % name, [fb(x)], fb(f(x)))
    for name, f in F2.items():
        for x, y, _ in FLOATS:
            if not (name == "mul_legacy_f32" and x == 0):
                x, y = bf(fb(x)), bf(fb(y))
                row("v_" + name, "v_%s v6, v0, v2" % name, [fb(x), fb(y)], fb(f(x, y)))
                if name == "add_f32":
                    row("v_" + name, "v_add_f32_e64 v6, -v0, |v2|", [fb(x), fb(y)], fb(-x + abs(y)))
    for name, f in F3.items():
        for x, y, z in FLOATS:
            x, y, z = bf(fb(x)), bf(fb(y)), bf(fb(z))
            row("v_" + name, "v_%s v6, v0, v2, v4" % name, [fb(x), fb(y), fb(z)], fb(f(x, y, z)))
    for name, f in FU1.items():
        for x, _, _ in FLOATS:
            x = bf(fb(x))
            row("v_" + name, "v_%s v6, v0" % name, [fb(x)], f(x))
    for name, f in D1.items():
        for x, _, _ in DOUBLES:
            row("v_" + name, "v_%s v[6:7], v[0:1]" % name, [db(x)], db(f(x)), wide=9)
    for name, f in D2.items():
        for x, y, _ in DOUBLES:
            row("v_" + name, "v_%s v[6:7], v[0:1], v[2:3]" % name, [db(x), db(y)], db(f(x, y)), wide=11)
    for x, y, z in DOUBLES:
        row("v_fma_f64", "v_fma_f64 v[6:7], v[0:1], v[2:3], v[4:5]", [db(x), db(y), db(z)], db(fma(x, y, z)), wide=15)
        row("v_ldexp_f64", "v_ldexp_f64 v[6:7], v[0:1], v2", [db(x), 5], db(math.ldexp(x, 5)), wide=9)
        row("v_cvt_f32_f64", "v_cvt_f32_f64 v6, v[0:1]", [db(bf(fb(y)))], fb(y), wide=1)
        row("v_cvt_f64_f32", "v_cvt_f64_f32 v[6:7], v0", [fb(y)], db(bf(fb(y))), wide=8)
        row("v_cvt_i32_f64", "v_cvt_i32_f64 v6, v[0:1]", [db(x)], trunc_sat(x, -1 << 31, (1 << 31) - 1), wide=1)
        row("v_cvt_u32_f64", "v_cvt_u32_f64 v6, v[0:1]", [db(x)], trunc_sat(x, 0, M32), wide=1)
        row("v_frexp_exp_i32_f64", "v_frexp_exp_i32_f64 v6, v[0:1]", [db(x)], math.frexp(x)[1], wide=1)
    for x, y, z in WORDS:
        row("v_cvt_f64_i32", "v_cvt_f64_i32 v[6:7], v0", [x], db(float(s32(x))), wide=8)
        row("v_cvt_f64_u32", "v_cvt_f64_u32 v[6:7], v0", [x], db(float(x)), wide=8)
        row(
            "v_mad_u64_u32",
            "v_mad_u64_u32 v[6:7], s[10:11], v0, v2, v[4:5]",
            [x, y, z << 20],
            x * y + (z << 20),
            wide=12,
        )
        row(
            "v_mad_i64_i32",
            "v_mad_i64_i32 v[6:7], s[10:11], v0, v2, v[4:5]",
            [x, y, z << 20],
            s32(x) * s32(y) + (z << 20),
            wide=12,
        )
        for name, f in Q2.items():
            row("v_" + name, "v_%s v[6:7], v0, v[2:3]" % name, [y, x << 32 | z], f(y, x << 32 | z), wide=10)
        row("v_add_co_u32", "v_add_co_u32 v6, vcc, v0, v2", [x, y], x + y)
        row("v_sub_co_u32", "v_sub_co_u32 v6, vcc, v0, v2", [x, y], x - y)
        row("v_subrev_co_u32", "v_subrev_co_u32 v6, vcc, v0, v2", [x, y], y - x)
        row("v_cndmask_b32", "v_cndmask_b32_e64 v6, v0, v2, exec", [x, y], y)
    for name, f in H1.items():
        for x, _, _ in HALVES:
            row("v_" + name, "v_%s v6, v0" % name, [hb(x)], hb(f(bh(hb(x)))))
    for name, f in H2.items():
        for x, y, _ in HALVES:
            row("v_" + name, "v_%s v6, v0, v2" % name, [hb(x), hb(y)], hb(f(bh(hb(x)), bh(hb(y)))))
    for name, f in H3.items():
        for x, y, z in HALVES:
            row(
                "v_" + name, "v_%s v6, v0, v2, v4" % name, [hb(x), hb(y), hb(z)], hb(f(bh(hb(x)), bh(hb(y)), bh(hb(z))))
            )
    for x, y, _ in HALVES:
        row("v_cvt_f32_f16", "v_cvt_f32_f16 v6, v0", [hb(x)], fb(bh(hb(x))))
        row("v_cvt_u16_f16", "v_cvt_u16_f16 v6, v0", [hb(x)], trunc_sat(bh(hb(x)), 0, 0xFFFF))
        row("v_cvt_i16_f16", "v_cvt_i16_f16 v6, v0", [hb(x)], trunc_sat(bh(hb(x)), -32768, 32767) & 0xFFFF)
        a, b = hb(x) | hb(y) << 16, hb(y) | hb(x) << 16
        for name, f in (
            ("pk_add_f16", lambda p, q: p + q),
            ("pk_mul_f16", lambda p, q: p * q),
            ("pk_max_f16", max),
            ("pk_min_f16", min),
        ):
            row(
                "v_" + name,
                "v_%s v6, v0, v2" % name,
                [a, b],
                hb(f(bh(a), bh(b))) | hb(f(bh(a >> 16), bh(b >> 16))) << 16,
            )
    for x, y, z in WORDS:
        for name, f in (
            ("pk_add_u16", lambda p, q: p + q),
            ("pk_sub_i16", lambda p, q: p - q),
            ("pk_mul_lo_u16", lambda p, q: p * q),
            ("pk_max_i16", lambda p, q: max(s16(p), s16(q))),
            ("pk_min_u16", min),
            ("pk_lshlrev_b16", lambda p, q: q << (p & 15)),
            ("pk_lshrrev_b16", lambda p, q: q >> (p & 15)),
        ):
            row(
                "v_" + name,
                "v_%s v6, v0, v2" % name,
                [x, y],
                f(x & 0xFFFF, y & 0xFFFF) & 0xFFFF | (f(x >> 16, y >> 16) & 0xFFFF) << 16,
            )
        row(
            "v_pk_mad_u16",
            "v_pk_mad_u16 v6, v0, v2, v4",
            [x, y, z],
            (x & 0xFFFF) * (y & 0xFFFF) + (z & 0xFFFF) & 0xFFFF | ((x >> 16) * (y >> 16) + (z >> 16) & 0xFFFF) << 16,
        )
        # A compare writes a mask: the lanes are alike, so all or none of it.
        for name, f in (
            ("lt_u32", x < y),
            ("gt_i32", s32(x) > s32(y)),
            ("eq_u32", x == y),
            ("ne_u32", x != y),
            ("le_i32", s32(x) <= s32(y)),
            ("ge_u32", x >= y),
            ("lt_i16", s16(x) < s16(y)),
            ("gt_u16", x & 0xFFFF > y & 0xFFFF),
        ):
            row("v_cmp_" + name, "v_cmp_%s s[6:7], v0, v2" % name, [x, y], M64 if f else 0, wide=8 | 16)
        row(
            "v_cmp_lt_u64",
            "v_cmp_lt_u64 s[6:7], v[0:1], v[2:3]",
            [x << 32 | y, y << 32 | x],
            M64 if (x << 32 | y) < (y << 32 | x) else 0,
            wide=11 | 16,
        )
        for name, f in S1.items():
            row("s_" + name, "s_%s s6, s0" % name, [x], f(x)[0], f(x)[1], wide=16)
        for name, f in S2.items():
            row("s_" + name, "s_%s s6, s0, s2" % name, [x, y], f(x, y)[0], f(x, y)[1], wide=16)
        for name, f in (
            ("eq_u32", x == y),
            ("lg_u32", x != y),
            ("gt_i32", s32(x) > s32(y)),
            ("lt_u32", x < y),
            ("ge_i32", s32(x) >= s32(y)),
        ):
            row("s_cmp_" + name, "s_cmp_%s s0, s2" % name, [x, y], 0, f, wide=16)
        row(
            "s_and_b64",
            "s_and_b64 s[6:7], s[0:1], s[2:3]",
            [x << 32 | y, y << 32 | z],
            (x << 32 | y) & (y << 32 | z),
            (x << 32 | y) & (y << 32 | z),
            wide=27,
        )
        row(
            "s_lshl_b64",
            "s_lshl_b64 s[6:7], s[0:1], s2",
            [x << 32 | y, z],
            (x << 32 | y) << (z & 63),
            (x << 32 | y) << (z & 63) & M64,
            wide=25,
        )
        row("s_bcnt1_i32_b64", "s_bcnt1_i32_b64 s6, s[0:1]", [x << 32 | y], pc(x << 32 | y), x | y, wide=17)
    for x, y, _ in FLOATS:
        for name, f in (
            ("lt_f32", x < y),
            ("ge_f32", x >= y),
            ("neq_f32", x != y),
            ("o_f32", True),
            ("nlt_f32", not x < y),
        ):
            row("v_cmp_" + name, "v_cmp_%s s[6:7], v0, v2" % name, [fb(x), fb(y)], M64 if f else 0, wide=8 | 16)
    text = "".join(r[1] + "\n" for r in rows)
    lines = subprocess.run(
        ["llvm-mc-15", "-arch=amdgcn", "-mcpu=gfx90a", "-show-encoding"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if "error" in lines.stderr:
        raise SystemExit(lines.stderr)
    codes = [
        [int(b, 16) for b in line.split("encoding: [")[1].rstrip("]").split(",")]
        for line in lines.stdout.splitlines()
        if "encoding: [" in line
    ]
    print(
        "# SPDX-License-Identifier: MIT\n# Written by test/unit/isa_ops.py: name, words, operands, result, SCC (2: not looked at), widths."
    )
    for (name, _, operands, result, scc, wide), code in zip(rows, codes):
        words = [int.from_bytes(bytes(code[k : k + 4]), "little") for k in range(0, len(code), 4)] + [0xBF810000]
        print("%s %08x %08x %x %x %x %x %d %d" % (name, words[0], words[1], *operands, result, scc, wide))


main()
