"""The model: qwen2 (RMS norm, grouped-query attention with biases on queries, keys and values, SwiGLU, tied embedding).

`Weights` are plain tensors by name. The hand-written step (fast_step.py), the portable one below, the decoder and the
GGUF writer share them.
"""
import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as functional

HEAD_DIM = 64


@dataclass
class Shape:
    vocabulary: int = 4096
    width: int = 256
    layers: int = 6
    heads: int = 4
    groups: int = 2
    feed_forward: int = 768
    context: int = 4096
    rope_base: float = 1e6
    epsilon: float = 1e-6

    def as_dict(self):
        return asdict(self)


def tensor_shapes(shape):
    """Returns the size of every tensor by name, in the order of the file."""
    wide, qkv = shape.heads * HEAD_DIM, (shape.heads + 2 * shape.groups) * HEAD_DIM
    sizes = {"embedding": (shape.vocabulary, shape.width), "final_norm": (shape.width,)}
    for i in range(shape.layers):
        sizes[f"{i}.attention_norm"] = (shape.width,)
        sizes[f"{i}.qkv"] = (qkv, shape.width)
        sizes[f"{i}.qkv_bias"] = (qkv,)
        sizes[f"{i}.attention_out"] = (shape.width, wide)
        sizes[f"{i}.feed_forward_norm"] = (shape.width,)
        sizes[f"{i}.gate_up"] = (2 * shape.feed_forward, shape.width)
        sizes[f"{i}.down"] = (shape.width, shape.feed_forward)
    return sizes


class Weights:
    def __init__(self, shape, tensors=None, seed=0):
        self.shape = shape
        self.tensors = tensors if tensors is not None else _random_tensors(shape, seed)

    def __getitem__(self, name):
        return self.tensors[name]

    def layer(self, i, name):
        return self.tensors[f"{i}.{name}"]

    def parameter_count(self):
        return sum(tensor.numel() for tensor in self.tensors.values())

    def to(self, device):
        return Weights(self.shape, {name: tensor.to(device) for name, tensor in self.tensors.items()})


def _random_tensors(shape, seed):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, size in tensor_shapes(shape).items():
        if name.endswith("norm"):
            tensors[name] = torch.ones(size)
        elif name.endswith("bias"):
            tensors[name] = torch.zeros(size)
        else:
            scale = 0.05 if name == "embedding" else size[1] ** -0.5
            if name.endswith(("attention_out", "down")):
                scale *= 0.3 / math.sqrt(2 * shape.layers)
            tensors[name] = torch.randn(size, generator=generator) * scale
    return tensors


def rope_tables(shape, length=None, device="cpu"):
    """cosine, sine: [positions, HEAD_DIM / 2]"""
    half = HEAD_DIM // 2
    frequency = shape.rope_base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(length or shape.context, dtype=torch.float64)[:, None] * frequency[None]
    return angle.cos().float().to(device), angle.sin().float().to(device)


def rotate(x, cosine, sine):
    """x: [..., heads, HEAD_DIM], tables: [..., HEAD_DIM / 2]; pairs are (i, i + HEAD_DIM / 2)."""
    low, high = x.chunk(2, -1)
    cosine, sine = cosine.unsqueeze(-2), sine.unsqueeze(-2)
    return torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)


def rms_norm(x, gain, epsilon):
    x = x.float()
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * gain


def hidden_states(weights, ids, tables, dtype=torch.float32):
    """Returns what the head reads, [rows, tokens, width], with autograd. ids: [rows, tokens], each from position 0."""
    shape = weights.shape
    rows, length = ids.shape
    cosine, sine = tables[0][:length], tables[1][:length]
    x = functional.embedding(ids, weights["embedding"])
    for i in range(shape.layers):
        part = lambda name: weights.layer(i, name).to(dtype)  # noqa: E731
        normed = rms_norm(x, weights.layer(i, "attention_norm"), shape.epsilon).to(dtype)
        qkv = functional.linear(normed, part("qkv"), part("qkv_bias")).view(rows, length, -1, HEAD_DIM)
        q, k, v = qkv.split([shape.heads, shape.groups, shape.groups], 2)
        q, k = rotate(q, cosine, sine).to(dtype), rotate(k, cosine, sine).to(dtype)
        repeat = shape.heads // shape.groups
        q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(repeat, 2), v.repeat_interleave(repeat, 2)))
        if hasattr(functional, "scaled_dot_product_attention"):
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-1, -2)) * HEAD_DIM**-0.5
            hidden = torch.ones(length, length, dtype=torch.bool, device=ids.device).triu(1)
            y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
        x = x + functional.linear(y.transpose(1, 2).reshape(rows, length, -1), part("attention_out")).float()
        normed = rms_norm(x, weights.layer(i, "feed_forward_norm"), shape.epsilon).to(dtype)
        gate, up = functional.linear(normed, part("gate_up")).chunk(2, -1)
        x = x + functional.linear(functional.silu(gate) * up, part("down")).float()
    return rms_norm(x, weights["final_norm"], shape.epsilon)
