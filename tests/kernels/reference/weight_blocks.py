#!/usr/bin/env python3
"""Writes weight_blocks.txt: random blocks of every quantized format and the floats they stand for.

Computes the formulas in kernels/weight_type.hpp in exact rational arithmetic, rounded to binary32 once at the end. Each
line has the type, the block in hex and the weights' bits in hex. Run: ./weight_blocks.py > weight_blocks.txt
"""
import random
import struct
from fractions import Fraction


def half(raw):
    value = struct.unpack("<e", raw)[0]
    return Fraction(value)


def float_bits(exact):
    """Nearest binary32, ties to even. A double is near enough to start from, and its neighbors decide the rest."""
    guess = struct.unpack("<i", struct.pack("<f", float(exact)))[0]
    def value(bits):
        return Fraction(struct.unpack("<f", struct.pack("<i", bits))[0])
    near = sorted((abs(value(b) - exact), b & 1, b) for b in (guess - 1, guess, guess + 1) if b & 0x7FFFFFFF < 0x7F800000
                  and (b >= 0) == (guess >= 0))
    return near[0][2] & 0xFFFFFFFF


def nibbles32(raw):
    return [b & 15 for b in raw] + [b >> 4 for b in raw]


def fives32(high, raw):
    high = int.from_bytes(high, "little")
    return [q | (high >> i & 1) << 4 for i, q in enumerate(nibbles32(raw))]


def q8_0(b):
    return [half(b[:2]) * q for q in struct.unpack("32b", b[2:])]


def q4_0(b):
    return [half(b[:2]) * (q - 8) for q in nibbles32(b[2:])]


def q4_1(b):
    return [half(b[:2]) * q + half(b[2:4]) for q in nibbles32(b[4:])]


def q5_0(b):
    return [half(b[:2]) * (q - 16) for q in fives32(b[2:6], b[6:])]


def q5_1(b):
    return [half(b[:2]) * q + half(b[2:4]) for q in fives32(b[4:8], b[8:])]


def scale_and_minimum(packed, group):
    if group < 4:
        return packed[group] & 63, packed[group + 4] & 63
    return (packed[group + 4] & 15 | (packed[group - 4] >> 6) << 4,
            packed[group + 4] >> 4 | (packed[group] >> 6) << 4)


def minimum_groups(b, fifths, nibbles):
    out = []
    for group in range(8):
        s, m = scale_and_minimum(b[4:16], group)
        for i in range(32):
            q = nibbles[group // 2 * 32 + i] >> group % 2 * 4 & 15
            if fifths:
                q |= (fifths[i] >> group & 1) << 4
            out.append(half(b[:2]) * s * q - half(b[2:4]) * m)
    return out


def q4_k(b):
    return minimum_groups(b, None, b[16:])


def q5_k(b):
    return minimum_groups(b, b[16:48], b[48:])


def q6_k(b):
    low, high, scales = b[:128], b[128:192], struct.unpack("16b", b[192:208])
    out = []
    for part in range(2):
        for quarter in range(4):
            for i in range(32):
                nibble = low[part * 64 + quarter % 2 * 32 + i] >> quarter // 2 * 4 & 15
                q = nibble | (high[part * 32 + i] >> 2 * quarter & 3) << 4
                out.append(half(b[208:]) * scales[part * 8 + quarter * 2 + i // 16] * (q - 32))
    return out


def pairs(raw, i):
    return raw[i // 128 * 32 + i % 32] >> i % 128 // 32 * 2 & 3


def q2_k(b):
    d, dmin = half(b[80:82]), half(b[82:84])
    return [d * (b[i // 16] & 15) * pairs(b[16:80], i) - dmin * (b[i // 16] >> 4) for i in range(256)]


def q3_k(b):
    high, packed, d = b[:32], b[96:108], half(b[108:110])
    low = [packed[i] & 15 for i in range(8)] + [packed[i] >> 4 for i in range(8)]
    scales = [low[g] | (packed[8 + g % 4] >> g // 4 * 2 & 3) << 4 for g in range(16)]
    return [d * (scales[i // 16] - 32) * (pairs(b[32:96], i) - (0 if high[i % 32] >> i // 32 & 1 else 4))
            for i in range(256)]


IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def iq4_nl(b):
    return [half(b[:2]) * IQ4[q] for q in nibbles32(b[2:])]


def iq4_xs(b):
    high, out = int.from_bytes(b[2:4], "little"), []
    for g in range(8):
        scale = (b[4 + g // 2] >> g % 2 * 4 & 15 | (high >> 2 * g & 3) << 4) - 32
        out += [half(b[:2]) * scale * IQ4[q] for q in nibbles32(b[8 + 16 * g:24 + 16 * g])]
    return out


def mxfp4(b):
    sizes = [Fraction(n, 2) for n in (0, 1, 2, 3, 4, 6, 8, 12)]  # E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6
    return [Fraction(2) ** (b[0] - 127) * (sizes[q & 7] if q < 8 else -sizes[q & 7]) for q in nibbles32(b[1:])]


FORMATS = {  # bytes, offsets of halves
    q8_0: (34, [0]), q4_0: (18, [0]), q4_1: (20, [0, 2]), q5_0: (22, [0]), q5_1: (24, [0, 2]),
    q4_k: (144, [0, 2]), q5_k: (176, [0, 2]), q6_k: (210, [208]),
    q2_k: (84, [80, 82]), q3_k: (110, [108]), iq4_nl: (18, [0]), iq4_xs: (136, [0]), mxfp4: (17, []),
}


def main():
    rng = random.Random(7)
    for decode, (size, halves) in FORMATS.items():
        for kind in range(3 if size > 60 else 6):
            block = bytearray(rng.randbytes(size))
            if decode is mxfp4:  # an ordinary scale; the last kind also has denormal numbers
                block[0] = rng.randrange(100, 130) if kind % 3 != 2 else rng.randrange(3)
            for at in halves:  # an ordinary scale; the last kind has any finite one, even subnormal
                number = rng.uniform(-0.1, 0.1) if kind % 3 != 2 else rng.choice([rng.uniform(-65504, 65504), 3e-6])
                block[at:at + 2] = struct.pack("<e", number)
            bits = "".join(f"{float_bits(w):08x}" for w in decode(bytes(block)))
            print(decode.__name__.upper(), block.hex(), bits)


main()
