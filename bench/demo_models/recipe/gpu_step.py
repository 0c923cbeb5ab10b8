"""Forward and backward passes by autograd, for a GPU: bf16 products, samples packed one after another without padding.

A batch is filled up to a constant number of tokens, so that each function is compiled once. Attention runs inside each
sample; the first implementation that this torch has and that agrees with the plain one is taken.
"""
import inspect

import torch
import torch.nn.functional as functional

from model import HEAD_DIM, rms_norm, rope_tables, rotate


def plain_attention(q, k, v, begin, _longest):
    """q, k, v: [tokens, heads, HEAD_DIM]; begin: the start of each sample, and the end."""
    found, ends = [], begin.tolist()
    for a, b in zip(ends[:-1], ends[1:]):
        query, key, value = (part[a:b].transpose(0, 1) for part in (q, k, v))
        scores = (query @ key.transpose(-1, -2)).float() * HEAD_DIM**-0.5
        hidden = torch.ones(b - a, b - a, dtype=torch.bool, device=q.device).triu(1)
        found.append((scores.masked_fill(hidden, float("-inf")).softmax(-1).to(v.dtype) @ value).transpose(0, 1))
    return torch.cat(found)


def _variable_length(q, k, v, begin, longest):
    from torch.nn.attention.varlen import varlen_attn

    causal = {"is_causal": True} if "is_causal" in inspect.signature(varlen_attn).parameters else {"window_size": (-1, 0)}
    return varlen_attn(q, k, v, begin, begin, longest, longest, **causal)


def _flash(q, k, v, begin, longest):
    return torch.ops.aten._flash_attention_forward(q, k, v, begin, begin, longest, longest, 0.0, True, False)[0]


def _jagged(q, k, v, begin, longest):
    rows = [
        torch.nested.nested_tensor_from_jagged(part, begin.long(), max_seqlen=longest).transpose(1, 2) for part in (q, k, v)
    ]
    return functional.scaled_dot_product_attention(*rows, is_causal=True).transpose(1, 2).values()


def _padded(q, k, v, begin, longest):
    lengths = (begin[1:] - begin[:-1]).long()
    row = torch.arange(len(lengths), device=q.device).repeat_interleave(lengths)
    place = row * longest + torch.arange(len(q), device=q.device) - begin[:-1].long()[row]
    rows = [
        part.new_zeros(len(lengths) * longest, *part.shape[1:]).index_copy(0, place, part).view(len(lengths), longest, -1, HEAD_DIM)
        for part in (q, k, v)
    ]
    y = functional.scaled_dot_product_attention(*(part.transpose(1, 2) for part in rows), is_causal=True)
    return y.transpose(1, 2).reshape(len(lengths) * longest, -1, HEAD_DIM)[place]


def choose_attention(device, dtype):
    """Returns the first implementation whose result and gradients are those of the plain one."""
    if torch.device(device).type == "cpu":
        return plain_attention
    generator = torch.Generator(device).manual_seed(1)
    begin = torch.tensor([0, 70, 71, 300, 1024], dtype=torch.int32, device=device)
    given = [torch.randn(1024, 4, HEAD_DIM, generator=generator, device=device) for _ in range(4)]

    def outcome(function, kind):
        parts = [part.to(kind).detach().requires_grad_(True) for part in given[:3]]
        y = function(*parts, begin, 724)
        return [y, *torch.autograd.grad((y.float() * given[3]).sum(), parts)]

    wanted = outcome(plain_attention, torch.float32)
    for function in (_variable_length, _flash, _jagged, _padded):
        try:
            found = outcome(function, dtype)
        except Exception as problem:  # whatever this version of torch lacks
            print(f"attention: {function.__name__} cannot be used: {type(problem).__name__}: {str(problem)[:200]}", flush=True)
            continue
        worst = max(float((a - b.float()).norm() / a.norm()) for a, b in zip(wanted, found))
        print(f"attention: {function.__name__}, relative error {worst:.4f}", flush=True)
        if worst < 0.02:
            return function
    return plain_attention


def _before_attention(x, gain, qkv, bias, cosine, sine, epsilon, heads, groups, dtype):
    """Returns q, k, v: [tokens, heads, HEAD_DIM]."""
    y = functional.linear(rms_norm(x, gain, epsilon).to(dtype), qkv.to(dtype)).float() + bias
    q, k, v = y.view(len(x), -1, HEAD_DIM).split([heads, groups, groups], 1)
    q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
    repeat = heads // groups
    return q.to(dtype), k.repeat_interleave(repeat, 1).to(dtype), v.repeat_interleave(repeat, 1).to(dtype)


