"""Writes and reads a model as GGUF (architecture qwen2, matrices F32 or Q8_0) with its tokenizer and chat template."""
import struct

import numpy
import torch

from byte_pair import CONTROL_TOKENS
from model import HEAD_DIM, Shape, Weights, tensor_shapes

UNSIGNED, SIGNED, FLOAT, BOOLEAN, TEXT, LIST = 4, 5, 6, 7, 8, 9  # value types of the format
FORMS = {UNSIGNED: "I", SIGNED: "i", FLOAT: "f", BOOLEAN: "?"}
NORMAL_TOKEN, CONTROL_TOKEN, UNUSED_TOKEN = 1, 3, 5
F32, Q8_0 = 0, 8  # tensor types
FILE_TYPE = {F32: 0, Q8_0: 7}
BLOCK = 32  # weights that share a scale in Q8_0
ALIGNMENT = 32
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def _text(value):
    raw = value.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _value(kind, value):
    if kind == TEXT:
        return _text(value)
    return struct.pack("<" + FORMS[kind], value)


def _entry(key, kind, value, element=None):
    if kind == LIST:
        body = struct.pack("<IQ", element, len(value)) + b"".join(_value(element, v) for v in value)
    else:
        body = _value(kind, value)
    return _text(key) + struct.pack("<I", kind) + body


def _token_kind(token):
    if token in CONTROL_TOKENS:
        return CONTROL_TOKEN
    return UNUSED_TOKEN if token.startswith("<|unused_") else NORMAL_TOKEN


def _blocks(matrix):
    """Returns the Q8_0 scales (f16) and integers of a matrix, [blocks] and [blocks, BLOCK]."""
    rows = matrix.detach().cpu().float().contiguous().numpy().reshape(-1, BLOCK)
    scale = numpy.abs(rows).max(1, keepdims=True) / numpy.float32(127)
    inverse = numpy.divide(1, scale, out=numpy.zeros_like(scale), where=scale > 0)
    return scale.astype(numpy.float16)[:, 0], numpy.rint(rows * inverse).astype(numpy.int8)


def rounded(weights):
    """Returns the same model with its matrices rounded to Q8_0."""
    tensors = {}
    for name, tensor in weights.tensors.items():
        tensors[name] = tensor
        if tensor.dim() == 2:
            scale, integers = _blocks(tensor)
            values = scale.astype(numpy.float32)[:, None] * integers
            tensors[name] = tensor.new_tensor(values.reshape(tensor.shape))
    return Weights(weights.shape, tensors)


def _bytes(tensor, kind):
    if kind == F32:
        return tensor.detach().cpu().float().contiguous().numpy().tobytes()
    scale, integers = _blocks(tensor)
    block = numpy.empty(len(scale), [("scale", "<f2"), ("integers", "i1", BLOCK)])
    block["scale"], block["integers"] = scale, integers
    return block.tobytes()


def _metadata(weights, tokenizer, name, description, kind):
    shape, id_of = weights.shape, tokenizer.id_of
    return [
        _entry("general.architecture", TEXT, "qwen2"),
        _entry("general.name", TEXT, name),
        _entry("general.description", TEXT, description),
        _entry("general.license", TEXT, "MIT"),
        _entry("general.file_type", UNSIGNED, FILE_TYPE[kind]),
        _entry("general.alignment", UNSIGNED, ALIGNMENT),
        _entry("qwen2.context_length", UNSIGNED, shape.context),
        _entry("qwen2.embedding_length", UNSIGNED, shape.width),
        _entry("qwen2.block_count", UNSIGNED, shape.layers),
        _entry("qwen2.feed_forward_length", UNSIGNED, shape.feed_forward),
        _entry("qwen2.attention.head_count", UNSIGNED, shape.heads),
        _entry("qwen2.attention.head_count_kv", UNSIGNED, shape.groups),
        _entry("qwen2.attention.layer_norm_rms_epsilon", FLOAT, shape.epsilon),
        _entry("qwen2.rope.freq_base", FLOAT, shape.rope_base),
        _entry("tokenizer.ggml.model", TEXT, "gpt2"),
        _entry("tokenizer.ggml.pre", TEXT, "qwen2"),
        _entry("tokenizer.ggml.tokens", LIST, tokenizer.tokens, TEXT),
        _entry("tokenizer.ggml.token_type", LIST, [_token_kind(t) for t in tokenizer.tokens], SIGNED),
        _entry("tokenizer.ggml.merges", LIST, tokenizer.merges, TEXT),
        _entry("tokenizer.ggml.eos_token_id", UNSIGNED, id_of["<|im_end|>"]),
        _entry("tokenizer.ggml.padding_token_id", UNSIGNED, id_of["<|endoftext|>"]),
        _entry("tokenizer.ggml.add_bos_token", BOOLEAN, False),
        _entry("tokenizer.ggml.fim_pre_token_id", UNSIGNED, id_of["<|fim_prefix|>"]),
        _entry("tokenizer.ggml.fim_mid_token_id", UNSIGNED, id_of["<|fim_middle|>"]),
        _entry("tokenizer.ggml.fim_suf_token_id", UNSIGNED, id_of["<|fim_suffix|>"]),
        _entry("tokenizer.chat_template", TEXT, CHAT_TEMPLATE),
    ]


