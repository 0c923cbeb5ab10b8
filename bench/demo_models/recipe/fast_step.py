"""Hand-written forward and backward passes on a CPU, without autograd or padding; products are in kernels.c.

A batch is one row of tokens cut into segments, each of which is a separate sample. The pieces of a batch are computed
in parallel, one per thread. Without AMX this is about five times as fast as autograd with Debian's torch 1.13.
"""
import ctypes
import hashlib
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import torch

from model import HEAD_DIM, rope_tables

PIECE_TOKENS = 1024  # tokens of a batch computed at a time, few enough that what a layer keeps stays in the cache

HERE = os.path.dirname(os.path.abspath(__file__))


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def build_kernels(exact):
    """Loads the shared library, which is compiled for this CPU at first use. `exact` restricts it to fp32."""
    source = os.path.join(HERE, "kernels.c")
    command = [
        "gcc",
        "-DEXACT" if exact else "-UEXACT",
        "-O3",
        "-march=native",
        "-mprefer-vector-width=512",
        "-ffast-math",
        "-fopenmp",
        "-shared",
        "-fPIC",
        source,
        "-lopenblas",
        "-lm",
    ]
    native = subprocess.run(["gcc", "-march=native", "-Q", "--help=target"], capture_output=True, check=True).stdout
    texts = b"".join(_read(os.path.join(HERE, name)) for name in ("kernels.c", "tiles.h"))
    digest = hashlib.blake2b(texts + native + " ".join(command).encode(), digest_size=8).hexdigest()
    path = os.path.join(tempfile.gettempdir(), f"redline_demo_kernels_{os.getuid()}_{digest}.so")
    if not os.path.exists(path):
        partial = f"{path}.{os.getpid()}"
        subprocess.run(command + ["-o", partial], check=True)
        os.replace(partial, path)
    return ctypes.CDLL(path)


def keep_memory():
    """Keeps freed memory in the process, because fresh pages for each activation cost a third of the step."""
    mallopt, trim_threshold, mmap_max, arena_max = ctypes.CDLL(None).mallopt, -1, -4, -8
    mallopt(arena_max, 1)
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)


class Kernels:
    """The functions of kernels.c. `exact` computes products in fp32 even where the CPU multiplies bf16."""

    def __init__(self, threads, exact=False):
        self.library = build_kernels(exact)
        if hasattr(self.library, "openblas_set_num_threads"):  # not where all products are in bf16
            self.library.openblas_set_num_threads(1)
        self.openmp = ctypes.CDLL("libgomp.so.1")
        self.openmp.omp_set_num_threads(threads)
        keep_memory()

    def work_alone(self):
        """Prepares the calling thread, so that the libraries it calls start no other threads."""
        self.openmp.omp_set_num_threads(1)
        torch.set_num_threads(1)

    def __getattr__(self, name):
        function = getattr(self.library, name)

        def call(*arguments):
            function(*[_argument(a) for a in arguments])

        setattr(self, name, call)
        return call

    def product(self, a, b, transpose_a=False, transpose_b=False, out=None, add=False):
        """a * b of dense matrices, either of them transposed; `add` adds the product to `out`."""
        m, k = a.shape[::-1] if transpose_a else a.shape
        n = b.shape[0] if transpose_b else b.shape[1]
        if out is None:
            out = torch.empty(m, n)
        self.gemm(
            int(transpose_a), int(transpose_b), m, n, k, a, a.shape[1], b, b.shape[1], out, n, 1.0 if add else 0.0
        )
        return out

    def orthogonalise(self, matrices):
        """Works in place; each matrix has at most as many rows as columns."""
        longs = lambda values: (ctypes.c_long * len(values))(*values)  # noqa: E731
        pointers = (ctypes.c_void_p * len(matrices))(*[m.data_ptr() for m in matrices])
        assert all(m.is_contiguous() and m.shape[0] <= m.shape[1] for m in matrices)
        self.library.orthogonalise(
            pointers,
            longs([m.shape[0] for m in matrices]),
            longs([m.shape[1] for m in matrices]),
            ctypes.c_long(len(matrices)),
        )


def _argument(value):
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, torch.Tensor):
        assert value.is_contiguous()
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_long(value)


class Batch:
    """ids, wanted: [tokens]; weight: [tokens], 0 means no loss; begin: the start of each segment, and the end."""

    def __init__(self, ids, wanted, weight, begin):
        self.ids, self.wanted, self.weight, self.begin = ids, wanted, weight, begin
        lengths = begin[1:] - begin[:-1]
        self.position = (torch.arange(len(ids)) - begin[:-1].repeat_interleave(lengths)).int()

    def pieces(self, tokens_max):
        """Splits the batch into batches of whole segments, of about this many tokens each."""
        first, begin = 0, self.begin.tolist()
        for last in range(1, len(begin)):
            if last + 1 == len(begin) or begin[last + 1] - begin[first] > tokens_max:
                part = slice(begin[first], begin[last])
                yield Batch(self.ids[part], self.wanted[part], self.weight[part], self.begin[first : last + 1] - begin[first])
                first = last


