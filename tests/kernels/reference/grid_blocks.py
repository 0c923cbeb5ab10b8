#!/usr/bin/env python3
"""Writes grid_blocks.txt: blocks of IQ2, IQ3 and IQ1 and the floats that llama.cpp makes of them.

The library is only the reference here and not part of the project: any build of ggml that exports
dequantize_row_iq2_xxs and the like (node-llama-cpp ships one). There are two kinds of lines:

TYPE, a block in hex, the weights' bits in hex: random blocks, the last of which have extraordinary scales.

TYPE "all", a digest: FNV-1a over the 32-bit words of 1000 blocks of splitmix64's bytes (the lowest byte of each number
first, seed 1) with scale 1. They contain every point of the grid.

Run: ./grid_blocks.py libggml-base.so > grid_blocks.txt
"""
import ctypes
import random
import struct
import sys

BYTES = {"iq2_xxs": 66, "iq2_xs": 74, "iq2_s": 82, "iq3_xxs": 98, "iq3_s": 110, "iq1_s": 50, "iq1_m": 56}
MASK = (1 << 64) - 1


def put_scale(name, block, half):
    if name != "iq1_m":
        block[:2] = struct.pack("<H", half)
        return
    for i in range(4):  # the top of each of four numbers has four of its bits
        block[49 + 2 * i] = block[49 + 2 * i] & 15 | (half >> 4 * i & 15) << 4


def splitmix(state):
    while True:
        state = state + 0x9E3779B97F4A7C15 & MASK
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield from struct.pack("<Q", z ^ z >> 31)


def main():
    library = ctypes.CDLL(sys.argv[1])
    rng = random.Random(24)
    for name, size in BYTES.items():
        function = getattr(library, "dequantize_row_" + name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64]
        out = (ctypes.c_uint32 * 256)()

        def words(block):
            function(bytes(block), out, 256)
            return out

        half = struct.unpack("<H", struct.pack("<e", rng.uniform(-0.1, 0.1)))[0]
        for d in (half, 0x83FF, 0x7BFF, 0x7C00, 0x7E01):
            block = bytearray(rng.randbytes(size))
            put_scale(name, block, d)
            print(name.upper(), block.hex(), "".join(f"{w:08x}" for w in words(block)))

        digest, source = 14695981039346656037, splitmix(1)
        for _ in range(1000):
            block = bytearray(next(source) for _ in range(size))
            put_scale(name, block, 0x3C00)
            for w in words(block):
                digest = (digest ^ w) * 1099511628211 & MASK
        print(name.upper(), "all", f"{digest:016x}")


main()
