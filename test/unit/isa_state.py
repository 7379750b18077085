#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes test/data/isa/state.txt: for each operation that is more than one result of one lane (memory, LDS, atomics, matrices, masks, control,
scalar state) an instruction as LLVM's assembler encodes it, what to put into registers, and a hash of the whole state afterwards as Python computes
it from AMD's description. What the instruction must leave alone is in the hash too. Nothing here is shared with the interpreter.

usage: test/unit/isa_state.py > test/data/isa/state.txt   (needs llvm-mc-15)
"""
import math
import struct
import subprocess
from fractions import Fraction

M32, M64 = (1 << 32) - 1, (1 << 64) - 1
SOME = 0xFF00FF00F0F0AAAA
MEMORY, ROWS, ACC = 0x100000, 48, 16  # accumulation registers begin at row 16
VCC, M0, EXEC = 106, 124, 126


def fill(i):
    x = (i * 0x9E3779B1 + 0x7F4A7C15) & M32
    x ^= x >> 15
    x = x * 0x85EBCA6B & M32
    return x ^ x >> 13


def fb(x):
    try:
        return struct.unpack("<I", struct.pack("<f", x))[0]
    except OverflowError:
        return 0xFF800000 if x < 0 else 0x7F800000


def bf(x):
    return struct.unpack("<f", struct.pack("<I", x & M32))[0]


def db(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def bd(x):
    return struct.unpack("<d", struct.pack("<Q", x & M64))[0]


def hb(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


def bh(x):
    return struct.unpack("<e", struct.pack("<H", x & 0xFFFF))[0]


def s32(x):
    return (x & M32) - (1 << 32) if x >> 31 & 1 else x & M32


def s16(x):
    return (x & 0xFFFF) - (1 << 16) if x >> 15 & 1 else x & 0xFFFF


def s8(x):
    return (x & 0xFF) - 256 if x >> 7 & 1 else x & 0xFF


def s4(x):
    return (x & 15) - 16 if x >> 3 & 1 else x & 15


def s64(x):
    return (x & M64) - (1 << 64) if x >> 63 & 1 else x & M64


def small(i):
    return float(fill(i) % 17) - 8.0


class State:
    def __init__(self):
        self.v = [[fill(0x10000 + r * 64 + lane) for lane in range(64)] for r in range(ROWS)]
        self.s = [fill(0x20000 + n) for n in range(128)]
        self.lds = bytearray(b"".join(struct.pack("<I", fill(0x30000 + n)) for n in range(1024)))
        self.mem = bytearray(b"".join(struct.pack("<I", fill(0x40000 + n)) for n in range(1024)))
        self.scc, self.mode = 0, 0xF0
        for n in range(108, 128):
            self.s[n] = 0
        self.put(EXEC, M64)

    def get(self, n):
        return self.s[n] | self.s[n + 1] << 32

    def put(self, n, x):
        self.s[n], self.s[n + 1] = x & M32, x >> 32 & M32

    def lanes(self):
        return [i for i in range(64) if self.get(EXEC) >> i & 1]

    def wide(self, r, i):
        return self.v[r][i] | self.v[r + 1][i] << 32

    def put_wide(self, r, i, x):
        self.v[r][i], self.v[r + 1][i] = x & M32, x >> 32 & M32

    def set(self, text):
        kind, _, value = text[1:].partition("=")
        n = int(kind or 0)
        values = [int(x, 16) for x in value.split(",")] if value else []
        if text[0] == "S":
            self.s[n] = values[0]
        elif text[0] == "X":
            self.put(EXEC, values[0])
        elif text[0] == "C":
            self.scc = values[0]
        for i in range(64):
            if text[0] == "L":
                self.v[n][i] = i * values[0] + values[1] & M32
            elif text[0] == "K":
                self.v[n][i] = self.v[n][i] & values[0] | values[1]
            elif text[0] == "F":
                self.v[n][i] = fb(small(n * 64 + i))
            elif text[0] == "H":
                self.v[n][i] = hb(small(n * 64 + i)) | hb(small(n * 64 + i + 7)) << 16
            elif text[0] == "B":
                self.v[n][i] = fb(small(n * 64 + i)) >> 16 | fb(small(n * 64 + i + 7)) >> 16 << 16
            elif text[0] == "D":
                self.put_wide(n, i, db(small(n * 64 + i)))
        if text[0] == "f":  # memory of small floats; d: doubles; h: halves; b: bfloats; of both memories
            for k in range(1024):
                struct.pack_into("<I", self.lds, k * 4, fb(small(k)))
                struct.pack_into("<I", self.mem, k * 4, fb(small(k)))
        elif text[0] == "d":
            for k in range(512):
                struct.pack_into("<d", self.lds, k * 8, small(k))
                struct.pack_into("<d", self.mem, k * 8, small(k))
        elif text[0] in "hb":
            half = (lambda x: hb(x)) if text[0] == "h" else (lambda x: fb(x) >> 16)
            for k in range(2048):
                struct.pack_into("<H", self.lds, k * 2, half(small(k)))
                struct.pack_into("<H", self.mem, k * 2, half(small(k)))

    def hash(self):
        h = 0xCBF29CE484222325
        words = (
            [x for row in self.v for x in row]
            + self.s[:108]
            + [self.s[M0], self.s[EXEC], self.s[EXEC + 1], self.scc, self.mode]
        )
        words += struct.unpack("<1024I", self.lds) + struct.unpack("<1024I", self.mem)
        for x in words:
            h = (h ^ x) * 0x100000001B3 & M64
        return h


cases = []


def case(name, asm, setup, run, target="gfx90a", patch=None):
    """patch: bits of the first word that the assembler does not know: (mask, value)."""
    cases.append((name, asm, setup, run, target, patch))


def each(f):
    def run(st):
        for i in st.lanes():
            f(st, i)

    return run


# Atomics: what is left in memory, from what was there, the data and the second data.
def half_add(a, b):
    return hb(bh(a) + bh(b)) | hb(bh(a >> 16) + bh(b >> 16)) << 16


def bfloat_add(a, b):
    return fb(bf(a << 16) + bf(b << 16)) >> 16 & 0xFFFF | fb(bf(a & 0xFFFF0000) + bf(b & 0xFFFF0000)) >> 16 << 16


ATOMICS = {
    "swap": lambda o, x, n: x,
    "add": lambda o, x, n: o + x,
    "sub": lambda o, x, n: o - x,
    "rsub": lambda o, x, n: x - o,
    "smin": lambda o, x, n: min((s64 if n == 8 else s32)(o), (s64 if n == 8 else s32)(x)),
    "umin": lambda o, x, n: min(o, x),
    "smax": lambda o, x, n: max((s64 if n == 8 else s32)(o), (s64 if n == 8 else s32)(x)),
    "umax": lambda o, x, n: max(o, x),
    "and": lambda o, x, n: o & x,
    "or": lambda o, x, n: o | x,
    "xor": lambda o, x, n: o ^ x,
    "inc": lambda o, x, n: 0 if o >= x else o + 1,
    "dec": lambda o, x, n: x if o == 0 or o > x else o - 1,
    "add_f32": lambda o, x, n: fb(bf(o) + bf(x)),
    "add_f64": lambda o, x, n: db(bd(o) + bd(x)),
    "min_f32": lambda o, x, n: fb(min(bf(o), bf(x))),
    "max_f32": lambda o, x, n: fb(max(bf(o), bf(x))),
    "min_f64": lambda o, x, n: db(min(bd(o), bd(x))),
    "max_f64": lambda o, x, n: db(max(bd(o), bd(x))),
    "pk_add_f16": lambda o, x, n: half_add(o, x),
    "pk_add_bf16": lambda o, x, n: bfloat_add(o, x),
}


def atomic(op, where, size, returns, address):
    """Data is in v2 (v[2:3]); the old value goes to v8 (v[8:9])."""

    def one(st, i):
        memory, at = getattr(st, where), address(st, i)
        old = int.from_bytes(memory[at : at + size], "little")
        x = st.wide(2, i) if size == 8 else st.v[2][i]
        memory[at : at + size] = (ATOMICS[op](old, x, size) & (1 << size * 8) - 1).to_bytes(size, "little")
        if returns:
            st.v[8][i] = old & M32
            if size == 8:
                st.v[9][i] = old >> 32

    return each(one)


def compare_swap(where, size, returns, address, new, compare, as_float=False):
    def one(st, i):
        memory, at = getattr(st, where), address(st, i)
        old = int.from_bytes(memory[at : at + size], "little")
        value, wanted = (st.wide(r, i) if size == 8 else st.v[r][i] for r in (new, compare))
        same = (bd if size == 8 else bf)(old) == (bd if size == 8 else bf)(wanted) if as_float else old == wanted
        memory[at : at + size] = (value if same else old).to_bytes(size, "little")
        if returns:
            st.v[8][i] = old & M32
            if size == 8:
                st.v[9][i] = old >> 32

    return each(one)


def kind_of(op):
    return {
        "add_f32": ["F2", "f"],
        "min_f32": ["F2", "f"],
        "max_f32": ["F2", "f"],
        "pk_add_f16": ["H2", "h"],
        "pk_add_bf16": ["B2", "b"],
        "add_f64": ["D2", "d"],
        "min_f64": ["D2", "d"],
        "max_f64": ["D2", "d"],
    }.get(op, [])


def ds():
    at8 = lambda st, i: i * 8 + 16
    for name, op in (
        ("add_u", "add"),
        ("sub_u", "sub"),
        ("rsub_u", "rsub"),
        ("inc_u", "inc"),
        ("dec_u", "dec"),
        ("min_i", "smin"),
        ("max_i", "smax"),
        ("min_u", "umin"),
        ("max_u", "umax"),
        ("and_b", "and"),
        ("or_b", "or"),
        ("xor_b", "xor"),
    ):
        stem, kind = name.rsplit("_", 1)
        for size, bits, data in ((4, "32", "v2"), (8, "64", "v[2:3]")):
            case(
                "ds_%s_%s%s" % (stem, kind, bits),
                "ds_%s_%s%s v0, %s offset:16" % (stem, kind, bits, data),
                ["L0=8,0", "X=%x" % SOME],
                atomic(op, "lds", size, False, at8),
            )
            case(
                "ds_%s_rtn_%s%s" % (stem, kind, bits),
                "ds_%s_rtn_%s%s %s, v0, %s offset:16" % (stem, kind, bits, "v8" if size == 4 else "v[8:9]", data),
                ["L0=8,0"],
                atomic(op, "lds", size, True, at8),
            )
    for size, bits, pair in ((4, "32", "v%d"), (8, "64", "v[%d:%d]")):
        reg = lambda n: pair % n if size == 4 else pair % (n, n + 1)
        case(
            "ds_wrxchg_rtn_b" + bits,
            "ds_wrxchg_rtn_b%s %s, v0, %s offset:16" % (bits, reg(8), reg(2)),
            ["L0=8,0"],
            atomic("swap", "lds", size, True, at8),
        )
        mskor = lambda st, i, r, size=size: compare_mask(st, i, size, r)
        for returns in (False, True):
            rtn, to = ("_rtn", reg(8) + ", ") if returns else ("", "")
            case(
                "ds_mskor%s_b%s" % (rtn, bits),
                "ds_mskor%s_b%s %sv0, %s, %s offset:16" % (rtn, bits, to, reg(2), reg(4)),
                ["L0=8,0"],
                each(lambda st, i, r=returns, m=mskor: m(st, i, r)),
            )
            # The value to compare with comes first: half of the lanes have it.
            case(
                "ds_cmpst%s_b%s" % (rtn, bits),
                "ds_cmpst%s_b%s %sv0, %s, %s" % (rtn, bits, to, reg(2), reg(4)),
                ["L0=8,0", "f", "K2=0,0", "K3=0,c1000000"],
                compare_swap("lds", size, returns, lambda st, i: i * 8, 4, 2),
            )
            case(
                "ds_cmpst%s_f%s" % (rtn, bits),
                "ds_cmpst%s_f%s %sv0, %s, %s" % (rtn, bits, to, reg(2), reg(4)),
                ["L0=8,0", "f" if size == 4 else "d", "K2=0,0", "K3=0,0"],
                compare_swap("lds", size, returns, lambda st, i: i * 8, 4, 2, True),
            )
        for op in ("min_f", "max_f", "add_f"):
            for returns in (False, True):
                stem = op[:-2] + ("_rtn_f" if returns else "_f") + bits
                case(
                    "ds_" + stem,
                    "ds_%s %sv0, %s" % (stem, reg(8) + ", " if returns else "", reg(2)),
                    ["L0=8,0"] + kind_of(op + bits),
                    atomic(op + bits, "lds", size, returns, lambda st, i: i * 8),
                )
    for op in ("pk_add_f16", "pk_add_bf16"):
        case(
            "ds_" + op,
            "ds_%s v0, v2" % op,
            ["L0=8,0"] + kind_of(op),
            atomic(op, "lds", 4, False, lambda st, i: i * 8),
            "gfx940",
        )
    for name, size, two, far in (
        ("b32", 4, 0, 0),
        ("b64", 8, 0, 0),
        ("b96", 12, 0, 0),
        ("b128", 16, 0, 0),
        ("2_b32", 4, 1, 0),
        ("2_b64", 8, 1, 0),
        ("2st64_b32", 4, 1, 1),
        ("2st64_b64", 8, 1, 1),
    ):
        name = name if two else "_" + name
        words = size // 4
        last = lambda n, w: "v%d" % n if w == 1 else "v[%d:%d]" % (n, n + w - 1)
        step = size * (64 if far else 1)
        offsets = [1 * step, 2 * step] if two else [16]
        text = " offset0:1 offset1:2" if two else " offset:16"

        def read(st, i, words=words, offsets=tuple(offsets)):
            got = [st.lds[st.v[0][i] + o + k * 4 : st.v[0][i] + o + k * 4 + 4] for o in offsets for k in range(words)]
            for k, b in enumerate(got):
                st.v[8 + k][i] = int.from_bytes(b, "little")

        def write(st, i, words=words, offsets=tuple(offsets)):
            for part, o in enumerate(offsets):
                for k in range(words):
                    struct.pack_into("<I", st.lds, st.v[0][i] + o + k * 4, st.v[(4 if part else 2) + k][i])

        case(
            "ds_read" + name,
            "ds_read%s %s, v0%s" % (name, last(8, words * len(offsets)), text),
            ["L0=10,0", "X=%x" % SOME],
            each(read),
        )
        case(
            "ds_write" + name,
            "ds_write%s v0, %s%s%s" % (name, last(2, words), ", " + last(4, words) if two else "", text),
            ["L0=%x,0" % (size if far else 32)],
            each(write),
        )
        if two:

            def exchange(st, i, read=read, write=write, words=words):
                kept = [st.v[r][i] for r in range(2, 8)]
                read(st, i)
                write(st, i)
                assert kept == [st.v[r][i] for r in range(2, 8)]

            stem = "wrxchg2" + ("st64" if far else "") + "_rtn" + name[-4:]
            case(
                "ds_" + stem,
                "ds_%s %s, v0, %s, %s%s" % (stem, last(8, words * 2), last(2, words), last(4, words), text),
                ["L0=%x,0" % (size if far else 32)],
                each(exchange),
            )
    for name, size, sign in (("u8", 1, 0), ("i8", 1, 1), ("u16", 2, 0), ("i16", 2, 1)):

        def value(st, i, size=size, sign=sign):
            x = int.from_bytes(st.lds[st.v[0][i] : st.v[0][i] + size], "little")
            return ((s8(x) if size == 1 else s16(x)) if sign else x) & M32

        case(
            "ds_read_" + name,
            "ds_read_%s v8, v0" % name,
            ["L0=6,0"],
            each(lambda st, i, f=value: st.v[8].__setitem__(i, f(st, i))),
        )
        if name != "i16":
            case(
                "ds_read_%s_d16" % name,
                "ds_read_%s_d16 v8, v0" % name,
                ["L0=6,0"],
                each(lambda st, i, f=value: st.v[8].__setitem__(i, st.v[8][i] & 0xFFFF0000 | f(st, i) & 0xFFFF)),
            )
            case(
                "ds_read_%s_d16_hi" % name,
                "ds_read_%s_d16_hi v8, v0" % name,
                ["L0=6,0"],
                each(lambda st, i, f=value: st.v[8].__setitem__(i, st.v[8][i] & 0xFFFF | f(st, i) << 16 & M32)),
            )
    for name, size, shift in (("b8", 1, 0), ("b16", 2, 0), ("b8_d16_hi", 1, 16), ("b16_d16_hi", 2, 16)):

        def store(st, i, size=size, shift=shift):
            at = st.v[0][i]
            st.lds[at : at + size] = (st.v[2][i] >> shift & (1 << size * 8) - 1).to_bytes(size, "little")

        case("ds_write_" + name, "ds_write_%s v0, v2" % name, ["L0=6,0", "X=%x" % SOME], each(store))

    def permute(st):
        result = [0] * 64
        for i in st.lanes():
            result[st.v[0][i] // 4 % 64] = st.v[2][i]
        for i in st.lanes():
            st.v[8][i] = result[i]

    case("ds_permute_b32", "ds_permute_b32 v8, v0, v2", ["L0=14,8", "X=%x" % SOME], permute)

    def bpermute(st):
        result = [st.v[2][st.v[0][i] // 4 % 64] if st.get(EXEC) >> st.v[0][i] // 4 % 64 & 1 else 0 for i in range(64)]
        for i in st.lanes():
            st.v[8][i] = result[i]

    case("ds_bpermute_b32", "ds_bpermute_b32 v8, v0, v2", ["L0=14,8", "X=%x" % SOME], bpermute)

    def swizzle(lane_of):
        def run(st):
            result = [st.v[0][lane_of(i)] if st.get(EXEC) >> lane_of(i) & 1 else 0 for i in range(64)]
            for i in st.lanes():
                st.v[8][i] = result[i]

        return run

    case(
        "ds_swizzle_b32",
        "ds_swizzle_b32 v8, v0 offset:swizzle(QUAD_PERM,1,3,0,2)",
        [],
        swizzle(lambda i: i // 4 * 4 + (1, 3, 0, 2)[i % 4]),
    )
    case("ds_swizzle_b32", "ds_swizzle_b32 v8, v0 offset:swizzle(SWAP,16)", [], swizzle(lambda i: i ^ 16))
    case(
        "ds_swizzle_b32",
        "ds_swizzle_b32 v8, v0 offset:swizzle(BROADCAST,8,5)",
        ["X=%x" % SOME],
        swizzle(lambda i: i // 8 * 8 + 5),
    )

    def count(sign):
        def run(st):
            old = struct.unpack_from("<I", st.lds, 0x40 + 8)[0]
            struct.pack_into("<I", st.lds, 0x40 + 8, old + sign * len(st.lanes()) & M32)
            for i in st.lanes():
                st.v[8][i] = old

        return run

    case("ds_append", "ds_append v8 offset:8", ["S124=400000", "X=%x" % SOME], count(1))
    case("ds_consume", "ds_consume v8 offset:8", ["S124=400000", "X=%x" % SOME], count(-1))
    case("ds_nop", "ds_nop", [], lambda st: None)


def compare_mask(st, i, size, returns):
    at = st.v[0][i] + 16
    old = int.from_bytes(st.lds[at : at + size], "little")
    first, second = (st.wide(r, i) if size == 8 else st.v[r][i] for r in (2, 4))
    st.lds[at : at + size] = (old & ~first & (1 << size * 8) - 1 | second).to_bytes(size, "little")
    if returns:
        st.v[8][i] = old & M32
        if size == 8:
            st.v[9][i] = old >> 32


def vector_memory():
    """flat and buffer instructions; both have v0 (v[0:1]) as address, v2 as data, v8 as result."""
    regs = lambda n, w: "v%d" % n if w == 1 else "v[%d:%d]" % (n, n + w - 1)
    address = lambda st, i: i * 16 + 32
    forms = (
        ("flat_", "v[0:1]", " offset:32", ["L0=10,100000", "K1=0,0"]),
        (
            "buffer_",
            "v0",
            ", s[8:11], s12 offen offset:16",
            ["L0=10,0", "S8=100000", "S9=0", "S10=1000", "S11=0", "S12=10"],
        ),
    )
    for prefix, at, more, setup in forms:

        def text(name, result, data):
            if prefix == "flat_":
                return "%s%s %s%s%s%s" % (
                    prefix,
                    name,
                    result + ", " if result else "",
                    at,
                    ", " + data if data else "",
                    more,
                )
            return "%s%s %s, %s%s" % (prefix, name, result or data, at, more)

        for name, size, sign in (("ubyte", 1, 0), ("sbyte", 1, 1), ("ushort", 2, 0), ("sshort", 2, 1)):

            def value(st, i, size=size, sign=sign):
                x = int.from_bytes(st.mem[address(st, i) : address(st, i) + size], "little")
                return ((s8(x) if size == 1 else s16(x)) if sign else x) & M32

            case(
                prefix + "load_" + name,
                text("load_" + name, "v8", ""),
                setup,
                each(lambda st, i, f=value: st.v[8].__setitem__(i, f(st, i))),
            )
            if name != "sshort":
                d16 = "short_d16" if name == "ushort" else name + "_d16"
                case(
                    prefix + "load_" + d16,
                    text("load_" + d16, "v8", ""),
                    setup + ["X=%x" % SOME],
                    each(lambda st, i, f=value: st.v[8].__setitem__(i, st.v[8][i] & 0xFFFF0000 | f(st, i) & 0xFFFF)),
                )
                case(
                    prefix + "load_" + d16 + "_hi",
                    text("load_" + d16 + "_hi", "v8", ""),
                    setup,
                    each(lambda st, i, f=value: st.v[8].__setitem__(i, st.v[8][i] & 0xFFFF | f(st, i) << 16 & M32)),
                )
        for words, name in ((1, "dword"), (2, "dwordx2"), (3, "dwordx3"), (4, "dwordx4")):

            def load(st, i, words=words):
                for k in range(words):
                    st.v[8 + k][i] = struct.unpack_from("<I", st.mem, address(st, i) + 4 * k)[0]

            def store(st, i, words=words):
                for k in range(words):
                    struct.pack_into("<I", st.mem, address(st, i) + 4 * k, st.v[2 + k][i])

            case(prefix + "load_" + name, text("load_" + name, regs(8, words), ""), setup + ["X=%x" % SOME], each(load))
            case(prefix + "store_" + name, text("store_" + name, "", regs(2, words)), setup, each(store))
        for name, size, shift in (("byte", 1, 0), ("short", 2, 0), ("byte_d16_hi", 1, 16), ("short_d16_hi", 2, 16)):

            def small_store(st, i, size=size, shift=shift):
                st.mem[address(st, i) : address(st, i) + size] = (st.v[2][i] >> shift & (1 << size * 8) - 1).to_bytes(
                    size, "little"
                )

            case(prefix + "store_" + name, text("store_" + name, "", "v2"), setup + ["X=%x" % SOME], each(small_store))
        for op in ("swap", "add", "sub", "smin", "umin", "smax", "umax", "and", "or", "xor", "inc", "dec"):
            for size, suffix, data, result in ((4, "", "v2", "v8"), (8, "_x2", "v[2:3]", "v[8:9]")):
                case(
                    prefix + "atomic_" + op + suffix,
                    text("atomic_" + op + suffix, "", data),
                    setup + ["X=%x" % SOME],
                    atomic(op, "mem", size, False, address),
                )
                if prefix == "flat_":
                    case(
                        prefix + "atomic_" + op + suffix,
                        text("atomic_" + op + suffix, result, data) + " glc",
                        setup,
                        atomic(op, "mem", size, True, address),
                    )
        for size, suffix, data, result in ((4, "", "v[2:3]", "v8"), (8, "_x2", "v[2:5]", "v[8:9]")):
            wanted = ["K3=0,c1000000"] if size == 4 else ["K4=0,0", "K5=0,c1000000"]
            case(
                prefix + "atomic_cmpswap" + suffix,
                text("atomic_cmpswap" + suffix, "", data),
                setup + wanted + ["f"],
                compare_swap("mem", size, False, address, 2, 3 if size == 4 else 4),
            )
            if prefix == "flat_":
                case(
                    prefix + "atomic_cmpswap" + suffix,
                    text("atomic_cmpswap" + suffix, result, data) + " glc",
                    setup + wanted + ["f"],
                    compare_swap("mem", size, True, address, 2, 3 if size == 4 else 4),
                )
        for op, number in (
            ("add_f32", 77),
            ("pk_add_f16", 78),
            ("add_f64", 79),
            ("min_f64", 80),
            ("max_f64", 81),
            ("pk_add_bf16", 82),
        ):
            size = 8 if op.endswith("64") else 4
            plain = text("atomic_add" + ("_x2" if size == 8 else ""), "", "v[2:3]" if size == 8 else "v2")
            case(
                prefix + "atomic_" + op,
                plain,
                setup + kind_of(op),
                atomic(op, "mem", size, False, address),
                "gfx940",
                (0x7F << 18, number << 18),
            )
    # The global and scratch segments, with a scalar address.
    case(
        "flat_load_dword",
        "global_load_dword v8, v0, s[8:9] offset:-16",
        ["L0=10,30", "S8=100000", "S9=0"],
        each(lambda st, i: st.v[8].__setitem__(i, struct.unpack_from("<I", st.mem, i * 16 + 32)[0])),
    )
    for name in ("buffer_wbl2", "buffer_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol"):
        case(
            name,
            {
                "buffer_wbl2": "buffer_wbl2",
                "buffer_inv": "buffer_inv sc1",
                "buffer_wbinvl1": "buffer_wbinvl1",
                "buffer_wbinvl1_vol": "buffer_wbinvl1_vol",
            }[name],
            [],
            lambda st: None,
            "gfx940" if name == "buffer_inv" else "gfx90a",
        )


def scalar_memory():
    for n in (1, 2, 4, 8, 16):
        suffix = "" if n == 1 else "x%d" % n
        to = "s32" if n == 1 else "s[32:%d]" % (31 + n)

        def load(st, n=n):
            st.s[32 : 32 + n] = struct.unpack_from("<%dI" % n, st.mem, 0x48)

        case("s_load_dword" + suffix, "s_load_dword%s %s, s[8:9], 0x48" % (suffix, to), ["S8=100000", "S9=0"], load)
        case(
            "s_load_dword" + suffix,
            "s_load_dword%s %s, s[8:9], s12" % (suffix, to),
            ["S8=100000", "S9=0", "S12=48"],
            load,
        )
        case(
            "s_buffer_load_dword" + suffix,
            "s_buffer_load_dword%s %s, s[8:11], 0x48" % (suffix, to),
            ["S8=100000", "S9=0", "S10=1000", "S11=0"],
            load,
        )
        if n <= 4:

            def store(st, n=n):
                struct.pack_into("<%dI" % n, st.mem, 0x48, *st.s[32 : 32 + n])

            case(
                "s_store_dword" + suffix,
                "s_store_dword%s %s, s[8:9], 0x48" % (suffix, to),
                ["S8=100000", "S9=0"],
                store,
            )
            case(
                "s_buffer_store_dword" + suffix,
                "s_buffer_store_dword%s %s, s[8:11], 0x48" % (suffix, to),
                ["S8=100000", "S9=0", "S10=1000", "S11=0"],
                store,
            )

    def beyond(st):
        st.s[32] = 0

    case(
        "s_buffer_load_dword",
        "s_buffer_load_dword s32, s[8:11], 0x48",
        ["S8=100000", "S9=0", "S10=40", "S11=0"],
        beyond,
    )
    for name in ("s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol"):
        case(name, name, [], lambda st: None)
    # The test's clocks are 5 for the core and 7 for real time.
    case("s_memtime", "s_memtime s[32:33]", [], lambda st: st.put(32, 5))
    case("s_memrealtime", "s_memrealtime s[32:33]", [], lambda st: st.put(32, 7))


def matrices():
    shapes = []
    for kind, fills, words, each_, names in (
        (
            "f32",
            "F",
            1,
            1,
            (
                ("32x32x1f32", 32, 2),
                ("16x16x1f32", 16, 4),
                ("4x4x1f32", 4, 16),
                ("32x32x2f32", 32, 1),
                ("16x16x4f32", 16, 1),
            ),
        ),
        (
            "f32",
            "H",
            2,
            4,
            (
                ("32x32x4f16", 32, 2),
                ("16x16x4f16", 16, 4),
                ("4x4x4f16", 4, 16),
                ("32x32x8f16", 32, 1),
                ("16x16x16f16", 16, 1),
            ),
        ),
        (
            "f32",
            "B",
            2,
            4,
            (
                ("32x32x4bf16_1k", 32, 2),
                ("16x16x4bf16_1k", 16, 4),
                ("4x4x4bf16_1k", 4, 16),
                ("32x32x8bf16_1k", 32, 1),
                ("16x16x16bf16_1k", 16, 1),
            ),
        ),
        (
            "f32",
            "B",
            1,
            2,
            (
                ("32x32x2bf16", 32, 2),
                ("16x16x2bf16", 16, 4),
                ("4x4x2bf16", 4, 16),
                ("32x32x4bf16", 32, 1),
                ("16x16x8bf16", 16, 1),
            ),
        ),
        (
            "i32",
            "I",
            1,
            4,
            (
                ("32x32x4i8", 32, 2),
                ("16x16x4i8", 16, 4),
                ("4x4x4i8", 4, 16),
                ("32x32x8i8", 32, 1),
                ("16x16x16i8", 16, 1),
            ),
        ),
    ):
        shapes += [
            ("%s_%s" % (kind, name), fills, words, each_, m, blocks, "gfx90a", None) for name, m, blocks in names
        ]
    # gfx940: other numbers for what gfx90a calls 1k, and larger ones of bytes; LLVM 15 has no names for all of them.
    shapes += [
        ("f32_%s" % name, "B", 2, 4, m, blocks, "gfx940", number)
        for name, m, blocks, number in (
            ("32x32x4_2b_bf16", 32, 2, 0x5D),
            ("16x16x4_4b_bf16", 16, 4, 0x5E),
            ("4x4x4_16b_bf16", 4, 16, 0x5F),
            ("32x32x8_bf16", 32, 1, 0x60),
            ("16x16x16_bf16", 16, 1, 0x61),
        )
    ]
    shapes += [
        ("i32_32x32x16i8", "I", 2, 8, 32, 1, "gfx940", 0x56),
        ("i32_16x16x32i8", "I", 2, 8, 16, 1, "gfx940", 0x57),
    ]
    for name, fills, words, n, m, blocks, target, number in shapes:
        groups = 64 // m // blocks
        rows = 4 if m == 4 else m * m // 64 * blocks

        def element(st, row, lane, e, fills=fills):
            if fills == "F":
                return bf(st.v[row][lane])
            if fills == "I":
                return s8(st.v[row + e // 4][lane] >> e % 4 * 8)
            half = st.v[row + e // 2][lane] >> e % 2 * 16 & 0xFFFF
            return bh(half) if fills == "H" else bf(half << 16)

        def run(st, m=m, blocks=blocks, groups=groups, n=n, fills=fills, rows=rows, element=element):
            # The matrices as such: A of m by k, B of k by m, of each block.
            a = {
                (b, i, g * n + e): element(st, 0, i + m * (b + g if blocks == 1 else b), e)
                for b in range(blocks)
                for i in range(m)
                for g in range(groups)
                for e in range(n)
            }
            c = {
                (b, g * n + e, j): element(st, 2, j + m * (b + g if blocks == 1 else b), e)
                for b in range(blocks)
                for j in range(m)
                for g in range(groups)
                for e in range(n)
            }
            result = {
                (b, i, j): sum(a[b, i, k] * c[b, k, j] for k in range(groups * n))
                for b in range(blocks)
                for i in range(m)
                for j in range(m)
            }
            # Where AMD's matrix calculator says that element (i, j) of block b lies.
            for (b, i, j), x in result.items():
                if m == 32:
                    row, lane = i // 8 * 4 + i % 4 + 16 * b, j + 32 * (i // 4 % 2)
                elif m == 16:
                    row, lane = i % 4 + 4 * b, j + 16 * (i // 4)
                else:
                    row, lane = i, j + 4 * b
                st.v[ACC + row][lane] = (fb(float(x)) if fills != "I" else x) & M32

        setup = [f for r in (0, 1, 2, 3) for f in ([fills + str(r)] if fills != "I" else []) if r % 2 < words]
        span = lambda first, w: "v%d" % first if w == 1 else "v[%d:%d]" % (first, first + w - 1)
        asm = "v_mfma_%s a[0:%d], %s, %s, 0" % (
            name if number is None else ("f32_32x32x8f16" if m == 32 else "f32_16x16x16f16"),
            rows - 1 if number is None else (15 if m == 32 else 3),
            span(0, words),
            span(2, words),
        )
        patch = None if number is None else (0x7F << 16, number << 16)
        if number is not None and words == 1:
            asm = asm.replace("v0,", "v[0:1],").replace("v2,", "v[2:3],")
        case("v_mfma_" + name, asm, setup + ["X=%x" % SOME], run, "gfx90a" if number is None else target, patch)


def control():
    def moved(st):
        st.s[6] = 1

    skip = "%s 1\ns_mov_b32 s6, 1"
    for name, setup, taken in (
        ("s_branch", [], True),
        ("s_cbranch_scc0", [], True),
        ("s_cbranch_scc0", ["C=1"], False),
        ("s_cbranch_scc1", ["C=1"], True),
        ("s_cbranch_scc1", [], False),
        ("s_cbranch_vccz", ["S106=0", "S107=0"], True),
        ("s_cbranch_vccz", ["S106=0", "S107=1"], False),
        ("s_cbranch_vccnz", ["S106=0", "S107=1"], True),
        ("s_cbranch_vccnz", ["S106=0", "S107=0"], False),
        ("s_cbranch_execz", ["X=0"], True),
        ("s_cbranch_execz", ["X=100000000"], False),
        ("s_cbranch_execnz", ["X=100000000"], True),
        ("s_cbranch_execnz", ["X=0"], False),
    ):
        case(name, skip % name, setup, (lambda st: None) if taken else moved)
    for name in (
        "s_nop 3",
        "s_waitcnt 0",
        "s_setprio 1",
        "s_sleep 1",
        "s_wakeup",
        "s_icache_inv",
        "s_incperflevel 1",
        "s_decperflevel 1",
        "s_ttracedata",
        "s_barrier",
        "s_set_gpr_idx_off",
        "s_sendmsg 0x1",
        "v_nop",
        "v_clrexcp",
        "s_sethalt 0",
    ):
        case(name.split()[0], name, [], lambda st: None)
    case("s_endpgm", "s_endpgm\ns_mov_b32 s6, 1", [], lambda st: None)
    case("s_getpc_b64", "s_getpc_b64 s[6:7]", [], lambda st: st.put(6, 0x1004))
    case("s_setpc_b64", "s_setpc_b64 s[8:9]\ns_mov_b32 s6, 1", ["S8=1008", "S9=0"], lambda st: None)

    def swapped(st):
        st.put(10, 0x1004)

    case("s_swappc_b64", "s_swappc_b64 s[10:11], s[8:9]\ns_mov_b32 s6, 1", ["S8=1008", "S9=0"], swapped)
    case("s_call_b64", "s_call_b64 s[10:11], 1\ns_mov_b32 s6, 1", [], swapped)


def scalar():
    fills = [(fill(n) << 32 | fill(n + 50), fill(n + 9) << 32 | fill(n + 70)) for n in (1, 2)] + [
        (0, 0),
        (M64, 1),
        (1 << 63, M64),
    ]

    def two(name, f, scc, wide, by_word=False):
        for x, y in fills:
            for carry in (0, 1):
                regs = ("s[6:7], s[0:1], " + ("s2" if by_word else "s[2:3]")) if wide else "s6, s0, s2"
                x0 = x if wide else x & M32
                y0 = y & M32 if by_word or not wide else y
                case(
                    name,
                    "%s %s" % (name, regs),
                    [
                        "S0=%x" % (x0 & M32),
                        "S1=%x" % (x >> 32),
                        "S2=%x" % (y0 & M32),
                        "S3=%x" % (y >> 32),
                        "C=%x" % carry,
                    ],
                    (lambda st, x=x0, y=y0, carry=carry: scalar_two(st, f, scc, wide, x, y, carry)),
                )

    nonzero = lambda x, y, c, r: r
    for name, f in (
        ("and", lambda x, y: x & y),
        ("or", lambda x, y: x | y),
        ("xor", lambda x, y: x ^ y),
        ("andn2", lambda x, y: x & ~y),
        ("orn2", lambda x, y: x | ~y),
        ("nand", lambda x, y: ~(x & y)),
        ("nor", lambda x, y: ~(x | y)),
        ("xnor", lambda x, y: ~(x ^ y)),
    ):
        if name != "and":
            two("s_%s_b64" % name, lambda x, y, c, f=f: f(x, y), nonzero, True)

        def saved(st, x, f=f):
            old = st.get(EXEC)
            new = f(x, old) & M64
            st.put(6, old)
            st.put(EXEC, new)
            st.scc = int(bool(new))

        for x, _ in fills:
            case(
                "s_%s_saveexec_b64" % name,
                "s_%s_saveexec_b64 s[6:7], s[0:1]" % name,
                ["S0=%x" % (x & M32), "S1=%x" % (x >> 32), "X=%x" % SOME],
                lambda st, x=x, f=f: saved(st, x, f),
            )
    for name, f in (("andn1", lambda x, e: ~x & e), ("orn1", lambda x, e: ~x | e)):

        def saved1(st, x, f):
            old = st.get(EXEC)
            st.put(6, old)
            st.put(EXEC, f(x, old) & M64)
            st.scc = int(bool(f(x, old) & M64))

        for x, _ in fills:
            case(
                "s_%s_saveexec_b64" % name,
                "s_%s_saveexec_b64 s[6:7], s[0:1]" % name,
                ["S0=%x" % (x & M32), "S1=%x" % (x >> 32), "X=%x" % SOME],
                lambda st, x=x, f=f: saved1(st, x, f),
            )
    for name, f in (("andn1", lambda x, e: ~x & e), ("andn2", lambda x, e: x & ~e)):

        def written(st, x, f):
            new = f(x, st.get(EXEC)) & M64
            st.put(6, new)
            st.put(EXEC, new)
            st.scc = int(bool(new))

        for x, _ in fills:
            case(
                "s_%s_wrexec_b64" % name,
                "s_%s_wrexec_b64 s[6:7], s[0:1]" % name,
                ["S0=%x" % (x & M32), "S1=%x" % (x >> 32), "X=%x" % SOME],
                lambda st, x=x, f=f: written(st, x, f),
            )
    two("s_lshr_b64", lambda x, y, c: x >> (y & 63), nonzero, True, True)
    two("s_ashr_i64", lambda x, y, c: s64(x) >> (y & 63), nonzero, True, True)
    two("s_addc_u32", lambda x, y, c: x + y + c, lambda x, y, c, r: x + y + c > M32, False)
    two("s_subb_u32", lambda x, y, c: x - y - c, lambda x, y, c, r: x < y + c, False)
    two("s_cselect_b32", lambda x, y, c: x if c else y, None, False)
    two("s_cselect_b64", lambda x, y, c: x if c else y, None, True)
    for k in (2, 3):
        two(
            "s_lshl%d_add_u32" % k, lambda x, y, c, k=k: (x << k) + y, lambda x, y, c, r, k=k: (x << k) + y > M32, False
        )

    def field(x, y, bits, signed):
        offset, width = y & bits - 1, min(y >> 16 & 0x7F, bits - (y & bits - 1))
        value = x >> offset & (1 << width) - 1
        return value - (1 << width) if signed and width and value >> width - 1 & 1 else value

    for y in (0x00080004, 0x00100010, 0x00200000, 0x00000005, 0x0007001D):
        for x, _ in fills:
            for name, bits, signed in (
                ("s_bfe_u32", 32, 0),
                ("s_bfe_i32", 32, 1),
                ("s_bfe_u64", 64, 0),
                ("s_bfe_i64", 64, 1),
            ):
                wide = bits == 64
                case(
                    name,
                    "%s %s, %s, s2" % (name, "s[6:7]" if wide else "s6", "s[0:1]" if wide else "s0"),
                    ["S0=%x" % (x & M32), "S1=%x" % (x >> 32), "S2=%x" % y],
                    lambda st, x=x if wide else x & M32, y=y, bits=bits, signed=signed, wide=wide: scalar_two(
                        st, lambda a, b, c: field(a, b, bits, signed), nonzero, wide, x, y, 0
                    ),
                )
    case("s_bfm_b64", "s_bfm_b64 s[6:7], s0, s2", ["S0=c", "S2=25"], lambda st: st.put(6, 0xFFF << 0x25))
    one = lambda name, f, scc, wide_in, wide_out: [
        case(
            name,
            "%s %s, %s" % (name, "s[6:7]" if wide_out else "s6", "s[0:1]" if wide_in else "s0"),
            ["S0=%x" % (x & M32), "S1=%x" % (x >> 32), "C=1"],
            lambda st, x=x if wide_in else x & M32: scalar_two(st, lambda a, b, c: f(a), scc, wide_out, x, 0, 1),
        )
        for x, _ in fills
    ]
    bits64 = lambda x: format(x, "064b")
    one("s_mov_b64", lambda x: x, None, True, True)
    one("s_not_b64", lambda x: ~x, nonzero, True, True)
    one("s_brev_b64", lambda x: int(bits64(x)[::-1], 2), None, True, True)
    one("s_bcnt0_i32_b64", lambda x: bits64(x).count("0"), nonzero, True, False)
    one("s_ff0_i32_b64", lambda x: bits64(x)[::-1].find("0"), None, True, False)
    one("s_ff1_i32_b64", lambda x: bits64(x)[::-1].find("1"), None, True, False)
    one("s_flbit_i32_b64", lambda x: bits64(x).find("1"), None, True, False)
    one("s_flbit_i32_i64", lambda x: bits64(x).find("0" if x >> 63 else "1"), None, True, False)
    wqm = lambda x, n: sum((15 << k) for k in range(0, n, 4) if x >> k & 15)
    quad = lambda x, n: sum((1 << k // 4) for k in range(0, n, 4) if x >> k & 15)
    one("s_wqm_b32", lambda x: wqm(x, 32), nonzero, False, False)
    one("s_wqm_b64", lambda x: wqm(x, 64), nonzero, True, True)
    one("s_quadmask_b32", lambda x: quad(x, 32), nonzero, False, False)
    one("s_quadmask_b64", lambda x: quad(x, 64), nonzero, True, True)
    one("s_bitreplicate_b64_b32", lambda x: int("".join(c * 2 for c in format(x, "032b")), 2), None, False, True)
    for scc in (0, 1):
        case(
            "s_cmov_b32",
            "s_cmov_b32 s6, s0",
            ["C=%x" % scc],
            lambda st, scc=scc: st.s.__setitem__(6, st.s[0] if scc else st.s[6]),
        )
        case(
            "s_cmov_b64",
            "s_cmov_b64 s[6:7], s[0:1]",
            ["C=%x" % scc],
            lambda st, scc=scc: st.put(6, st.get(0) if scc else st.get(6)),
        )
        case(
            "s_cmovk_i32",
            "s_cmovk_i32 s6, 0x8123",
            ["C=%x" % scc],
            lambda st, scc=scc: st.s.__setitem__(6, 0xFFFF8123 if scc else st.s[6]),
        )
    for bit in (3, 37):
        case(
            "s_bitset0_b32",
            "s_bitset0_b32 s6, s0",
            ["S0=%x" % bit],
            lambda st, b=bit: st.s.__setitem__(6, st.s[6] & ~(1 << b % 32) & M32),
        )
        case(
            "s_bitset1_b32",
            "s_bitset1_b32 s6, s0",
            ["S0=%x" % bit],
            lambda st, b=bit: st.s.__setitem__(6, st.s[6] | 1 << b % 32),
        )
        case(
            "s_bitset0_b64",
            "s_bitset0_b64 s[6:7], s0",
            ["S0=%x" % bit],
            lambda st, b=bit: st.put(6, st.get(6) & ~(1 << b)),
        )
        case(
            "s_bitset1_b64",
            "s_bitset1_b64 s[6:7], s0",
            ["S0=%x" % bit],
            lambda st, b=bit: st.put(6, st.get(6) | 1 << b),
        )
        for value in (0, 1):
            case(
                "s_bitcmp%d_b32" % value,
                "s_bitcmp%d_b32 s0, s2" % value,
                ["S2=%x" % bit],
                lambda st, b=bit, v=value: setattr(st, "scc", int((st.s[0] >> b % 32 & 1) == v)),
            )
            case(
                "s_bitcmp%d_b64" % value,
                "s_bitcmp%d_b64 s[0:1], s2" % value,
                ["S2=%x" % bit],
                lambda st, b=bit, v=value: setattr(st, "scc", int((st.get(0) >> b & 1) == v)),
            )
    relations = {
        "eq": lambda a, b: a == b,
        "lg": lambda a, b: a != b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
    }
    for x, y in ((5, 5), (5, 0xFFFFFFF0), (0xFFFF8123, 0x8123), (0x80000000, 7), (0x8123, 0x8123)):
        for name, f in relations.items():
            for kind in "iu":
                to = s32 if kind == "i" else (lambda a: a)
                case(
                    "s_cmp_%s_%s32" % (name, kind),
                    "s_cmp_%s_%s32 s0, s2" % (name, kind),
                    ["S0=%x" % x, "S2=%x" % y],
                    lambda st, f=f, to=to, x=x, y=y: setattr(st, "scc", int(f(to(x), to(y)))),
                )
                k = s16(y) if kind == "i" else y & 0xFFFF
                case(
                    "s_cmpk_%s_%s32" % (name, kind),
                    "s_cmpk_%s_%s32 s0, 0x%x" % (name, kind, y & 0xFFFF),
                    ["S0=%x" % x],
                    lambda st, f=f, to=to, x=x, k=k: setattr(st, "scc", int(f(to(x), k))),
                )
        for name in ("eq", "lg"):
            case(
                "s_cmp_%s_u64" % name,
                "s_cmp_%s_u64 s[0:1], s[2:3]" % name,
                ["S0=%x" % x, "S1=1", "S2=%x" % y, "S3=1"],
                lambda st, f=relations[name], x=x, y=y: setattr(st, "scc", int(f(x, y))),
            )
    case("s_movk_i32", "s_movk_i32 s6, 0x8123", [], lambda st: st.s.__setitem__(6, 0xFFFF8123))
    for x, carry in ((0x7FFFFFFF, 1), (5, 0)):
        case(
            "s_addk_i32",
            "s_addk_i32 s6, 0x10",
            ["S6=%x" % x],
            lambda st, x=x, c=carry: (st.s.__setitem__(6, x + 16 & M32), setattr(st, "scc", c)),
        )
    case("s_mulk_i32", "s_mulk_i32 s6, 0xfffd", ["S6=12345"], lambda st: st.s.__setitem__(6, 0x12345 * -3 & M32))
    case("s_movrels_b32", "s_movrels_b32 s6, s10", ["S124=4"], lambda st: st.s.__setitem__(6, st.s[14]))
    case("s_movrels_b64", "s_movrels_b64 s[6:7], s[10:11]", ["S124=4"], lambda st: st.put(6, st.get(14)))
    case("s_movreld_b32", "s_movreld_b32 s10, s6", ["S124=4"], lambda st: st.s.__setitem__(14, st.s[6]))
    case("s_movreld_b64", "s_movreld_b64 s[10:11], s[6:7]", ["S124=4"], lambda st: st.put(14, st.get(6)))
    case("s_getreg_b32", "s_getreg_b32 s6, hwreg(HW_REG_MODE, 4, 4)", [], lambda st: st.s.__setitem__(6, 15))
    case("s_setreg_b32", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s6", ["S6=5"], lambda st: setattr(st, "mode", 0xF5))
    case(
        "s_setreg_imm32_b32", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 2", [], lambda st: setattr(st, "mode", 0xE0)
    )

    # Indexed registers: v_mov_b32 of the register that M0 is away.
    def indexed(st):
        st.s[M0] = st.s[M0] & ~0xF0FF | 3 | 1 << 12
        st.v[8] = list(st.v[5])

    case("s_set_gpr_idx_on", "s_set_gpr_idx_on s0, 0x1\nv_mov_b32 v8, v2", ["S0=3"], indexed)
    case(
        "s_set_gpr_idx_idx",
        "s_set_gpr_idx_idx s0",
        ["S0=1ff"],
        lambda st: st.s.__setitem__(M0, st.s[M0] & ~0xFF | 0xFF),
    )
    case(
        "s_set_gpr_idx_mode",
        "s_set_gpr_idx_mode 0x9",
        [],
        lambda st: st.s.__setitem__(M0, st.s[M0] & ~0xF000 | 9 << 12),
    )


def scalar_two(st, f, scc, wide, x, y, carry):
    r = f(x, y, carry) & (M64 if wide else M32)
    if scc:
        st.scc = int(bool(scc(x, y, carry, r)))
    else:
        st.scc = carry
    if wide:
        st.put(6, r)
    else:
        st.s[6] = r


def compares():
    floats = ("f", "lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru")
    integers = ("f", "lt", "eq", "le", "gt", "ne", "ge", "t")
    holds = {
        "f": lambda a, b: False,
        "lt": lambda a, b: a < b,
        "eq": lambda a, b: a == b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "lg": lambda a, b: a < b or a > b,
        "ge": lambda a, b: a >= b,
        "o": lambda a, b: a == a and b == b,
        "u": lambda a, b: a != a or b != b,
        "nge": lambda a, b: not a >= b,
        "nlg": lambda a, b: not (a < b or a > b),
        "ngt": lambda a, b: not a > b,
        "nle": lambda a, b: not a <= b,
        "neq": lambda a, b: not a == b,
        "nlt": lambda a, b: not a < b,
        "tru": lambda a, b: True,
        "ne": lambda a, b: a != b,
        "t": lambda a, b: True,
    }
    types = {
        "f16": (bh, ["H0", "H2"], floats, 1),
        "f32": (bf, ["F0", "F2"], floats, 1),
        "f64": (bd, ["D0", "D2"], floats, 2),
        "i16": (s16, [], integers, 1),
        "u16": (lambda x: x & 0xFFFF, [], integers, 1),
        "i32": (s32, [], integers, 1),
        "u32": (lambda x: x, [], integers, 1),
        "i64": (s64, [], integers, 2),
        "u64": (lambda x: x, [], integers, 2),
    }
    for kind, (value, setup, relations, words) in types.items():
        for relation in relations:
            for x in ("", "x"):
                name = "v_cmp%s_%s_%s" % (x, relation, kind)
                # Some lanes have the same on both sides, and some floats are no numbers.
                more = [] if kind[0] == "f" else ["K0=f,0", "K2=f,0"] if words == 1 else ["K1=1,0", "K3=1,0"]

                def run(st, value=value, f=holds[relation], words=words, x=x):
                    mask = 0
                    for i in st.lanes():
                        a, b = (st.wide(0, i), st.wide(2, i)) if words == 2 else (st.v[0][i], st.v[2][i])
                        mask |= int(bool(f(value(a), value(b)))) << i
                    st.put(VCC, mask)
                    if x:
                        st.put(EXEC, mask)

                regs = "v0, v2" if words == 1 else "v[0:1], v[2:3]"
                case(name, "%s_e32 vcc, %s" % (name, regs), setup + more + ["X=%x" % SOME], run)
                if kind[0] == "f":
                    nan = {"f16": ["K0=0,7e00"], "f32": ["K0=0,7fc00000"], "f64": ["K0=0,0", "K1=0,7ff80000"]}[kind]
                    case(name, "%s_e32 vcc, %s" % (name, regs), setup + nan, run)

    def float_class(x, kind):
        sign, a = math.copysign(1, x) < 0, abs(x)
        if x != x:
            return 2  # quiet
        low = {"f16": 2.0**-14, "f32": 2.0**-126, "f64": 2.0**-1022}[kind]
        at = 0 if math.isinf(a) else 1 if a >= low else 2 if a else 3
        return 1 << ((2 + at) if sign else (9 - at))

    for kind, bits in (
        ("f16", (0x7E00, 0x3C00, 0xBC00, 0x0001, 0x8001, 0, 0x8000, 0x7C00, 0xFC00)),
        ("f32", (0x7FC00000, 0x3F800000, 0xBF800000, 1, 0x80000001, 0, 0x80000000, 0x7F800000, 0xFF800000)),
        ("f64", (0x7FF8 << 48, 0x3FF0 << 48, 0xBFF0 << 48, 1, 1 << 63 | 1, 0, 1 << 63, 0x7FF0 << 48, 0xFFF0 << 48)),
    ):
        for value in bits:
            x = {"f16": bh, "f32": bf, "f64": bd}[kind](value)
            found = 2 if x != x else float_class(x, kind)
            for k in ("", "x"):
                name = "v_cmp%s_class_%s" % (k, kind)

                def is_class(st, found=found, k=k):
                    mask = sum(1 << i for i in st.lanes() if st.v[2][i] & found)
                    st.put(VCC, mask)
                    if k:
                        st.put(EXEC, mask)

                setup = ["K0=0,%x" % (value & M32)] + (["K1=0,%x" % (value >> 32)] if kind == "f64" else [])
                case(
                    name,
                    "%s_e32 vcc, %s, v2" % (name, "v[0:1]" if kind == "f64" else "v0"),
                    setup + ["X=%x" % SOME],
                    is_class,
                )


def two_over_pi(bits):
    """floor(2/pi * 2^bits), by Machin's formula."""
    one = 1 << bits + 64

    def arctan(n):
        x = total = one // n
        k = 1
        while x:
            x //= -n * n
            k += 2
            total += x // k
        return total

    return (2 * one * one // (4 * (4 * arctan(5) - arctan(239)))) >> 64


def lanes_of(name, asm, setup, f, words=1, target="gfx90a", patch=None):
    """A result of each lane in v8 (v[8:9])."""

    def one(st, i):
        x = f(st, i) & (M64 if words == 2 else M32)
        if words == 2:
            st.put_wide(8, i, x)
        else:
            st.v[8][i] = x

    case(name, asm, setup + ["X=%x" % SOME], each(one), target, patch)


def vector():
    low, high = (lambda x: bh(x)), (lambda x: bh(x >> 16))
    both = (
        lambda f: lambda st, i: hb(f(*(low(st.v[r][i]) for r in (0, 2, 4))))
        | hb(f(*(high(st.v[r][i]) for r in (0, 2, 4)))) << 16
    )
    f32 = lambda f: lambda st, i: fb(f(*(bf(st.v[r][i]) for r in (0, 2, 4))))
    # An operation of halves of gfx9 leaves zeros above its result, if its name is an old one, and else what was there.
    f16 = lambda f, keeps=False: lambda st, i: hb(f(*(low(st.v[r][i]) for r in (0, 2, 4)))) | (
        st.v[8][i] & 0xFFFF0000 if keeps else 0
    )
    three = ["F0", "F2", "F4"]
    for name, old in (("v_mac_f32", "gfx906"), ("v_fmac_f32", "gfx90a")):
        lanes_of(
            name,
            "%s_e32 v8, v0, v2" % name,
            three + ["F8"],
            lambda st, i: fb(bf(st.v[0][i]) * bf(st.v[2][i]) + bf(st.v[8][i])),
            target=old,
        )
    lanes_of(
        "v_fmac_f64",
        "v_fmac_f64_e32 v[8:9], v[0:1], v[2:3]",
        ["D0", "D2", "D8"],
        lambda st, i: db(bd(st.wide(0, i)) * bd(st.wide(2, i)) + bd(st.wide(8, i))),
        2,
    )
    lanes_of("v_mad_f32", "v_mad_f32 v8, v0, v2, v4", three, f32(lambda x, y, z: x * y + z), target="gfx906")
    lanes_of(
        "v_mad_legacy_f32", "v_mad_legacy_f32 v8, v0, v2, v4", three, f32(lambda x, y, z: x * y + z), target="gfx906"
    )
    lanes_of(
        "v_mac_f16",
        "v_mac_f16_e32 v8, v0, v2",
        ["H0", "H2", "H8"],
        lambda st, i: hb(bh(st.v[0][i]) * bh(st.v[2][i]) + bh(st.v[8][i])),
        target="gfx906",
    )
    halves = ["H0", "H2", "H4"]
    for name, target, keeps in (
        ("v_mad_f16", "gfx90a", True),
        ("v_mad_legacy_f16", "gfx90a", False),
        ("v_fma_legacy_f16", "gfx90a", False),
    ):
        lanes_of(name, "%s v8, v0, v2, v4" % name, halves, f16(lambda x, y, z: x * y + z, keeps), target=target)
    for name, f in (("v_pk_fma_f16", lambda x, y, z: x * y + z),):
        lanes_of(name, "%s v8, v0, v2, v4" % name, halves, both(f))
    lanes_of(
        "v_pk_fmac_f16",
        "v_pk_fmac_f16 v8, v0, v2",
        ["H0", "H2", "H8"],
        lambda st, i: hb(low(st.v[0][i]) * low(st.v[2][i]) + low(st.v[8][i]))
        | hb(high(st.v[0][i]) * high(st.v[2][i]) + high(st.v[8][i])) << 16,
    )
    pair = (
        lambda f: lambda st, i: fb(f(*(bf(st.v[r][i]) for r in (0, 2, 4))))
        | fb(f(*(bf(st.v[r + 1][i]) for r in (0, 2, 4)))) << 32
    )
    six = ["F%d" % n for n in range(6)]
    lanes_of("v_pk_fma_f32", "v_pk_fma_f32 v[8:9], v[0:1], v[2:3], v[4:5]", six, pair(lambda x, y, z: x * y + z), 2)
    lanes_of("v_pk_mul_f32", "v_pk_mul_f32 v[8:9], v[0:1], v[2:3]", six, pair(lambda x, y, z: x * y), 2)
    lanes_of("v_pk_add_f32", "v_pk_add_f32 v[8:9], v[0:1], v[2:3]", six, pair(lambda x, y, z: x + y), 2)
    lanes_of(
        "v_pk_mov_b32",
        "v_pk_mov_b32 v[8:9], v[0:1], v[2:3] op_sel:[1,0]",
        [],
        lambda st, i: st.v[1][i] | st.v[2][i] << 32,
        2,
    )
    words = (
        lambda f: lambda st, i: f(*(st.v[r][i] & 0xFFFF for r in (0, 2, 4))) & 0xFFFF
        | (f(*(st.v[r][i] >> 16 for r in (0, 2, 4))) & 0xFFFF) << 16
    )
    for name, f in (
        ("add_i16", lambda x, y, z: x + y),
        ("sub_u16", lambda x, y, z: x - y),
        ("ashrrev_i16", lambda x, y, z: s16(y) >> (x & 15)),
        ("max_u16", lambda x, y, z: max(x, y)),
        ("min_i16", lambda x, y, z: min(s16(x), s16(y))),
    ):
        lanes_of("v_pk_" + name, "v_pk_%s v8, v0, v2" % name, [], words(f))
    lanes_of("v_pk_mad_i16", "v_pk_mad_i16 v8, v0, v2, v4", [], words(lambda x, y, z: x * y + z))
    lanes_of(
        "v_fma_mix_f32",
        "v_fma_mix_f32 v8, v0, v2, v4 op_sel:[0,1,0] op_sel_hi:[0,1,0]",
        ["F0", "H2", "F4"],
        lambda st, i: fb(bf(st.v[0][i]) * high(st.v[2][i]) + bf(st.v[4][i])),
    )
    mixed = lambda st, i: hb(low(st.v[0][i]) * bf(st.v[2][i]) + bf(st.v[4][i]))
    lanes_of(
        "v_fma_mixlo_f16",
        "v_fma_mixlo_f16 v8, v0, v2, v4 op_sel_hi:[1,0,0]",
        ["H0", "F2", "F4"],
        lambda st, i: mixed(st, i) | st.v[8][i] & 0xFFFF0000,
    )
    lanes_of(
        "v_fma_mixhi_f16",
        "v_fma_mixhi_f16 v8, v0, v2, v4 op_sel_hi:[1,0,0]",
        ["H0", "F2", "F4"],
        lambda st, i: mixed(st, i) << 16 | st.v[8][i] & 0xFFFF,
    )
    dot_i = lambda st, i, bits, to: sum(to(st.v[0][i] >> k) * to(st.v[2][i] >> k) for k in range(0, 32, bits))
    dot_f = lambda st, i: low(st.v[0][i]) * low(st.v[2][i]) + high(st.v[0][i]) * high(st.v[2][i])
    lanes_of(
        "v_dot2_f32_f16",
        "v_dot2_f32_f16 v8, v0, v2, v4",
        ["H0", "H2", "F4"],
        lambda st, i: fb(dot_f(st, i) + bf(st.v[4][i])),
    )
    lanes_of(
        "v_dot2c_f32_f16",
        "v_dot2c_f32_f16_e32 v8, v0, v2",
        ["H0", "H2", "F8"],
        lambda st, i: fb(dot_f(st, i) + bf(st.v[8][i])),
    )
    lanes_of("v_dot2c_i32_i16", "v_dot2c_i32_i16_e32 v8, v0, v2", [], lambda st, i: dot_i(st, i, 16, s16) + st.v[8][i])
    lanes_of("v_dot4c_i32_i8", "v_dot4c_i32_i8_e32 v8, v0, v2", [], lambda st, i: dot_i(st, i, 8, s8) + st.v[8][i])
    lanes_of("v_dot8c_i32_i4", "v_dot8c_i32_i4_e32 v8, v0, v2", [], lambda st, i: dot_i(st, i, 4, s4) + st.v[8][i])
    lanes_of("v_dot8_i32_i4", "v_dot8_i32_i4 v8, v0, v2, v4", [], lambda st, i: dot_i(st, i, 4, s4) + st.v[4][i])
    # Functions that hardware approximates, where the result is a number of few bits: any good approximation rounds to it.
    constant = lambda name, x, r, bits=32, target="gfx90a": lanes_of(
        name,
        "%s_e32 %s, %s" % (name, "v[8:9]" if bits == 64 else "v8", "v[0:1]" if bits == 64 else "v0"),
        ["K0=0,%x" % ({16: hb, 32: fb, 64: db}[bits](x) & M32)] + (["K1=0,%x" % (db(x) >> 32)] if bits == 64 else []),
        lambda st, i: {16: hb, 32: fb, 64: db}[bits](r),
        2 if bits == 64 else 1,
        target,
    )
    for bits in (16, 32):
        for x in (3.0, -2.0, 0.0):
            constant("v_exp_f%d" % bits, x, 2.0**x, bits)
            constant("v_log_f%d" % bits, 2.0**x, x, bits)
        for x in (4.0, -0.25, 16.0):
            constant("v_rcp_f%d" % bits, x, 1 / x, bits)
        for x in (4.0, 0.0625):
            constant("v_rsq_f%d" % bits, x, x**-0.5, bits)
        for x, sine, cosine in ((0.25, 1.0, 0.0), (0.5, 0.0, -1.0), (0.75, -1.0, 0.0), (0.0, 0.0, 1.0)):
            if sine:
                constant("v_sin_f%d" % bits, x, sine, bits)
            if cosine:
                constant("v_cos_f%d" % bits, x, cosine, bits)
    constant("v_exp_legacy_f32", 5.0, 32.0)
    constant("v_log_legacy_f32", 32.0, 5.0)
    constant("v_rcp_iflag_f32", 8.0, 0.125)
    constant("v_rcp_f64", -8.0, -0.125, 64)
    constant("v_rsq_f64", 0.0625, 4.0, 64)
    constant("v_sqrt_f64", 144.0, 12.0, 64)
    constant("v_sqrt_f16", 144.0, 12.0, 16)
    constant("v_fract_f16", 5.25, 0.25, 16)
    lanes_of(
        "v_frexp_exp_i16_f16",
        "v_frexp_exp_i16_f16_e32 v8, v0",
        ["H0"],
        lambda st, i: math.frexp(low(st.v[0][i]))[1] & 0xFFFF,
    )
    lanes_of("v_ldexp_f16", "v_ldexp_f16_e32 v8, v0, v2", ["H0", "L2=0,3"], lambda st, i: hb(low(st.v[0][i]) * 8))
    lanes_of("v_ldexp_f32", "v_ldexp_f32 v8, v0, v2", ["F0", "L2=0,fffffffe"], lambda st, i: fb(bf(st.v[0][i]) / 4))
    lanes_of(
        "v_cvt_pkrtz_f16_f32",
        "v_cvt_pkrtz_f16_f32_e64 v8, v0, v2",
        ["K0=0,%x" % fb(1.0 + 2.0**-11 + 2.0**-12), "F2"],
        lambda st, i: hb(1.0) | hb(bf(st.v[2][i])) << 16,
    )
    norm = lambda x, top: round(Fraction(max(-1.0 if top == 32767 else 0.0, min(1.0, x))) * top) & 0xFFFF
    for kind, top in (("i16", 32767), ("u16", 65535)):
        lanes_of(
            "v_cvt_pknorm_%s_f32" % kind,
            "v_cvt_pknorm_%s_f32 v8, v0, v2" % kind,
            ["F0", "K2=0,%x" % fb(0.25)],
            lambda st, i, t=top: norm(bf(st.v[0][i]), t) | norm(0.25, t) << 16,
        )
        lanes_of(
            "v_cvt_pknorm_%s_f16" % kind,
            "v_cvt_pknorm_%s_f16 v8, v0, v2" % kind,
            ["H0", "K2=0,%x" % hb(0.25)],
            lambda st, i, t=top: norm(low(st.v[0][i]), t) | norm(0.25, t) << 16,
        )
        lanes_of(
            "v_cvt_norm_%s_f16" % kind,
            "v_cvt_norm_%s_f16_e32 v8, v0" % kind,
            ["K0=0,%x" % hb(0.25)],
            lambda st, i, t=top: norm(0.25, t),
        )
    lanes_of(
        "v_cvt_pk_u8_f32",
        "v_cvt_pk_u8_f32 v8, v0, v2, v4",
        ["K0=0,%x" % fb(200.0), "K2=0,2"],
        lambda st, i: st.v[4][i] & 0xFF00FFFF | 200 << 16,
    )
    # Divisions: quotients of small numbers need no scaling; the cases that do are by hand.
    for kind, reg, fills in (("f32", "v%d", ["F0", "F2", "F4"]), ("f64", "v[%d:%d]", ["D0", "D2", "D4"])):
        r = lambda n, reg=reg, kind=kind: reg % n if kind == "f32" else reg % (n, n + 1)
        get = (lambda st, n, i: bf(st.v[n][i])) if kind == "f32" else (lambda st, n, i: bd(st.wide(n, i)))
        bits = fb if kind == "f32" else db
        count = 1 if kind == "f32" else 2

        def quotient(st, i, get=get, bits=bits, kind=kind):
            x, y, z = (get(st, n, i) for n in (0, 2, 4))
            sign = math.copysign(1, y) * math.copysign(1, z)
            if y == 0 and z == 0:
                return 0xFFC00000 if kind == "f32" else 0xFFF8 << 48
            return bits(sign * (math.inf if y == 0 else 0.0 if z == 0 else abs(x)))

        lanes_of(
            "v_div_fixup_" + kind,
            "v_div_fixup_%s %s, %s, %s, %s" % (kind, r(8), r(0), r(2), r(4)),
            fills,
            quotient,
            count,
        )
        lanes_of(
            "v_div_fmas_" + kind,
            "v_div_fmas_%s %s, %s, %s, %s" % (kind, r(8), r(0), r(2), r(4)),
            fills + ["S106=0", "S107=0"],
            lambda st, i, get=get, bits=bits: bits(get(st, 0, i) * get(st, 2, i) + get(st, 4, i)),
            count,
        )
        # With the mask set the result is scaled: down if the last operand is below two, up above.
        power = 64 if kind == "f32" else 128
        lanes_of(
            "v_div_fmas_" + kind,
            "v_div_fmas_%s %s, %s, %s, %s" % (kind, r(8), r(0), r(2), r(4)),
            fills + ["S106=ffffffff", "S107=ffffffff"],
            lambda st, i, get=get, bits=bits, power=power: bits(
                math.ldexp(get(st, 0, i) * get(st, 2, i) + get(st, 4, i), power if abs(get(st, 4, i)) >= 2 else -power)
            ),
            count,
        )
        sane = ["K%d=0,%x" % (n, fb(x) if kind == "f32" else 0) for n, x in ((0, 3.0), (2, 3.0), (4, 7.0))] + (
            ["K%d=0,%x" % (n + 1, db(x) >> 32) for n, x in ((0, 3.0), (2, 3.0), (4, 7.0))] if kind == "f64" else []
        )

        def scaled(st, value, flag, count=count):
            for i in st.lanes():
                if count == 2:
                    st.put_wide(8, i, value)
                else:
                    st.v[8][i] = value
            st.put(VCC, st.get(EXEC) if flag else 0)

        case(
            "v_div_scale_" + kind,
            "v_div_scale_%s %s, vcc, %s, %s, %s" % (kind, r(8), r(0), r(2), r(4)),
            sane,
            lambda st, v=bits(3.0), f=scaled: f(st, v, False),
        )
        # A numerator far above the denominator: the denominator goes up.
        far = ["K4=0,%x" % fb(2.0**100)] if kind == "f32" else ["K4=0,0", "K5=0,%x" % (db(2.0**900) >> 32)]
        case(
            "v_div_scale_" + kind,
            "v_div_scale_%s %s, vcc, %s, %s, %s" % (kind, r(8), r(0), r(2), r(4)),
            sane + far,
            lambda st, v=bits(math.ldexp(3.0, power)), f=scaled: f(st, v, True),
        )
    for name in ("v_div_fixup_f16", "v_div_fixup_legacy_f16"):
        keeps = name == "v_div_fixup_f16"
        lanes_of(
            name,
            "%s v8, v0, v2, v4" % name,
            ["H0", "K2=0,%x" % hb(2.0), "K4=0,%x" % hb(-5.0)],
            lambda st, i, k=keeps: hb(-abs(low(st.v[0][i]))) | (st.v[8][i] & 0xFFFF0000 if k else 0),
        )
    digits = two_over_pi(1200)
    for segment in (0, 1, 2):
        first = digits >> 1200 - 53 * (segment + 1) & (1 << 53) - 1
        lanes_of(
            "v_trig_preop_f64",
            "v_trig_preop_f64 v[8:9], v[0:1], v2",
            ["D0", "L2=0,%x" % segment],
            lambda st, i, d=first, s=segment: db(math.ldexp(float(d), -53 * (s + 1))),
            2,
        )
    # Carries in and out.
    for name, f in (
        ("v_addc_co_u32", lambda x, y, c: x + y + c),
        ("v_subb_co_u32", lambda x, y, c: x - y - c),
        ("v_subbrev_co_u32", lambda x, y, c: y - x - c),
    ):

        def run(st, f=f):
            carries, out = st.get(VCC), 0
            for i in st.lanes():
                r = f(st.v[0][i], st.v[2][i], carries >> i & 1)
                st.v[8][i] = r & M32
                out |= int(not 0 <= r <= M32) << i
            st.put(VCC, out)

        case(name, "%s_e32 v8, vcc, v0, v2, vcc" % name, ["X=%x" % SOME], run)
    lanes_of(
        "v_mbcnt_lo_u32_b32",
        "v_mbcnt_lo_u32_b32 v8, v0, v2",
        [],
        lambda st, i: bin(st.v[0][i] & (1 << min(i, 32)) - 1).count("1") + st.v[2][i],
    )
    lanes_of(
        "v_mbcnt_hi_u32_b32",
        "v_mbcnt_hi_u32_b32 v8, v0, v2",
        [],
        lambda st, i: bin(st.v[0][i] & (1 << max(i - 32, 0)) - 1).count("1") + st.v[2][i],
    )
    lanes_of("v_mov_b64", "v_mov_b64_e32 v[8:9], v[0:1]", [], lambda st, i: st.wide(0, i), 2, "gfx940")
    lanes_of(
        "v_lshl_add_u64",
        "v_lshl_add_u64 v[8:9], v[0:1], 3, v[2:3]",
        [],
        lambda st, i: (st.wide(0, i) << 3) + st.wide(2, i),
        2,
        "gfx940",
    )
    lanes_of(
        "v_madmk_f32",
        "v_madmk_f32 v8, v0, 0x40000000, v2",
        ["F0", "F2"],
        lambda st, i: fb(bf(st.v[0][i]) * 2 + bf(st.v[2][i])),
        target="gfx906",
    )
    lanes_of(
        "v_madak_f32",
        "v_madak_f32 v8, v0, v2, 0x40000000",
        ["F0", "F2"],
        lambda st, i: fb(bf(st.v[0][i]) * bf(st.v[2][i]) + 2),
        target="gfx906",
    )
    lanes_of(
        "v_fmamk_f32",
        "v_fmamk_f32 v8, v0, 0x40000000, v2",
        ["F0", "F2"],
        lambda st, i: fb(bf(st.v[0][i]) * 2 + bf(st.v[2][i])),
        target="gfx940",
    )
    lanes_of(
        "v_fmaak_f32",
        "v_fmaak_f32 v8, v0, v2, 0x40000000",
        ["F0", "F2"],
        lambda st, i: fb(bf(st.v[0][i]) * bf(st.v[2][i]) + 2),
        target="gfx940",
    )
    lanes_of(
        "v_madmk_f16",
        "v_madmk_f16 v8, v0, 0x4000, v2",
        ["H0", "H2"],
        lambda st, i: hb(low(st.v[0][i]) * 2 + low(st.v[2][i])),
        target="gfx906",
    )
    lanes_of(
        "v_madak_f16",
        "v_madak_f16 v8, v0, v2, 0x4000",
        ["H0", "H2"],
        lambda st, i: hb(low(st.v[0][i]) * low(st.v[2][i]) + 2),
        target="gfx906",
    )
    # Single lanes, and accumulation registers (rows from ACC on).
    case("v_readfirstlane_b32", "v_readfirstlane_b32 s6, v2", ["X=ff00"], lambda st: st.s.__setitem__(6, st.v[2][8]))
    case("v_readlane_b32", "v_readlane_b32 s6, v2, s0", ["S0=45"], lambda st: st.s.__setitem__(6, st.v[2][5]))
    case("v_writelane_b32", "v_writelane_b32 v8, s6, 9", ["X=0"], lambda st: st.v[8].__setitem__(9, st.s[6]))

    def swap(st, i):
        st.v[8][i], st.v[2][i] = st.v[2][i], st.v[8][i]

    case("v_swap_b32", "v_swap_b32 v8, v2", ["X=%x" % SOME], each(swap))
    case(
        "v_accvgpr_read_b32",
        "v_accvgpr_read_b32 v8, a3",
        ["X=%x" % SOME],
        each(lambda st, i: st.v[8].__setitem__(i, st.v[ACC + 3][i])),
    )
    case(
        "v_accvgpr_write_b32",
        "v_accvgpr_write_b32 a3, v2",
        ["X=%x" % SOME],
        each(lambda st, i: st.v[ACC + 3].__setitem__(i, st.v[2][i])),
    )
    case(
        "v_accvgpr_mov_b32",
        "v_accvgpr_mov_b32 a3, a5",
        ["X=%x" % SOME],
        each(lambda st, i: st.v[ACC + 3].__setitem__(i, st.v[ACC + 5][i])),
    )


def encode(target, texts):
    """The words of each text (which may be several lines)."""
    source = "".join(".globl c%d\nc%d:\n%s\n" % (k, k, text) for k, text in enumerate(texts))
    out = subprocess.run(
        ["llvm-mc-15", "-arch=amdgcn", "-mcpu=" + target, "-show-encoding"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if "error" in out.stderr:
        raise SystemExit(target + ": " + out.stderr)
    result, current = [], None
    for line in out.stdout.splitlines():
        if line.startswith("c") and line.rstrip().endswith(":"):
            current = []
            result.append(current)
        elif "encoding: [" in line:
            code = bytes(int(b, 16) for b in line.split("encoding: [")[1].rstrip("]").split(","))
            current.extend(struct.unpack("<%dI" % (len(code) // 4), code))
    return result


def main():
    for part in (ds, vector_memory, scalar_memory, matrices, control, scalar, compares, vector):
        part()
    codes = {}
    for target in ("gfx906", "gfx90a", "gfx940"):
        mine = [k for k, c in enumerate(cases) if c[4] == target]
        codes.update(zip(mine, encode(target, [cases[k][1] for k in mine])))
    print(
        "# SPDX-License-Identifier: MIT\n# Written by test/unit/isa_state.py: name, target, words, what is set, hash of the state afterwards."
    )
    for k, (name, _, setup, run, target, patch) in enumerate(cases):
        words = codes[k]
        if patch:
            words[0] = words[0] & ~patch[0] | patch[1]
        state = State()
        for text in setup:
            state.set(text)
        run(state)
        print(
            "%s %s %d %s %s %016x"
            % (name, target, len(words), " ".join("%08x" % w for w in words), ";".join(setup) or "-", state.hash())
        )


main()
