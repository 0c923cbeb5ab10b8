"""Greedy decoding in fp32 with a KV cache: the reference that other engines are compared with."""
import torch
import torch.nn.functional as functional

from model import HEAD_DIM, rms_norm, rope_tables, rotate


class Decoder:
    def __init__(self, weights):
        self.weights, self.shape = weights, weights.shape
        self.tables = rope_tables(weights.shape)

    def _extend(self, ids, cache):
        """Returns the hidden states of `ids`, which follow the cached tokens. `cache` has (keys, values) per layer,
        each of them [groups, tokens, HEAD_DIM]."""
        w, shape = self.weights, self.shape
        past = cache[0][0].shape[1] if cache[0] else 0
        count = len(ids)
        cosine, sine = (t[past : past + count] for t in self.tables)
        repeat = shape.heads // shape.groups
        hidden = torch.ones(count, past + count, dtype=torch.bool).triu(past + 1)
        x = w["embedding"][torch.tensor(ids)]
        for i in range(shape.layers):
            normed = rms_norm(x, w.layer(i, "attention_norm"), shape.epsilon)
            qkv = functional.linear(normed, w.layer(i, "qkv"), w.layer(i, "qkv_bias")).view(count, -1, HEAD_DIM)
            q, k, v = qkv.split([shape.heads, shape.groups, shape.groups], 1)
            q, k = rotate(q, cosine, sine).transpose(0, 1), rotate(k, cosine, sine).transpose(0, 1)
            v = v.transpose(0, 1)
            if cache[i]:
                k, v = torch.cat([cache[i][0], k], 1), torch.cat([cache[i][1], v], 1)
            cache[i] = (k, v)
            rows = []
            for head in range(shape.heads):  # batched products are slow in old versions of torch
                scores = (q[head] @ k[head // repeat].T) * HEAD_DIM**-0.5
                rows.append(scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v[head // repeat])
            x = x + functional.linear(torch.cat(rows, -1), w.layer(i, "attention_out"))
            gate, up = functional.linear(
                rms_norm(x, w.layer(i, "feed_forward_norm"), shape.epsilon), w.layer(i, "gate_up")
            ).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up, w.layer(i, "down"))
        return rms_norm(x, w["final_norm"], shape.epsilon)

    @torch.no_grad()
    def logits(self, ids, last_only=False):
        states = self._extend(ids, [None] * self.shape.layers)
        return (states[-1:] if last_only else states) @ self.weights["embedding"].T

    @torch.no_grad()
    def greedy(self, prompt, tokens_max, stops, allowed=None, behind=None):
        """Returns the answer's tokens without the stop token. `allowed(answer, token)` may refuse a token, and the best
        allowed one is taken. `behind(answer)` gives the tokens that the model reads next and that are not part of the
        answer."""
        cache, answer, fresh = [None] * self.shape.layers, [], prompt
        read = len(prompt)
        while len(answer) < tokens_max and read <= self.shape.context:
            row = (self._extend(fresh, cache)[-1:] @ self.weights["embedding"].T)[0]
            token = int(row.argmax())
            if allowed and not allowed(answer, token):
                token = next(t for t in row.argsort(descending=True).tolist() if allowed(answer, t))
            if token in stops:
                break
            answer.append(token)
            fresh = [token] + (behind(answer) if behind else [])
            read += len(fresh)
        return answer
