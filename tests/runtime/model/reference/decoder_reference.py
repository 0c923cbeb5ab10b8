#!/usr/bin/env python3
"""Writes decoder_logits.txt: logits of thirty-two tiny decoders, computed in float64 from the published definitions.

This script shares no code and no file with the runtime. Weights come from an integer hash that the test repeats, so
that both sides have the same floats: value(tensor, i) = centre + spread * (hash16 / 2^15 - 1), rounded to float32 after
each operation.
Case "qwen2": half-split rotation, biases on Q, K and V, tied head. Case "llama": adjacent pairs, half of each head
rotated, positions scaled linearly by 1/4, frequency divisors, untied head. Case "qwen3": like qwen2 without biases;
every head of Q and K is normalized before it is rotated. Case "gemma": like qwen2 without biases; the embedding is
multiplied by the root of the width, and the gate is GELU in its tanh form.
Case "starcoder2": like qwen2; norms by mean and variance with a shift, GELU without a gate, a bias on every product.
Case "qwen2-yarn": like qwen2, rotated by YaRN's table for four times a context of 64 tokens. Case "granite": like the
mixtral below without experts; the embedding, what layers add, the scores and the logits have multipliers.
The mixtures have six experts, and a token uses the two with the greatest softmax. "qwen3moe" (otherwise like qwen3) and
"mixtral" (otherwise like a llama without the extras above) let the two weights sum to one; "qwen2moe" (otherwise like
qwen2) keeps them and adds an expert for all tokens, weighted by a sigmoid.
In the following three the first layer sees a window of four tokens only. "gemma2": like gemma; the outputs of attention
and the feed-forward part are normalized before they are added; scores and logits are capped by a tanh. "gemma3": like
gemma2 without the caps; heads as in qwen3; the second layer has its own base and positions scaled by 1/8. "gpt-oss":
like qwen3moe, heads as in qwen2; every product has a bias; the gate is a clamped SiLU of slope 1.702, and the other
factor is clamped, plus one; in each head's softmax there is a score that belongs to no token; YaRN's ramp is not
limited to whole pairs.
Case "phi3": like a qwen2 without biases; Q, K and V are one matrix, and so are gate and up; 12 of a head's 16
dimensions rotate; frequencies are divided by LongRoPE's factors for long sequences, and the rotated part is multiplied
by 1.25; the window is five tokens. "phi3-short": with the factors for short sequences.
Case "olmo2": like a qwen2 without biases; all of a row's queries are normalized together before they are rotated, and
so are its keys; attention and the feed-forward part read unnormalized input, and their outputs are normalized before
they are added. "olmo2-windows" (OLMo 3): the first layer sees four tokens; the second is rotated as in qwen2-yarn.
Case "mellum": like qwen3moe; the first layer sees four tokens; the second is rotated as in qwen2-yarn.
Case "mistral3": like mixtral without experts, tied head; rotated by YaRN's table for four times a context of four
tokens, without growth; queries are multiplied by 1 + 0.5 ln(1 + floor(position / 4)).
Case "glm4": like qwen2; adjacent pairs, half of each head rotated; gate and up are one matrix; the outputs of attention
and the feed-forward part are normalized before they are added.
Case "deepseek2": keys and values are computed, head by head, from a normalized vector of 64 numbers, as published and
not as the runtime does it. 32 dimensions of a head's key come from the vector; another 8 are rotated in adjacent pairs
and shared by all heads; a value has 16. The first layer is dense. The second is a mixture of six experts, two of which
a token uses with the softmax's weights times 1.5, and of two experts that all tokens use. "deepseek2-yarn": queries are
computed from such a vector too; the weights sum to one before they are multiplied; YaRN, for four times a context of 64
tokens, scales the scores and not the rotated part.
"deepseek2-sigmoid": like deepseek2; experts are chosen by sigmoids plus a bias, among the three whose two best have the
greater sum; their weights are the sigmoids alone, and sum to one before they are multiplied.
Case "command-r": like mixtral without experts, tied head; norms by mean and variance without a shift; attention and the
feed-forward part read the same norm, and both outputs are added; logits are multiplied by 0.25. "command-r-plus": each
head of Q and K has such a norm with its own weights.
Case "qwen35": the second layer is like one of qwen3, and each head's output is multiplied by sigmoids of as many gates
as it has numbers. The first is a Gated DeltaNet, token by token from the published equations: two heads of queries and
keys, four of values, 32 numbers each; value head h reads key head h mod 2. "qwen35moe": the same with the mixture of
qwen3moe and the expert for all tokens of qwen2moe. "qwen3next": the same, but value head h reads key head h / 2, and
strengths and decays are computed by one matrix with the rows of a key head together.
Case "lfm2": the second layer is like one of qwen3. The first makes three rows of a token: the first and the third are
multiplied, each of the resulting channels is mixed over the last three tokens, and the result is multiplied by the
second. "lfm2moe": the second layer has a mixture of six experts, two of which a token uses; they are chosen by sigmoids
plus a bias, and weighted by the sigmoids alone, which sum to one.
Case "gemma4": four layers; the first and the third see a window of four tokens and have four KV heads of 8 numbers, the
others have two of 16, of whose pairs only the first quarter rotates, by a base of their own; the third reads keys and
values of the first, the fourth those of the second, and both are twice as wide. Values are normalized without weights,
scores are not scaled. A token has 8 more numbers for each layer, which the layer's gate multiplies. "gemma4-moe": two
layers; the second uses its keys, before their norm, as values; beside the dense part is a mixture of six experts, with
norms of its own, a router that reads its own norm, and a factor for each expert.

The script also writes decoder_splices.txt: the logits of the last token after a log was changed in the middle, where
later tokens kept their keys and values. Keys are stored unrotated here, and rotated exactly to their token's current
position when they are read.
"""
import os
import numpy as np

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FEED_FORWARD, VOCABULARY = 2, 64, 4, 2, 16, 96, 300
EXPERTS, USED, EXPERT_WIDTH, SHARED_WIDTH = 6, 2, 32, 64
MIXTURES = ("qwen3moe", "qwen2moe", "mixtral", "gpt-oss", "mellum")
DEEPSEEK2, RANK, PLAIN, ROTATED, VALUE_DIM = ("deepseek2", "deepseek2-yarn", "deepseek2-sigmoid"), 64, 32, 8, 16
WINDOWED, WINDOW = ("gemma2", "gemma3", "gpt-oss", "olmo2-windows", "mellum"), 4
COMMAND_R = ("command-r", "command-r-plus")
OLMO2 = ("olmo2", "olmo2-windows")
PHI3, PHI3_WINDOW, PHI3_ROTARY = ("phi3", "phi3-short"), 5, 12
LONG_FACTORS, SHORT_FACTORS = np.array([1, 1.25, 2, 5, 11, 30]), np.array([1, 1, 1.125, 1.5, 2, 2.5])
GEMMAS = ("gemma", "gemma2", "gemma3")
QWEN35 = ("qwen35", "qwen35moe", "qwen3next")
LFM2 = ("lfm2", "lfm2moe")
GEMMA4 = ("gemma4", "gemma4-moe")
DELTA_KEYS, DELTA_VALUES, DELTA_DIM, TAPS = 2, 4, 32, 4
EPSILON, BASE = 1e-5, 10000.0
TOKENS = [5, 299, 17, 17, 120, 64, 0, 250, 31, 88, 142]


