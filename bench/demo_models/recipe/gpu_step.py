"""Forward and backward passes by autograd, for a GPU: bf16 products, samples packed one after another without padding.

A batch is filled up to a constant number of tokens, so that each function is compiled once and a whole step, with the
optimizer, is one graph of kernels that the CPU starts at once. Attention runs inside each sample; the first
implementation that this torch has and that agrees with the plain one is taken.
"""
import inspect

import torch
import torch.nn.functional as functional

import samples
from model import HEAD_DIM, rms_norm, rope_tables, rotate


def plain_attention(q, k, v, begin, _longest):
    """q, k, v: [tokens, heads, HEAD_DIM]; begin: the start of each sample, and the end."""
    found, ends = [], begin.tolist()
    for a, b in zip(ends[:-1], ends[1:]):
        if a == b:
            continue
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
    begin = torch.tensor([0, 70, 71, 300, 1024, 1024, 1024], dtype=torch.int32, device=device)
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


def _embedded(ids, embedding):
    return functional.embedding(ids, embedding)


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


def _logits(x, gain, embedding, chosen, epsilon, dtype):
    return (rms_norm(x, gain, epsilon).index_select(0, chosen).to(dtype) @ embedding.to(dtype).T).float()


def _losses(logits, wanted, scale, guide, mix):
    """Returns the loss of the batch, and loss and rightness of each chosen position. guide: logits of a teacher, or None."""
    loss = functional.cross_entropy(logits, wanted.long(), reduction="none")
    total = (loss * scale).sum()
    if guide is not None:
        total = (1 - mix) * total - mix * ((guide.softmax(-1) * logits.log_softmax(-1)).sum(-1) * scale).sum()
    return total, loss, (logits.argmax(-1) == wanted).float()


class Parts:
    """The inputs of a step, as parts of one buffer of 32-bit words that a single copy sends."""

    def __init__(self, buffer, tokens):
        self.buffer, at = buffer, 0
        chosen = Parts.chosen_max(tokens)
        for name, count, kind in (
            ("ids", tokens, torch.int32),
            ("position", tokens, torch.int32),
            ("begin", tokens + 2, torch.int32),  # the start of each sample, and the end as often as there is space
            ("chosen", chosen, torch.int32),  # where there is loss; the rest of each of these is zero
            ("wanted", chosen, torch.int32),
            ("weight", chosen, torch.float32),
            ("scale", chosen, torch.float32),
            ("copied", chosen, torch.float32),
            ("changed", chosen, torch.float32),
            ("rates", RATES, torch.float32),
        ):
            setattr(self, name, buffer[at : at + count].view(kind))
            at += count
        self.size = at

    @staticmethod
    def chosen_max(tokens):
        """Returns how many positions of a batch may have loss. Half of the tokens of samples are prompts."""
        return tokens * 5 // 8

    @classmethod
    def empty(cls, tokens, device, pinned=False):
        size = 3 * tokens + 2 + 6 * cls.chosen_max(tokens) + RATES
        return cls(torch.zeros(size, dtype=torch.int32, device=device, pin_memory=pinned), tokens)


RATES = 4
FILLER_TOKENS = 1024


def _power_of_two(least, number):
    return max(least, 1 << (number - 1).bit_length())


