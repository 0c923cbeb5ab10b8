"""Batches for training, from shards of samples that any number of other processes make ahead.

A shard depends on (seed, stage, index) alone, so a resumed run continues with the shard at which it stopped.
"""
import ctypes
import os
import signal
from concurrent.futures import ProcessPoolExecutor

import numpy
import torch

import byte_pair
import corpus
import samples
from fast_step import Batch

# The weight in the loss of a token of each kind (samples.PROMPT, COPIED, PLAIN, CHANGED, UNSURE, READ).
LOSS_WEIGHT = numpy.array([0.0, 1.0, 0.2, 3.0, 4.0, 0.7], numpy.float32)
PR_SET_PDEATHSIG = 1
_maker_parts = None


def _start(folder):
    """Prepares a worker process, which reads the corpus once."""
    global _maker_parts
    os.nice(5)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # dies with the trainer, even if that is killed
    tokenizer = byte_pair.Tokenizer.load(os.path.join(folder, "tokenizer.json"))
    files = [f for f in corpus.load(os.path.join(folder, "corpus.json.gz")) if f["role"] == "train"]
    names = samples.identifiers(files, samples.random_module.Random(samples.seed_of("names")))
    _maker_parts = tokenizer, files, names


def _make(seed, mix, token_count):
    tokenizer, files, names = _maker_parts
    return samples.make_shard(samples.SampleMaker(tokenizer, files, names, seed), mix, token_count)


class Feed:
    def __init__(self, folder, seed, workers, ahead=2):
        self.seed, self.ahead = seed, ahead
        self.pool = ProcessPoolExecutor(workers, initializer=_start, initargs=(folder,))
        self.pending = {}

    def shard(self, index, plan):
        """Returns a shard. plan(index) gives its (mix, tokens), or None after the last one."""
        for ahead in range(index, index + 1 + self.ahead):
            wanted = plan(ahead)
            if wanted and ahead not in self.pending:
                self.pending[ahead] = self.pool.submit(_make, samples.seed_of(self.seed, ahead), *wanted)
        return self.pending.pop(index).result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)


def batches(shard, batch_tokens, seed=None):
    """Cuts a shard into batches of samples of similar length, shuffled if a seed is given."""
    tokens, kinds, lengths = shard
    begins = numpy.concatenate([[0], numpy.cumsum(lengths)])
    generator = numpy.random.default_rng(seed)
    order = generator.permutation(len(lengths)) if seed is not None else numpy.arange(len(lengths))
    window = max(1, len(order) // 4)  # lengths are sorted within windows, so that batches of one length are spread out
    order = numpy.concatenate(
        [sorted(order[at : at + window], key=lambda i: lengths[i]) for at in range(0, len(order), window)]
    )
    groups, group, size = [], [], 0
    for index in order:
        if group and size + lengths[index] > batch_tokens:
            groups.append(group)
            group, size = [], 0
        group.append(index)
        size += lengths[index]
    groups.append(group)
    for at in generator.permutation(len(groups)) if seed is not None else range(len(groups)):
        yield _batch(tokens, kinds, begins, groups[at])


def _batch(tokens, kinds, begins, group):
    ids, wanted, weight, marks = [], [], [], []
    for index in group:
        piece, kind = tokens[begins[index] : begins[index + 1]], kinds[begins[index] : begins[index + 1]]
        ids.append(piece[:-1])
        wanted.append(piece[1:])
        weight.append(LOSS_WEIGHT[kind[1:]])
        marks.append(kind[1:])
    begin = torch.tensor(numpy.concatenate([[0], numpy.cumsum([len(p) for p in ids])]))
    join = lambda parts, kind: torch.from_numpy(numpy.concatenate(parts).astype(kind))  # noqa: E731
    batch = Batch(join(ids, numpy.int64), join(wanted, numpy.int64), join(weight, numpy.float32), begin)
    batch.kind = join(marks, numpy.uint8)
    return batch