def tensor(number, shape, centre, spread):
    i = np.arange(int(np.prod(shape)), dtype=np.uint64)
    h = (i * np.uint64(2654435761) + np.uint64(number) * np.uint64(40503)) & np.uint64(0xFFFFFFFF)
    h = ((h ^ (h >> np.uint64(15))) * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    h = (h >> np.uint64(16)).astype(np.float32)
    unit = h / np.float32(32768) - np.float32(1)
    return (np.float32(centre) + np.float32(spread) * unit).astype(np.float64).reshape(shape)


def weights(kind):
    llama = kind in ("llama", "granite")
    number = iter(range(1000))
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    matrix = lambda rows, columns, spread=0.25: tensor(next(number), (rows, columns), 0, spread)
    shifted = kind == "starcoder2"
    centred = kind in COMMAND_R
    norm = lambda: (tensor(next(number), (WIDTH,), 1, 0.25), tensor(next(number), (WIDTH,), 0, 0.25) if shifted else 0 if centred else None)
    bias = lambda length: tensor(next(number), (length,), 0, 0.5)
    experts = lambda rows, columns: tensor(next(number), (EXPERTS, rows, columns), 0, 0.25)
    w = {"embedding": matrix(VOCABULARY, WIDTH, 0.5), "norm": norm(), "layers": []}
    for _ in range(LAYERS):
        l = {} if kind in OLMO2 else {"attn_norm": norm()}
        if kind in PHI3:
            l |= dict(zip("qkv", np.split(matrix(q + 2 * kv, WIDTH), [q, q + kv])))
        else:
            l |= {"q": matrix(q, WIDTH), "k": matrix(kv, WIDTH), "v": matrix(kv, WIDTH)}
        l["o"] = matrix(WIDTH, q)
        if kind not in (*OLMO2, *COMMAND_R):
            l["ffn_norm"] = norm()
        if kind in MIXTURES:
            l |= {"router": matrix(EXPERTS, WIDTH), "gates": experts(EXPERT_WIDTH, WIDTH),
                  "ups": experts(EXPERT_WIDTH, WIDTH), "downs": experts(WIDTH, EXPERT_WIDTH)}
            if kind == "qwen2moe":
                l |= {"shared_router": tensor(next(number), (WIDTH,), 0, 0.25), "gate": matrix(SHARED_WIDTH, WIDTH),
                      "up": matrix(SHARED_WIDTH, WIDTH), "down": matrix(WIDTH, SHARED_WIDTH)}
        elif kind in PHI3 or kind == "glm4":
            l |= dict(zip(("gate", "up"), np.split(matrix(2 * FEED_FORWARD, WIDTH), 2)))
            l["down"] = matrix(WIDTH, FEED_FORWARD)
        else:
            if not shifted:
                l["gate"] = matrix(FEED_FORWARD, WIDTH)
            l |= {"up": matrix(FEED_FORWARD, WIDTH), "down": matrix(WIDTH, FEED_FORWARD)}
        if kind in ("gemma2", "gemma3", "glm4", *OLMO2):
            l |= {"attn_post_norm": norm(), "ffn_post_norm": norm()}
        if kind in OLMO2:
            l |= {"all_q": tensor(next(number), (q,), 1, 0.25), "all_k": tensor(next(number), (kv,), 1, 0.25)}
        elif kind == "command-r-plus":
            l |= {"own_q": tensor(next(number), (HEADS, HEAD_DIM), 1, 0.25),
                  "own_k": tensor(next(number), (KV_HEADS, HEAD_DIM), 1, 0.25)}
        elif kind in ("qwen3", "qwen3moe", "gemma3", "mellum"):
            l |= {"qn": tensor(next(number), (HEAD_DIM,), 1, 0.25), "kn": tensor(next(number), (HEAD_DIM,), 1, 0.25)}
        elif kind in ("qwen2", "qwen2-yarn", "qwen2moe", "starcoder2", "gpt-oss", "glm4"):
            l |= {"qb": bias(q), "kb": bias(kv), "vb": bias(kv)}
        if shifted:
            l |= {"ob": bias(WIDTH), "ub": bias(FEED_FORWARD), "db": bias(WIDTH)}
        if kind == "gpt-oss":
            biases = lambda length: tensor(next(number), (EXPERTS, length), 0, 0.5)
            l |= {"ob": bias(WIDTH), "rb": bias(EXPERTS), "gb": biases(EXPERT_WIDTH), "ub": biases(EXPERT_WIDTH),
                  "db": biases(WIDTH), "sinks": tensor(next(number), (HEADS,), 0, 2)}
        w["layers"].append(l)
    w["head"] = matrix(VOCABULARY, WIDTH, 0.5) if llama or kind == "mixtral" else w["embedding"]
    return w


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON) * weight