class GpuStep:
    """The contract of FastStep. `tokens` is what a batch is filled up to; `device` may be "cpu", for tests."""

    def __init__(self, weights, device, tokens, dtype=torch.bfloat16):
        self.weights, self.device, self.tokens, self.dtype = weights.to(device), device, tokens, dtype
        self.cosine, self.sine = rope_tables(weights.shape, device=device)
        self.attention = choose_attention(device, dtype)
        compiled = (lambda f: torch.compile(f, dynamic=False)) if torch.device(device).type != "cpu" else (lambda f: f)
        self.embedded, self.before_attention, self.after_attention = map(
            compiled, (_embedded, _before_attention, _after_attention)
        )
        self.chosen_logits, self.losses = compiled(_logits), compiled(_losses)
        for tensor in self.weights.tensors.values():
            tensor.requires_grad_(True)

    def packed(self, batch, rates=None):
        """Returns (Parts in pinned memory, how many samples there are, the longest one's tokens), with last samples that
        fill the batch."""
        parts, count = Parts.empty(self.tokens, "cpu", self.cosine.is_cuda), len(batch.ids)
        parts.ids[:count] = batch.ids
        parts.position[:count] = batch.position
        parts.position[count:] = torch.arange(self.tokens - count) % FILLER_TOKENS
        fill = list(range(count, self.tokens, FILLER_TOKENS))[1:] + ([self.tokens] if count < self.tokens else [])
        begin = torch.cat([batch.begin, torch.tensor(fill, dtype=batch.begin.dtype)])
        parts.begin.fill_(self.tokens)
        parts.begin[: len(begin)] = begin
        chosen = batch.weight.nonzero()[: len(parts.chosen), 0]
        weight = batch.weight[chosen]
        marked = {"chosen": chosen, "wanted": batch.wanted[chosen], "weight": weight, "scale": weight / weight.sum()}
        if hasattr(batch, "kind"):
            kinds = batch.kind[chosen]
            marked["copied"] = sum(kinds == kind for kind in samples.COPIES).bool()
            marked["changed"] = kinds == samples.CHANGED
        for name, values in marked.items():
            getattr(parts, name)[: len(chosen)] = values
        if rates is not None:
            parts.rates[:] = rates
        return parts, len(begin) - 1, int((begin[1:] - begin[:-1]).max())

    def sent(self, batch):
        parts, count, longest = self.packed(batch)
        return Parts(parts.buffer.to(self.device, non_blocking=True), self.tokens), count, longest

    def stream(self, parts, count, longest):
        """Returns what the last layer gives, [tokens, width]. There may be fewer than `count` samples."""
        w, shape = self.weights, self.weights.shape
        begin = parts.begin[: count + 1]
        cosine, sine = self.cosine.index_select(0, parts.position), self.sine.index_select(0, parts.position)
        x = self.embedded(parts.ids, w["embedding"])
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
        return x

    def forward(self, batch):
        """Returns what the head reads, [tokens, width]."""
        with torch.enable_grad():  # a function is compiled once for both
            x = self.stream(*self.sent(batch)).detach()
        return rms_norm(x, self.weights["final_norm"].detach(), self.weights.shape.epsilon)[: len(batch.ids)]

    def logits(self, hidden):
        return (hidden.to(self.dtype) @ self.weights["embedding"].detach().to(self.dtype).T).float()

    def logits_at(self, parts, count, longest):
        """Returns logits of the chosen positions."""
        w, x = self.weights, self.stream(parts, count, longest)
        return self.chosen_logits(x, w["final_norm"], w["embedding"], parts.chosen, w.shape.epsilon, self.dtype)

    def losses_and_gradients(self, parts, count, longest, teacher=None, mix=0.0):
        """Returns (gradients by name, loss and rightness of each chosen position)."""
        guide = None
        if teacher:
            with torch.no_grad():
                guide = teacher.logits_at(parts, count, longest)
        logits = self.logits_at(parts, count, longest)
        total, loss, right = self.losses(logits, parts.wanted, parts.scale, guide, mix)
        names = list(self.weights.tensors)
        grads = torch.autograd.grad(total, [self.weights[n] for n in names])
        return dict(zip(names, grads)), loss.detach(), right

    def gradients(self, batch, teacher=None, mix=0.0):
        """Returns (gradients by name, loss and rightness of each position that has weight, those positions)."""
        grads, loss, right = self.losses_and_gradients(*self.sent(batch), teacher, mix)
        chosen = batch.weight.nonzero()[: len(loss), 0]
        return grads, loss[: len(chosen)], right[: len(chosen)], chosen


class GraphTrainer:
    """Steps of training as graphs of kernels: one for each rounded number of samples and length of the longest. The first
    steps run without, since functions are compiled by them."""

    STEPS_BEFORE = 3

    def __init__(self, step, optimizer, teacher=None, mix=0.0):
        self.step, self.optimizer, self.teacher, self.mix = step, optimizer, teacher, mix
        self.parts = Parts.empty(step.tokens, step.device)
        self.sums = torch.zeros(6, device=step.device)
        self.steps, self.graphs, self.uses_graphs = 0, {}, self.sums.is_cuda
        self.pool = torch.cuda.graph_pool_handle() if self.uses_graphs else None

    def _step(self, count, longest):
        parts = self.parts
        grads, loss, right = self.step.losses_and_gradients(parts, count, longest, self.teacher, self.mix)
        self.optimizer.update(grads, parts.rates)
        rows = [loss * parts.weight, parts.weight, right * parts.copied, parts.copied, right * parts.changed, parts.changed]
        self.sums.add_(torch.stack([row.sum() for row in rows]))

    def _graph(self, shape):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self._step(*shape)
        return graph

    def run(self, batch, matrix_rate, other_rate):
        packed, count, longest = self.step.packed(batch, self.optimizer.rates(matrix_rate, other_rate))
        self.parts.buffer.copy_(packed.buffer, non_blocking=True)
        shape = _power_of_two(64, count), _power_of_two(1024, longest)
        self.steps += 1
        if self.uses_graphs and self.steps > self.STEPS_BEFORE and shape not in self.graphs:
            try:
                self.graphs[shape] = self._graph(shape)
                print(f"a graph of kernels for up to {shape[0]} samples of up to {shape[1]} tokens", flush=True)
            except Exception as problem:  # whatever this version of torch cannot record
                print(f"steps run without graphs: {type(problem).__name__}: {str(problem)[:500]}", flush=True)
                self.uses_graphs = False
        if self.uses_graphs and shape in self.graphs:
            self.graphs[shape].replay()
        else:
            self._step(*shape)

    def taken_sums(self):
        """Returns [weighted loss, weight, right copies, copies, right changes, changes] since the last call."""
        found = self.sums.tolist()
        self.sums.zero_()
        return found