def _tensors(weights):
    """Yields (name in the file, tensor). Rotated pairs are half a head apart in qwen2, as in training."""
    shape = weights.shape
    yield "token_embd.weight", weights["embedding"]
    for i in range(shape.layers):
        sizes = [shape.heads * HEAD_DIM, shape.groups * HEAD_DIM, shape.groups * HEAD_DIM]
        yield f"blk.{i}.attn_norm.weight", weights.layer(i, "attention_norm")
        for letter, matrix, bias in zip(
            "qkv", weights.layer(i, "qkv").split(sizes), weights.layer(i, "qkv_bias").split(sizes)
        ):
            yield f"blk.{i}.attn_{letter}.weight", matrix
            yield f"blk.{i}.attn_{letter}.bias", bias
        yield f"blk.{i}.attn_output.weight", weights.layer(i, "attention_out")
        yield f"blk.{i}.ffn_norm.weight", weights.layer(i, "feed_forward_norm")
        gate, up = weights.layer(i, "gate_up").chunk(2)
        yield f"blk.{i}.ffn_gate.weight", gate
        yield f"blk.{i}.ffn_up.weight", up
        yield f"blk.{i}.ffn_down.weight", weights.layer(i, "down")
    yield "output_norm.weight", weights["final_norm"]


def write(path, weights, tokenizer, name, description, kind=F32):
    """Writes the file. `kind` is the type of the matrices; vectors are always F32."""
    entries, tensors = _metadata(weights, tokenizer, name, description, kind), list(_tensors(weights))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries)
    infos, data, offset = [], [], 0
    for label, tensor in tensors:
        stored = kind if tensor.dim() == 2 else F32
        raw = _bytes(tensor, stored)
        sizes = list(reversed(tensor.shape))
        infos.append(_text(label) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, stored, offset))
        raw += b"\0" * (-len(raw) % ALIGNMENT)
        data.append(raw)
        offset += len(raw)
    header += b"".join(infos)
    with open(path, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT))
        file.writelines(data)


class _Reader:
    """Reads files that write() made."""

    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.raw, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        length = self.take("Q")
        self.at += length
        return self.raw[self.at - length : self.at].decode("utf-8")

    def value(self, kind):
        if kind == LIST:
            element, count = self.take("IQ")
            return [self.value(element) for _ in range(count)]
        return self.text() if kind == TEXT else self.take(FORMS[kind])


def _values(raw, sizes, kind):
    count = int(numpy.prod(sizes))
    if kind == F32:
        values = numpy.frombuffer(raw, "<f4", count)
    else:
        assert kind == Q8_0, f"expected a matrix of type {F32} or {Q8_0}, found {kind}"
        block = numpy.frombuffer(raw, [("scale", "<f2"), ("integers", "i1", BLOCK)], count // BLOCK)
        values = block["scale"].astype(numpy.float32)[:, None] * block["integers"]
    return torch.from_numpy(values.reshape(tuple(reversed(sizes))).astype(numpy.float32))


def read(path):
    """Returns (weights, tokens of the vocabulary, merges) of a file that write() made."""
    with open(path, "rb") as file:
        reader = _Reader(file.read())
    magic, version, tensor_count, entry_count = reader.take("4sIQQ")
    assert (magic, version) == (b"GGUF", 3), f"{path}: expected GGUF version 3, found {magic!r} {version}"
    entries = {}
    for _ in range(entry_count):
        key = reader.text()
        entries[key] = reader.value(reader.take("I"))
    architecture = entries.get("general.architecture")
    assert architecture == "qwen2", f"{path}: expected architecture qwen2, found {architecture}"
    infos = []
    for _ in range(tensor_count):
        label, dimensions = reader.text(), reader.take("I")
        infos.append((label, [reader.take("Q") for _ in range(dimensions)], *reader.take("IQ")))
    data = reader.at + -reader.at % ALIGNMENT
    found = {label: _values(memoryview(reader.raw)[data + at :], sizes, kind) for label, sizes, kind, at in infos}
    of = lambda key: entries["qwen2." + key]  # noqa: E731
    shape = Shape(
        *found["token_embd.weight"].shape,
        of("block_count"),
        of("attention.head_count"),
        of("attention.head_count_kv"),
        of("feed_forward_length"),
        of("context_length"),
        of("rope.freq_base"),
        of("attention.layer_norm_rms_epsilon"),
    )
    weights = Weights(shape, {name: torch.empty(size) for name, size in tensor_shapes(shape).items()})
    for label, tensor in _tensors(weights):
        tensor.copy_(found[label])  # a view of the tensor that contains it
    return weights, entries["tokenizer.ggml.tokens"], entries["tokenizer.ggml.merges"]