def norm(x, weight):
    scale, shift = weight
    if shift is None:
        return rms_norm(x, scale)
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + EPSILON) * scale + shift


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + np.exp(-x))


def mixture(l, x, normalise):
    """Computes the mixture token by token, straight from the definition."""
    out = np.zeros_like(x)
    for token, h in enumerate(x):
        p = np.exp(l["router"] @ h)
        p /= p.sum()
        best = np.argsort(-p, kind="stable")[:USED]
        scale = p[best].sum() if normalise else 1
        for e in best:
            out[token] += p[e] / scale * (l["downs"][e] @ (silu(l["gates"][e] @ h) * (l["ups"][e] @ h)))
    return out


def mixture_by_sigmoid(l, x):
    out = np.zeros_like(x)
    for token, h in enumerate(x):
        p = 1 / (1 + np.exp(-(l["router"] @ h)))
        score = p + l["choice"]
        halves = [sorted(range(a, a + 3), key=lambda e: -score[e])[:2] for a in (0, 3)]
        best = max(halves, key=lambda two: score[two].sum())
        for e in best:
            out[token] += p[e] / p[best].sum() * (l["downs"][e] @ (silu(l["gates"][e] @ h) * (l["ups"][e] @ h)))
    return out


def mixture_of_gpt_oss(l, x):
    out = np.zeros_like(x)
    for token, h in enumerate(x):
        scores = l["router"] @ h + l["rb"]
        best = np.argsort(-scores, kind="stable")[:USED]
        p = np.exp(scores[best]) / np.exp(scores[best]).sum()
        for e, share in zip(best, p):
            gate = np.minimum(l["gates"][e] @ h + l["gb"][e], 7)
            up = np.clip(l["ups"][e] @ h + l["ub"][e], -7, 7)
            out[token] += share * (l["downs"][e] @ (gate / (1 + np.exp(-1.702 * gate)) * (up + 1)) + l["db"][e])
    return out


def capped(x, cap):
    return cap * np.tanh(x / cap) if cap else x


def rope_gemma3(x, positions):  # for layers without a window
    half = HEAD_DIM // 2
    angle = positions[:, None] / 8 * 20000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angle)[:, None]
    return np.concatenate([turned.real, turned.imag], -1)