def _after_attention(x, y, out, gain, gate_up, down, epsilon, dtype):
    x = x + functional.linear(y.reshape(len(x), -1), out.to(dtype)).float()
    gate, up = functional.linear(rms_norm(x, gain, epsilon).to(dtype), gate_up.to(dtype)).chunk(2, -1)
    return x + functional.linear(functional.silu(gate) * up, down.to(dtype)).float()


class GpuStep:
    """The contract of FastStep. `tokens` is what a batch is filled up to; `device` may be "cpu", for tests."""

    def __init__(self, weights, device, tokens, dtype=torch.bfloat16):
        self.weights, self.device, self.tokens, self.dtype = weights.to(device), device, tokens, dtype
        self.cosine, self.sine = rope_tables(weights.shape, device=device)
        self.attention = choose_attention(device, dtype)
        compiled = (lambda f: torch.compile(f, dynamic=False)) if torch.device(device).type != "cpu" else (lambda f: f)
        self.before_attention, self.after_attention = compiled(_before_attention), compiled(_after_attention)
        for tensor in self.weights.tensors.values():
            tensor.requires_grad_(True)

    def _sent(self, *tensors):
        """Returns the tensors on the device; from pinned memory, so that the copy waits for no other work."""
        pinned = self.cosine.is_cuda
        return [(t.pin_memory() if pinned else t).to(self.device, non_blocking=True) for t in tensors]

    def _placed(self, batch):
        """Returns (ids, positions, begin, longest) on the device, with a last sample that fills the batch."""
        if hasattr(batch, "placed"):
            return batch.placed
        missing = max(0, self.tokens - len(batch.ids))
        ids = functional.pad(batch.ids, (0, missing))
        position = torch.cat([batch.position.long(), torch.arange(missing) % self.weights.shape.context])
        fill = list(range(len(batch.ids), len(ids), 1024))[1:] + ([len(ids)] if missing else [])
        begin = torch.cat([batch.begin, torch.tensor(fill, dtype=batch.begin.dtype)]).int()
        longest = int((begin[1:] - begin[:-1]).max())
        batch.placed = self._sent(ids, position, begin) + [longest]
        return batch.placed

    def forward(self, batch):
        """Returns what the head reads, [tokens, width]."""
        ids, position, begin, longest = self._placed(batch)
        w, shape = self.weights, self.weights.shape
        cosine, sine = self.cosine[position], self.sine[position]
        x = functional.embedding(ids, w["embedding"])
        for i in range(shape.layers):
            q, k, v = self.before_attention(
                x,
                w.layer(i, "attention_norm"),
                w.layer(i, "qkv"),
                w.layer(i, "qkv_bias"),
                cosine,
                sine,
                shape.epsilon,
                shape.heads,
                shape.groups,
                self.dtype,
            )
            x = self.after_attention(
                x,
                self.attention(q, k, v, begin, longest),
                w.layer(i, "attention_out"),
                w.layer(i, "feed_forward_norm"),
                w.layer(i, "gate_up"),
                w.layer(i, "down"),
                shape.epsilon,
                self.dtype,
            )
        return rms_norm(x, w["final_norm"], shape.epsilon)[: len(batch.ids)]

    def logits(self, hidden):
        return (hidden.to(self.dtype) @ self.weights["embedding"].to(self.dtype).T).float()

    def gradients(self, batch, teacher=None, mix=0.0):
        """Returns (gradients by name, loss and rightness of each position that has weight, those positions). The tensors
        stay on the device, so that nothing waits for it."""
        chosen = batch.weight.nonzero()[:, 0]
        weight = batch.weight[chosen]
        at, wanted, scale = self._sent(chosen, batch.wanted[chosen], weight / weight.sum())
        logits = self.logits(self.forward(batch)[at])
        loss = functional.cross_entropy(logits, wanted, reduction="none")
        total = (loss * scale).sum()
        if teacher:
            with torch.no_grad():
                guide = teacher.logits(teacher.forward(batch)[at]).softmax(-1)
            total = (1 - mix) * total - mix * ((guide * logits.log_softmax(-1)).sum(-1) * scale).sum()
        names = list(self.weights.tensors)
        grads = dict(zip(names, torch.autograd.grad(total, [self.weights[n] for n in names])))
        return grads, loss.detach(), (logits.detach().argmax(-1) == wanted).float(), chosen