class FastStep:
    def __init__(self, weights, threads=2, exact=False):
        self.weights, self.shape = weights, weights.shape
        self.kernels, self.threads = Kernels(threads, exact), threads
        self.pool = ThreadPoolExecutor(threads, initializer=self.kernels.work_alone)
        self.cosine, self.sine = rope_tables(self.shape)

    def forward(self, batch, keep=None):
        """Returns what the head reads, [tokens, width]. `keep` receives what the backward pass needs."""
        w, shape, run = self.weights, self.shape, self.kernels
        tokens, width, heads, groups = len(batch.ids), shape.width, shape.heads, shape.groups
        x, add = w["embedding"][batch.ids], None

        def norm(x, add, gain):
            total, y, inverse = torch.empty(tokens, width), torch.empty(tokens, width), torch.empty(tokens)
            run.norm_forward(x, add, gain, total, y, inverse, tokens, width, shape.epsilon)
            return total, y, inverse

        for i in range(shape.layers):
            x0, h1, r1 = norm(x, add, w.layer(i, "attention_norm"))
            qkv = run.product(h1, w.layer(i, "qkv"), transpose_b=True)
            run.bias_rope_forward(
                qkv, w.layer(i, "qkv_bias"), self.cosine, self.sine, batch.position, tokens, heads, groups
            )
            y, log_sum = torch.empty(tokens, heads * HEAD_DIM), torch.empty(tokens, heads)
            run.attention_forward(qkv, y, log_sum, batch.begin, len(batch.begin) - 1, heads, groups)
            attended = run.product(y, w.layer(i, "attention_out"), transpose_b=True)
            x1, h2, r2 = norm(x0, attended, w.layer(i, "feed_forward_norm"))
            gate_up = run.product(h2, w.layer(i, "gate_up"), transpose_b=True)
            active = torch.empty(tokens, shape.feed_forward)
            run.swiglu_forward(gate_up, active, tokens, shape.feed_forward)
            add, x = run.product(active, w.layer(i, "down"), transpose_b=True), x1
            if keep is not None:
                keep.append((x0, h1, r1, qkv, y, log_sum, x1, h2, r2, gate_up, active))
        last, hidden, inverse = norm(x, add, w["final_norm"])
        if keep is not None:
            keep.append((last, inverse))
        return hidden

    def logits(self, hidden):
        return self.kernels.product(hidden, self.weights["embedding"], transpose_b=True)

    def gradients(self, batch, teacher=None, mix=0.0):
        """Returns (gradients by name, loss and rightness of each position that has weight, those positions)."""
        grads = {name: torch.zeros_like(tensor) for name, tensor in self.weights.tensors.items()}
        chosen = batch.weight.nonzero()[:, 0]
        total = float(batch.weight.sum())
        pieces = list(batch.pieces(PIECE_TOKENS))
        sums = [grads] + [{n: torch.zeros_like(g) for n, g in grads.items()} for _ in range(1, self.threads)]

        def work(place):
            """Takes every n-th piece in each of n threads, so that the sums are the same each time."""
            return [
                self._add_gradients(sums[place], piece, total, teacher, mix) for piece in pieces[place :: self.threads]
            ]

        done = [list(found) for found in self.pool.map(work, range(self.threads))]
        for more in sums[1:]:
            for name, gradient in more.items():
                grads[name] += gradient
        found = [done[i % self.threads][i // self.threads] for i in range(len(pieces))]
        return grads, torch.cat([loss for loss, _ in found]), torch.cat([right for _, right in found]), chosen

    def _add_gradients(self, grads, batch, total, teacher, mix):
        w, shape, run = self.weights, self.shape, self.kernels
        tokens, heads, groups = len(batch.ids), shape.heads, shape.groups
        kept = []
        hidden = self.forward(batch, kept)
        chosen = batch.weight.nonzero()[:, 0]
        read, count = hidden[chosen], len(chosen)
        logits = self.logits(read)
        guide = teacher.logits(teacher.forward(batch)[chosen]) if teacher else None
        loss, right = torch.empty(count), torch.empty(count)
        scale = batch.weight[chosen] / total
        run.cross_entropy(logits, guide, float(mix), batch.wanted[chosen], scale, loss, right, count, shape.vocabulary)

        def add(name, a, b):
            run.product(a, b, transpose_a=True, out=grads[name], add=True)

        add("embedding", logits, read)
        d_hidden = torch.zeros(tokens, shape.width)
        d_hidden[chosen] = run.product(logits, w["embedding"])
        dx = torch.empty(tokens, shape.width)
        last, inverse = kept.pop()
        run.norm_backward(d_hidden, last, w["final_norm"], inverse, dx, grads["final_norm"], tokens, shape.width, 0)
        for i in reversed(range(shape.layers)):
            x0, h1, r1, qkv, y, log_sum, x1, h2, r2, gate_up, active = kept.pop()
            add(f"{i}.down", dx, active)
            d_active = run.product(dx, w.layer(i, "down"))
            d_gate_up = torch.empty(tokens, 2 * shape.feed_forward)
            run.swiglu_backward(d_active, gate_up, d_gate_up, tokens, shape.feed_forward)
            add(f"{i}.gate_up", d_gate_up, h2)
            d_h2 = run.product(d_gate_up, w.layer(i, "gate_up"))
            run.norm_backward(
                d_h2,
                x1,
                w.layer(i, "feed_forward_norm"),
                r2,
                dx,
                grads[f"{i}.feed_forward_norm"],
                tokens,
                shape.width,
                1,
            )
            add(f"{i}.attention_out", dx, y)
            dy = run.product(dx, w.layer(i, "attention_out"))
            d_qkv = torch.empty_like(qkv)
            run.attention_backward(qkv, y, log_sum, dy, d_qkv, batch.begin, len(batch.begin) - 1, heads, groups)
            run.bias_rope_backward(
                d_qkv, grads[f"{i}.qkv_bias"], self.cosine, self.sine, batch.position, tokens, heads, groups
            )
            add(f"{i}.qkv", d_qkv, h1)
            d_h1 = run.product(d_qkv, w.layer(i, "qkv"))
            run.norm_backward(
                d_h1, x0, w.layer(i, "attention_norm"), r1, dx, grads[f"{i}.attention_norm"], tokens, shape.width, 1
            )
        grads["embedding"].index_add_(0, batch.ids, dx)
        return loss, right
