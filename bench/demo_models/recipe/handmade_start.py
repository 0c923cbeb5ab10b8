"""Writes a copying circuit into the first three layers by hand; training starts from it instead of from noise.

Copying from earlier text is most of an editor's work, and a small model needs millions of tokens to learn it. The
circuit, with biases for everything that does not depend on the token:

- layer 0: head h attends h + 1 tokens back (query and key are constants, RoPE does the rest) and notes that token;
- layer 1: two heads fetch a hash of four tokens from four and from five positions back;
- layer 2: a head looks for the position where the same eight tokens stood and copies what followed them.

The residual stream is divided into the token's embedding, a slot for each of the four tokens before it, and two slots
for hashes.
"""
import torch

from model import HEAD_DIM

BACK = 4  # how many tokens layer 0 looks back
SLOT, HASH = 24, 32  # widths of a slot for a token and of one for a hash
EMBEDDING_SCALE = (
    0.5  # the scale of the stream and of everything written into it; at .05 the first hundred steps drown the circuit
)
FINAL_GAIN = 0.11 / EMBEDDING_SCALE
MATCH_SHARPNESS, COPY_GAIN = 4.0, 6.0


def _orthogonal(rows, columns, generator):
    tall = torch.randn(max(rows, columns), min(rows, columns), generator=generator)
    basis = torch.linalg.qr(tall)[0]
    return basis if rows >= columns else basis.T


def write_copy_circuit(weights, seed=0):
    shape = weights.shape
    generator = torch.Generator().manual_seed(seed)
    noise = lambda *size: torch.randn(*size, generator=generator)  # noqa: E731
    orthogonal = lambda rows, columns: _orthogonal(rows, columns, generator)  # noqa: E731
    width, heads, groups, half = shape.width, shape.heads, shape.groups, HEAD_DIM // 2
    per_group = heads // groups
    assert heads >= BACK and shape.layers >= 3
    own = width - BACK * SLOT - 2 * HASH  # dimensions of the token's own embedding
    slots = [own + j * SLOT for j in range(BACK)]
    hashes = [own + BACK * SLOT, own + BACK * SLOT + HASH]
    frequency = shape.rope_base ** (-torch.arange(half) / half)

    weights["final_norm"].fill_(FINAL_GAIN)
    weights["embedding"].copy_(noise(shape.vocabulary, width) * EMBEDDING_SCALE)
    weights["embedding"][:, own:] *= 0.05
    for i in range(shape.layers):
        weights.layer(i, "attention_out").mul_(0.1)
        weights.layer(i, "down").mul_(0.1)

    def rows_of(index):
        return slice(index * HEAD_DIM, (index + 1) * HEAD_DIM)

    fast = torch.zeros(HEAD_DIM)  # a constant key, in the pairs that turn fastest
    fast[:6] = 7.5

    def looking_back(distance):
        """Returns the query that matches the constant key best `distance` positions earlier."""
        turn = frequency * distance
        low, high = fast[:half], fast[half:]
        return torch.cat([low * turn.cos() + high * turn.sin(), high * turn.cos() - low * turn.sin()])

    # Layer 0. `up` is what the norm makes of one unit of the stream.
    up = (width / own) ** 0.5
    qkv, bias, out = (weights.layer(0, name) for name in ("qkv", "qkv_bias", "attention_out"))
    compress = orthogonal(SLOT, own)
    qkv[: (heads + groups) * HEAD_DIM].mul_(0.03)
    for g in range(groups):
        bias[rows_of(heads + g)] = fast
        value = qkv[rows_of(heads + groups + g)]
        value.copy_(noise(HEAD_DIM, width) * 0.02)
        value[:SLOT] = 0
        value[:SLOT, :own] = compress
    for h in range(BACK):
        bias[rows_of(h)] = looking_back(h + 1)
        out[:, rows_of(h)] = 0
        out[slots[h] : slots[h] + SLOT, h * HEAD_DIM : h * HEAD_DIM + SLOT] = torch.eye(SLOT) * EMBEDDING_SCALE / up

    # Layer 1: the last group's last two heads fetch hashes.
    up = (width / (own + BACK * SLOT)) ** 0.5
    qkv, bias, out = (weights.layer(1, name) for name in ("qkv", "qkv_bias", "attention_out"))
    mixes = [noise(HASH, SLOT) / (SLOT * BACK) ** 0.5 for _ in range(BACK)]
    group = groups - 1
    qkv[rows_of(heads + group)].mul_(0.03)
    bias[rows_of(heads + group)] = fast
    value = qkv[rows_of(heads + groups + group)]
    value.copy_(noise(HEAD_DIM, width) * 0.02)
    value[:HASH] = 0
    value[:HASH, :own] += mixes[0] @ compress
    for j in range(1, BACK):
        value[:HASH, slots[j - 1] : slots[j - 1] + SLOT] += mixes[j]
    for e in range(2):
        h = heads - 2 + e
        qkv[rows_of(h)].mul_(0.03)
        bias[rows_of(h)] = looking_back(BACK + e)
        out[:, rows_of(h)] = 0
        out[hashes[e] : hashes[e] + HASH, h * HEAD_DIM : h * HEAD_DIM + HASH] = torch.eye(HASH) * EMBEDDING_SCALE / up

    # Layer 2: the first group matches, in the pairs that hardly turn over the context.
    up = 1.0
    qkv, out = weights.layer(2, "qkv"), weights.layer(2, "attention_out")
    slow = [i for i in range(half) if frequency[i] < 1.1e-3]
    places = torch.tensor(slow + [i + half for i in slow])
    query, key = noise(HEAD_DIM, width) * 0.01, noise(HEAD_DIM, width) * 0.01
    codes = [noise(len(places), SLOT) / SLOT**0.5 for _ in range(BACK)]
    hash_code = noise(len(places), HASH) / HASH**0.5
    importance = [1.3, 1.1, 0.9, 0.8]
    query[places, :own] = codes[0] @ compress * importance[0]
    for j in range(BACK):
        key[places, slots[j] : slots[j] + SLOT] = codes[j]
        if j:
            query[places, slots[j - 1] : slots[j - 1] + SLOT] = codes[j] * importance[j]
    query[places, hashes[0] : hashes[0] + HASH] = hash_code * 1.6
    key[places, hashes[1] : hashes[1] + HASH] = hash_code * 1.6
    sharpness = (MATCH_SHARPNESS * 8 / len(places)) ** 0.5 / up
    qkv[rows_of(heads)] = key * sharpness
    copied = orthogonal(HEAD_DIM, own)
    value = qkv[rows_of(heads + groups)]
    value.copy_(noise(HEAD_DIM, width) * 0.01)
    value[:, :own] = copied
    for h in range(per_group):
        qkv[rows_of(h)] = query * sharpness * (1.0 if h == 0 else 0.6)
        out[:, rows_of(h)] = 0
        out[:own, rows_of(h)] = copied.T * (EMBEDDING_SCALE * COPY_GAIN / per_group * (own / HEAD_DIM))