def rope_mixtral(x, positions):  # adjacent pairs, whole heads
    angle = positions[:, None] * BASE ** (-np.arange(HEAD_DIM // 2) * 2 / HEAD_DIM)
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None]
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def rope_yarn(x, positions, factor=4.0, original=64, whole=True):
    """Section 3.2 of the paper: by how often a pair turns within the original context. `whole`: the ramp has whole pairs."""
    half = HEAD_DIM // 2
    frequency = BASE ** (-np.arange(half) / half)
    pair = lambda turns: HEAD_DIM * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(BASE))
    low, high = (np.floor(pair(32)), np.ceil(pair(1))) if whole else (pair(32), pair(1))
    low, high = max(low, 0), min(high, HEAD_DIM - 1)
    ramp = np.clip((np.arange(half) - low) / max(high - low, 0.001), 0, 1)
    angle = positions[:, None] * (frequency * (1 - ramp) + frequency / factor * ramp)
    size = 0.1 * np.log(factor) + 1
    cos, sin = size * np.cos(angle)[:, None], size * np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def rope_mistral3(x, positions, original=4):  # adjacent pairs; by YaRN, which slows by four
    pair = np.arange(HEAD_DIM // 2)
    frequency = BASE ** (-2 * pair / HEAD_DIM)
    of_turns = lambda turns: HEAD_DIM * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(BASE))
    low, high = max(np.floor(of_turns(32)), 0), min(np.ceil(of_turns(1)), HEAD_DIM - 1)
    slowed = np.clip((pair - low) / max(high - low, 0.001), 0, 1)
    angle = positions[:, None] * (frequency * (1 - slowed) + frequency / 4 * slowed)
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None]
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def rope_qwen2(x, positions):  # x: [tokens, heads, dim]; half-split pairs
    half = HEAD_DIM // 2
    angle = positions[:, None] * BASE ** (-np.arange(half) / half)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def rope_llama(x, positions):  # adjacent pairs, as complex numbers; only the first half of the head rotates
    rotary = HEAD_DIM // 2
    divisors = np.array([1.0, 1.5, 2.0, 4.0])
    angle = positions[:, None] / 4 * BASE ** (-np.arange(rotary // 2) * 2 / rotary) / divisors
    turned = (x[..., 0:rotary:2] + 1j * x[..., 1:rotary:2]) * np.exp(1j * angle)[:, None]
    y = x.copy()
    y[..., 0:rotary:2], y[..., 1:rotary:2] = turned.real, turned.imag
    return y


def rope_phi3(x, positions, factors):  # half-split pairs within the rotated part; the rest of the head stays
    half = PHI3_ROTARY // 2
    angle = positions[:, None] * BASE ** (-np.arange(half) / half) / factors
    turned = 1.25 * (x[..., :half] + 1j * x[..., half:2 * half]) * np.exp(1j * angle)[:, None]
    return np.concatenate([turned.real, turned.imag, x[..., 2 * half:]], -1)


def rope_glm4(x, positions):  # adjacent pairs; only the first half of the head rotates
    rotary = HEAD_DIM // 2
    angle = positions[:, None] * BASE ** (-np.arange(0, rotary, 2) / rotary)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b, y = x[..., 0:rotary:2], x[..., 1:rotary:2], x.copy()
    y[..., 0:rotary:2], y[..., 1:rotary:2] = a * cos - b * sin, b * cos + a * sin
    return y


def deepseek2_weights(kind):
    number = iter(range(1000))
    draw = lambda *shape, centre=0, spread=0.25: tensor(next(number), shape, centre, spread)
    ones = lambda length: draw(length, centre=1)
    w = {"embedding": draw(VOCABULARY, WIDTH, spread=0.5), "norm": ones(WIDTH), "layers": []}
    for i in range(LAYERS):
        l = {"attn_norm": ones(WIDTH)}
        queries = HEADS * (PLAIN + ROTATED)
        if kind != "deepseek2-yarn":
            l["q"] = draw(queries, WIDTH)
        else:
            l |= {"q_down": draw(RANK, WIDTH), "q_norm": ones(RANK), "q": draw(queries, RANK)}
        l |= {"down": draw(RANK + ROTATED, WIDTH), "down_norm": ones(RANK),
              "up": draw(HEADS, PLAIN + VALUE_DIM, RANK), "o": draw(WIDTH, HEADS * VALUE_DIM), "ffn_norm": ones(WIDTH)}
        if i == 0:
            l |= {"gate": draw(FEED_FORWARD, WIDTH), "ffn_up": draw(FEED_FORWARD, WIDTH), "ffn_down": draw(WIDTH, FEED_FORWARD)}
        else:
            l |= {"router": draw(EXPERTS, WIDTH), "gates": draw(EXPERTS, EXPERT_WIDTH, WIDTH),
                  "ups": draw(EXPERTS, EXPERT_WIDTH, WIDTH), "downs": draw(EXPERTS, WIDTH, EXPERT_WIDTH),
                  "gate": draw(SHARED_WIDTH, WIDTH), "ffn_up": draw(SHARED_WIDTH, WIDTH), "ffn_down": draw(WIDTH, SHARED_WIDTH)}
            if kind == "deepseek2-sigmoid":
                l["choice"] = draw(EXPERTS, spread=0.5)
        w["layers"].append(l)
    return w


def deepseek2_angles(kind, positions):
    pair = np.arange(ROTATED // 2)
    frequency = BASE ** (-2 * pair / ROTATED)
    if kind == "deepseek2-yarn":
        of_turns = lambda turns: ROTATED * np.log(64 / (turns * 2 * np.pi)) / (2 * np.log(BASE))
        low, high = max(np.floor(of_turns(32)), 0), min(np.ceil(of_turns(1)), ROTATED - 1)
        slowed = np.clip((pair - low) / max(high - low, 0.001), 0, 1)
        frequency = frequency * (1 - slowed) + frequency / 4 * slowed
    return np.exp(1j * positions[:, None] * frequency)[:, None]


def deepseek2_turned(x, angles):  # adjacent pairs
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * angles
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def deepseek2_logits(kind, tokens, cache, at):
    """Every head has its own keys and values, computed from the vectors of all tokens that it sees."""
    w, n = deepseek2_weights(kind), len(tokens)
    cache = cache or Cache()
    positions = at + np.arange(n, dtype=np.float64)
    seen = np.concatenate([cache.positions[:at], positions])
    cache.positions = np.concatenate([seen, cache.positions[at:]])
    scale = (1 + 0.0707 * np.log(4)) ** 2 if kind == "deepseek2-yarn" else 1
    x = w["embedding"][tokens]
    for i, l in enumerate(w["layers"]):
        h = rms_norm(x, l["attn_norm"])
        q = rms_norm(h @ l["q_down"].T, l["q_norm"]) @ l["q"].T if "q_down" in l else h @ l["q"].T
        q = q.reshape(n, HEADS, PLAIN + ROTATED)
        down = h @ l["down"].T
        vector, rotated = rms_norm(down[:, :RANK], l["down_norm"]), down[:, RANK:]
        old_vector, old_rotated = cache.layers[i]
        if len(old_vector) == 0:
            old_vector, old_rotated = np.zeros((0, RANK)), np.zeros((0, ROTATED))
        cache.layers[i] = (np.concatenate([old_vector[:at], vector, old_vector[at:]]),
                           np.concatenate([old_rotated[:at], rotated, old_rotated[at:]]))
        vector, rotated = (t[:at + n] for t in cache.layers[i])
        up = np.einsum("jr,hdr->jhd", vector, l["up"])
        k, v = up[..., :PLAIN], up[..., PLAIN:]
        key_turned = deepseek2_turned(rotated[:, None], deepseek2_angles(kind, seen))
        k = np.concatenate([k, np.repeat(key_turned, HEADS, axis=1)], -1)
        q = np.concatenate([q[..., :PLAIN], deepseek2_turned(q[..., PLAIN:], deepseek2_angles(kind, positions))], -1)
        score = np.einsum("ihd,jhd->hij", q, k) * scale / np.sqrt(PLAIN + ROTATED)
        score[:, ~np.tri(n, at + n, at, dtype=bool)] = -np.inf
        p = np.exp(score)
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ l["o"].T
        h = rms_norm(x, l["ffn_norm"])
        x = x + (silu(h @ l["gate"].T) * (h @ l["ffn_up"].T)) @ l["ffn_down"].T
        if "router" in l:
            x = x + 1.5 * (mixture_by_sigmoid(l, h) if "choice" in l else mixture(l, h, kind == "deepseek2-yarn"))
    return rms_norm(x, w["norm"]) @ w["embedding"].T


def qwen35_weights(kind, with_mtp=False):
    number = iter(range(1000))
    draw = lambda *shape, centre=0, spread=0.25: tensor(next(number), shape, centre, spread)
    ones = lambda length: draw(length, centre=1)
    w = {"embedding": draw(VOCABULARY, WIDTH, spread=0.5), "norm": ones(WIDTH), "layers": []}
    values, channels = DELTA_VALUES * DELTA_DIM, (2 * DELTA_KEYS + DELTA_VALUES) * DELTA_DIM
    for i in range(LAYERS + (1 if with_mtp else 0)):
        l = {"attn_norm": ones(WIDTH)}
        if i == 0:
            l |= {"input": draw(channels, WIDTH), "z": draw(values, WIDTH), "taps": draw(channels, TAPS, spread=0.5)}
            if kind == "qwen3next":
                both = draw(DELTA_KEYS, 2, DELTA_VALUES // DELTA_KEYS, WIDTH)
                l |= {"beta": both[:, 0].reshape(-1, WIDTH), "alpha": both[:, 1].reshape(-1, WIDTH),
                      "key_of": [head * DELTA_KEYS // DELTA_VALUES for head in range(DELTA_VALUES)]}
            else:
                l |= {"alpha": draw(DELTA_VALUES, WIDTH), "beta": draw(DELTA_VALUES, WIDTH),
                      "key_of": [head % DELTA_KEYS for head in range(DELTA_VALUES)]}
            l |= {"dt": draw(DELTA_VALUES, spread=0.5), "a": draw(DELTA_VALUES, centre=-0.5),
                  "state_norm": ones(DELTA_DIM), "o": draw(WIDTH, values)}
        else:
            l |= {"q": draw(HEADS, 2, HEAD_DIM, WIDTH), "k": draw(KV_HEADS * HEAD_DIM, WIDTH),
                  "v": draw(KV_HEADS * HEAD_DIM, WIDTH), "o": draw(WIDTH, HEADS * HEAD_DIM),
                  "qn": ones(HEAD_DIM), "kn": ones(HEAD_DIM)}
        l |= {"ffn_norm": ones(WIDTH)}
        width = FEED_FORWARD
        if kind != "qwen35":
            l |= {"router": draw(EXPERTS, WIDTH), "gates": draw(EXPERTS, EXPERT_WIDTH, WIDTH),
                  "ups": draw(EXPERTS, EXPERT_WIDTH, WIDTH), "downs": draw(EXPERTS, WIDTH, EXPERT_WIDTH),
                  "shared_router": draw(WIDTH)}
            width = SHARED_WIDTH
        w["layers"].append(l | {"gate": draw(width, WIDTH), "up": draw(width, WIDTH), "down": draw(WIDTH, width)})
    if with_mtp:
        w["mtp"] = w["layers"].pop() | {"input": draw(WIDTH, 2 * WIDTH), "embedding_norm": ones(WIDTH),
                                        "state_norm": ones(WIDTH), "output_norm": ones(WIDTH)}
    return w


def delta_net(l, h):
    """The recurrence as published: the state forgets, then learns what it did not know, then is read."""
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    unit = lambda x: x / np.sqrt((x * x).sum() + 1e-6)
    u = np.concatenate([np.zeros((TAPS - 1, len(l["input"]))), h @ l["input"].T])
    out = np.zeros((len(h), DELTA_VALUES, DELTA_DIM))
    states = np.zeros((DELTA_VALUES, DELTA_DIM, DELTA_DIM))
    for t, x in enumerate(h):
        mixed = silu((u[t:t + TAPS] * l["taps"].T).sum(0)).reshape(-1, DELTA_DIM)
        for head in range(DELTA_VALUES):
            q = unit(mixed[l["key_of"][head]]) / np.sqrt(DELTA_DIM)
            k = unit(mixed[DELTA_KEYS + l["key_of"][head]])
            v = mixed[2 * DELTA_KEYS + head]
            s = states[head]
            s *= np.exp(l["a"][head] * np.log1p(np.exp(l["alpha"][head] @ x + l["dt"][head])))
            s += np.outer(k, sigmoid(l["beta"][head] @ x) * (v - s.T @ k))
            out[t, head] = s.T @ q
    z = (h @ l["z"].T).reshape(out.shape)
    return (rms_norm(out, l["state_norm"]) * silu(z)).reshape(len(h), -1) @ l["o"].T


def qwen35_layer(l, x, positions):
    n, h = len(x), rms_norm(x, l["attn_norm"])
    if "taps" in l:
        x = x + delta_net(l, h)
    else:
        q, gate = np.moveaxis(np.einsum("nw,hgdw->nhgd", h, l["q"]), 2, 0)
        k, v = ((h @ l[name].T).reshape(n, KV_HEADS, HEAD_DIM) for name in "kv")
        q, k = rope_qwen2(rms_norm(q, l["qn"]), positions), rope_qwen2(rms_norm(k, l["kn"]), positions)
        seen = attend(q, k, v) / (1 + np.exp(-gate))
        x = x + seen.reshape(n, -1) @ l["o"].T
    h = rms_norm(x, l["ffn_norm"])
    share = 1
    if "router" in l:
        x = x + mixture(l, h, True)
        share = 1 / (1 + np.exp(-(h @ l["shared_router"])))[:, None]
    return x + share * ((silu(h @ l["gate"].T) * (h @ l["up"].T)) @ l["down"].T)


def qwen35_outputs(w, tokens):
    x = w["embedding"][tokens]
    for l in w["layers"]:
        x = qwen35_layer(l, x, np.arange(len(x), dtype=np.float64))
    return rms_norm(x, w["norm"])


def qwen35_logits(kind, tokens):
    w = qwen35_weights(kind)
    return qwen35_outputs(w, tokens) @ w["embedding"].T


def qwen35_drafts(kind, tokens, following):
    """What the MTP layer says after the tokens and each of those that follow. It reads a token and the output before it:
    the model's, and for the tokens that follow, except for the first, its own."""
    w = qwen35_weights(kind, with_mtp=True)
    l, before = w["mtp"], list(qwen35_outputs(w, tokens))
    said = []
    for count in range(1, len(following) + 1):
        read = np.array([*tokens[1:], *following[:count]])
        pairs = np.concatenate([rms_norm(w["embedding"][read], l["embedding_norm"]),
                                rms_norm(np.array(before), l["state_norm"])], axis=1)
        x = qwen35_layer(l, pairs @ l["input"].T, 1 + np.arange(len(read), dtype=np.float64))
        before.append(rms_norm(x[-1], l["output_norm"]))
        said.append(before[-1] @ w["embedding"].T)
    return said


def attend(q, k, v):  # each [tokens, heads, dim], causal
    k, v = (np.repeat(t, HEADS // KV_HEADS, axis=1) for t in (k, v))
    score = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HEAD_DIM)
    score[:, ~np.tri(len(q), dtype=bool)] = -np.inf
    p = np.exp(score)
    p /= p.sum(-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", p, v)


def lfm2_logits(kind, tokens):
    number = iter(range(1000))
    draw = lambda *shape, centre=0, spread=0.25: tensor(next(number), shape, centre, spread)
    ones = lambda length: draw(length, centre=1)
    embedding, last_norm = draw(VOCABULARY, WIDTH, spread=0.5), ones(WIDTH)
    n, x = len(tokens), embedding[tokens]
    positions = np.arange(n, dtype=np.float64)
    for i in range(LAYERS):
        h = rms_norm(x, ones(WIDTH))
        if i == 0:
            first, second, third = np.split(h @ draw(3 * WIDTH, WIDTH).T, 3, axis=1)
            taps = draw(WIDTH, 3, spread=0.5)
            w = np.concatenate([np.zeros((2, WIDTH)), first * third])
            mixed = sum(w[t:t + n] * taps[:, t] for t in range(3))
            x = x + (second * mixed) @ draw(WIDTH, WIDTH).T
        else:
            q, k, v = ((h @ draw(heads * HEAD_DIM, WIDTH).T).reshape(n, heads, HEAD_DIM)
                       for heads in (HEADS, KV_HEADS, KV_HEADS))
            out = draw(WIDTH, HEADS * HEAD_DIM)
            q, k = rope_qwen2(rms_norm(q, ones(HEAD_DIM)), positions), rope_qwen2(rms_norm(k, ones(HEAD_DIM)), positions)
            x = x + attend(q, k, v).reshape(n, -1) @ out.T
        h = rms_norm(x, ones(WIDTH))
        if kind == "lfm2moe" and i == 1:
            router, gates = draw(EXPERTS, WIDTH), draw(EXPERTS, EXPERT_WIDTH, WIDTH)
            ups, downs = draw(EXPERTS, EXPERT_WIDTH, WIDTH), draw(EXPERTS, WIDTH, EXPERT_WIDTH)
            choice = draw(EXPERTS, spread=0.5)
            more = np.zeros_like(x)
            for token, row in enumerate(h):
                p = 1 / (1 + np.exp(-(router @ row)))
                best = np.argsort(-(p + choice), kind="stable")[:USED]
                for e in best:
                    more[token] += p[e] / p[best].sum() * (downs[e] @ (silu(gates[e] @ row) * (ups[e] @ row)))
            x = x + more
        else:
            gate, up = draw(FEED_FORWARD, WIDTH), draw(FEED_FORWARD, WIDTH)
            x = x + (silu(h @ gate.T) * (h @ up.T)) @ draw(WIDTH, FEED_FORWARD).T
    return rms_norm(x, last_norm) @ embedding.T


def gemma4_logits(kind, tokens):
    number = iter(range(1000))
    draw = lambda *shape, centre=0, spread=0.25: tensor(next(number), shape, centre, spread)
    ones = lambda length: draw(length, centre=1)
    moe = kind == "gemma4-moe"
    layers, sharing, size = (2, 0, 0) if moe else (4, 2, 8)
    embedding, last_norm = draw(VOCABULARY, WIDTH, spread=0.5), ones(WIDTH)
    n, x = len(tokens), embedding[tokens] * np.sqrt(WIDTH)
    positions = np.arange(n, dtype=np.float64)
    if size:
        second, projection, of_sum = draw(VOCABULARY, layers * size), draw(layers * size, WIDTH), ones(size)
        projected = rms_norm((x @ projection.T / np.sqrt(WIDTH)).reshape(n, layers, size), of_sum)
        inputs = (projected + second[tokens].reshape(n, layers, size) * np.sqrt(size)) / np.sqrt(2)
    cached = {}
    for i in range(layers):
        windowed, shares = i % 2 == 0, i >= layers - sharing
        dim, kv_heads, base = (HEAD_DIM // 2, HEADS, BASE) if windowed else (HEAD_DIM, KV_HEADS, 1e6)
        pairs = dim // 2
        frequency = np.where(np.arange(pairs) < (pairs if windowed else pairs // 4), base ** (-np.arange(pairs) / pairs), 0)

        def rope(t):
            angle = positions[:, None] * frequency
            turned = (t[..., :pairs] + 1j * t[..., pairs:]) * np.exp(1j * angle)[:, None]
            return np.concatenate([turned.real, turned.imag], -1)

        h = rms_norm(x, ones(WIDTH))
        q = (h @ draw(HEADS * dim, WIDTH).T).reshape(n, HEADS, dim)
        if not shares:
            k = (h @ draw(kv_heads * dim, WIDTH).T).reshape(n, kv_heads, dim)
            v = k if moe and not windowed else (h @ draw(kv_heads * dim, WIDTH).T).reshape(n, kv_heads, dim)
        out = draw(WIDTH, HEADS * dim)
        q = rope(rms_norm(q, ones(dim)))
        if not shares:
            cached[windowed] = rope(rms_norm(k, ones(dim))), rms_norm(v, 1)
        k, v = (np.repeat(t, HEADS // kv_heads, axis=1) for t in cached[windowed])
        score = np.einsum("ihd,jhd->hij", q, k)
        unseen = ~np.tri(n, dtype=bool)
        if windowed:
            unseen |= np.tri(n, n, -WINDOW, dtype=bool)
        score[:, unseen] = -np.inf
        p = np.exp(score - score.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        seen = np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ out.T
        x = x + rms_norm(seen, ones(WIDTH))
        in_norm, out_norm, width = ones(WIDTH), ones(WIDTH), FEED_FORWARD * (2 if shares else 1)
        h = rms_norm(x, in_norm)
        gate, up, down = draw(width, WIDTH), draw(width, WIDTH), draw(WIDTH, width)
        more = (gelu(h @ gate.T) * (h @ up.T)) @ down.T
        if moe:
            more = rms_norm(more, ones(WIDTH))
            expert_norm, expert_post_norm = ones(WIDTH), ones(WIDTH)
            routed, factors = rms_norm(x, ones(WIDTH)) / np.sqrt(WIDTH), ones(EXPERTS)
        if size:
            input_gate, input_projection, input_norm = draw(size, WIDTH), draw(WIDTH, size), ones(WIDTH)
        scale = ones(1)
        if moe:
            router, gates = draw(EXPERTS, WIDTH), draw(EXPERTS, EXPERT_WIDTH, WIDTH)
            ups, downs = draw(EXPERTS, EXPERT_WIDTH, WIDTH), draw(EXPERTS, WIDTH, EXPERT_WIDTH)
            mixed, h = np.zeros_like(x), rms_norm(x, expert_norm)
            for token in range(n):
                p = np.exp(router @ routed[token])
                best = np.argsort(-p, kind="stable")[:USED]
                for e in best:
                    of_expert = downs[e] @ (gelu(gates[e] @ h[token]) * (ups[e] @ h[token]))
                    mixed[token] += p[e] / p[best].sum() * factors[e] * of_expert
            more = more + rms_norm(mixed, expert_post_norm)
        x = x + rms_norm(more, out_norm)
        if size:
            x = x + rms_norm((gelu(x @ input_gate.T) * inputs[:, i]) @ input_projection.T, input_norm)
        x = x * scale
    return 20 * np.tanh(rms_norm(x, last_norm) @ embedding.T / 20)


class Cache:
    """For each layer the unrotated keys and the values, in the log's order, and the positions of the tokens."""

    def __init__(self):
        self.layers = [(np.zeros((0, KV_HEADS, HEAD_DIM)),) * 2 for _ in range(LAYERS)]
        self.positions = np.zeros(0)

    def splice(self, at, removed, shift):
        gone = slice(at, at + removed)
        self.layers = [(np.delete(k, gone, 0), np.delete(v, gone, 0)) for k, v in self.layers]
        self.positions = np.delete(self.positions, gone)
        self.positions[at:] += shift


def logits(kind, tokens=TOKENS, cache=None, at=0):
    """Computes the logits of tokens that follow the first `at` of the cache and attend to those."""
    if kind in LFM2:
        return lfm2_logits(kind, tokens)
    if kind in GEMMA4:
        return gemma4_logits(kind, tokens)
    if kind in QWEN35:
        return qwen35_logits(kind, tokens)
    if kind in DEEPSEEK2:
        return deepseek2_logits(kind, tokens, cache, at)
    llama = kind == "llama"
    w = weights(kind)
    rope = {"llama": rope_llama, "glm4": rope_glm4, "mixtral": rope_mixtral, "granite": rope_mixtral, **dict.fromkeys(COMMAND_R, rope_mixtral),
            "phi3": lambda x, p: rope_phi3(x, p, LONG_FACTORS), "phi3-short": lambda x, p: rope_phi3(x, p, SHORT_FACTORS),
            "qwen2-yarn": rope_yarn, "mistral3": rope_mistral3, "gpt-oss": lambda x, p: rope_yarn(x, p, whole=False)}.get(kind, rope_qwen2)
    score_cap, logit_cap = (3, 15) if kind == "gemma2" else (0, 0)
    granite = kind == "granite"
    embedding, residual, scores, divisor = (12, 0.22, 0.0625, 8) if granite else (1, 1, 1 / np.sqrt(HEAD_DIM), 4 if kind in COMMAND_R else 1)
    n = len(tokens)
    cache = cache or Cache()
    positions = at + np.arange(n, dtype=np.float64)
    seen = np.concatenate([cache.positions[:at], positions])
    cache.positions = np.concatenate([seen, cache.positions[at:]])
    x = w["embedding"][tokens] * (np.sqrt(WIDTH) if kind in GEMMAS else embedding)
    for i, l in enumerate(w["layers"]):
        h = norm(x, l["attn_norm"]) if "attn_norm" in l else x
        q, k = h @ l["q"].T + l.get("qb", 0), h @ l["k"].T + l.get("kb", 0)
        if "all_q" in l:
            q, k = rms_norm(q, l["all_q"]), rms_norm(k, l["all_k"])
        q, k = q.reshape(n, HEADS, HEAD_DIM), k.reshape(n, KV_HEADS, HEAD_DIM)
        v = (h @ l["v"].T + l.get("vb", 0)).reshape(n, KV_HEADS, HEAD_DIM)
        if "own_q" in l:
            q, k = norm(q, (l["own_q"], 0)), norm(k, (l["own_k"], 0))
        if "qn" in l:
            q, k = rms_norm(q, l["qn"]), rms_norm(k, l["kn"])
        old_k, old_v = cache.layers[i]
        cache.layers[i] = (np.concatenate([old_k[:at], k, old_k[at:]]), np.concatenate([old_v[:at], v, old_v[at:]]))
        k, v = (t[:at + n] for t in cache.layers[i])
        turn = {"gemma3": rope_gemma3, "olmo2-windows": rope_yarn, "mellum": rope_yarn}.get(kind, rope) if i == 1 else rope
        q, k = turn(q, positions), turn(k, seen)
        if kind == "mistral3":
            q = q * (1 + 0.5 * np.log(1 + np.floor(positions / 4)))[:, None, None]
        k, v = (np.repeat(t, HEADS // KV_HEADS, axis=1) for t in (k, v))
        score = np.einsum("ihd,jhd->hij", q, k) * scores
        score = capped(score, score_cap)
        unseen = ~np.tri(n, at + n, at, dtype=bool)
        if kind in WINDOWED and i == 0:
            unseen |= np.tri(n, at + n, at - WINDOW, dtype=bool)
        if kind in PHI3:
            unseen |= np.tri(n, at + n, at - PHI3_WINDOW, dtype=bool)
        score[:, unseen] = -np.inf
        p = np.exp(score)
        p /= p.sum(-1, keepdims=True) + (np.exp(l["sinks"])[:, None, None] if "sinks" in l else 0)
        more = residual * (np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ l["o"].T) + l.get("ob", 0)
        x = x + (norm(more, l["attn_post_norm"]) if "attn_post_norm" in l else more)
        if kind not in COMMAND_R:
            h = norm(x, l["ffn_norm"]) if "ffn_norm" in l else x
        if kind == "gpt-oss":
            x = x + mixture_of_gpt_oss(l, h)
            continue
        if kind in MIXTURES:
            x = x + mixture(l, h, kind != "qwen2moe")
            if kind == "qwen2moe":
                share = 1 / (1 + np.exp(-(h @ l["shared_router"])))[:, None]
                x = x + share * ((silu(h @ l["gate"].T) * (h @ l["up"].T)) @ l["down"].T)
            continue
        up = h @ l["up"].T + l.get("ub", 0)
        if kind == "starcoder2":
            active = gelu(up)
        else:
            gate = h @ l["gate"].T
            active = (gelu(gate) if kind in GEMMAS else silu(gate)) * up
        more = residual * (active @ l["down"].T) + l.get("db", 0)
        x = x + (norm(more, l["ffn_post_norm"]) if "ffn_post_norm" in l else more)
    return capped(norm(x, w["norm"]) @ w["head"].T / divisor, logit_cap)


def spliced(kind, at, removed, inserted, moves):
    cache = Cache()
    logits(kind, TOKENS, cache)
    cache.splice(at, removed, len(inserted) - removed if moves else 0)
    if inserted:
        logits(kind, inserted, cache, at)
    return logits(kind, [77], cache, len(cache.positions))[-1]


# A moving window, an edit that moves later tokens, and one that leaves later tokens at wrong positions.
SPLICES = [("evict", 2, 4, [], True), ("pie", 3, 2, [299, 4, 8, 15], True), ("conflict", 3, 2, [299, 4, 8, 15], False)]

here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "decoder_logits.txt"), "w") as out:
    for name in ("qwen2", "llama", "qwen3", "gemma", "starcoder2", "qwen2-yarn", "granite", "gemma2", "gemma3", *MIXTURES, *PHI3, *OLMO2, "glm4", "mistral3", *COMMAND_R, *DEEPSEEK2, *QWEN35, *LFM2, *GEMMA4):
        result = logits(name)
        out.write(f"{name} {len(TOKENS)} " + " ".join(map(str, TOKENS)) + "\n")
        for row in (0, 3, len(TOKENS) - 1):
            out.write(f"{row} " + " ".join(f"{v:.6g}" for v in result[row]) + "\n")
with open(os.path.join(here, "decoder_drafts.txt"), "w") as out:
    for name in QWEN35:
        for count, following in ((11, [33, 250, 7]), (4, [12, 12])):
            out.write(f"{name} {count} " + " ".join(map(str, TOKENS[:count])) + f" {len(following)}\n")
            for token, said in zip(following, qwen35_drafts(name, TOKENS[:count], following)):
                out.write(f"{token} " + " ".join(f"{v:.6g}" for v in said) + "\n")
with open(os.path.join(here, "decoder_splices.txt"), "w") as out:
    for name in ("qwen2", "llama", "qwen2-yarn", *WINDOWED, "phi3", "glm4", "mistral3", "command-r-plus", *DEEPSEEK2):
        for splice, at, removed, inserted, moves in SPLICES:
            out.write(f"{name} {splice} {at} {removed} {len(inserted)} " + " ".join(map(str, inserted)) + "\n")
            out.write(" ".join(f"{v:.6g}" for v in spliced(name, at, removed, inserted, moves)) + "\n")
