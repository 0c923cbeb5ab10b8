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

# The weight in the loss of a token of each kind, by how often such a token is the first wrong one of an answer.
LOSS_WEIGHT = numpy.zeros(10, numpy.float32)
for _kind, _weight in {
    samples.COPIED: 1,
    samples.PLAIN: 0.5,
    samples.CHANGED: 3,
    samples.UNSURE: 3,
    samples.TIED: 6,
    samples.LEAVING: 8,
    samples.RESUMING: 6,
    samples.READ: 1,
    samples.READ_FIRST: 4,
}.items():
    LOSS_WEIGHT[_kind] = _weight
PR_SET_PDEATHSIG = 1
RECENT_SHARDS = 40  # how many a trainer keeps that may take shards again
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
        self.seed, self.ahead = seed, max(ahead, 2 * workers)
        self.recent, self.next_index, self.random = [], None, samples.random_module.Random(seed)
        self.pool = ProcessPoolExecutor(workers, initializer=_start, initargs=(folder,))
        self.pending = {}

    def request(self, index, plan):
        """Has shards made from `index` on. plan(index) gives their (mix, tokens), or None after the last one."""
        for ahead in range(index, index + 1 + self.ahead):
            wanted = plan(ahead)
            if wanted and ahead not in self.pending:
                self.pending[ahead] = self.pool.submit(_make, samples.seed_of(self.seed, ahead), *wanted)

    def shard(self, index, plan):
        """Returns the shard of that index."""
        self.request(index, plan)
        return self.pending.pop(index).result()

    def any_shard(self, index, plan):
        """Returns whichever shard is ready, for a trainer that is faster than the makers of samples. Where none is, one of
        the last ones comes again."""
        self.next_index = self.next_index or 1 + max(self.pending, default=index - 1)
        while len(self.pending) <= self.ahead and plan(self.next_index):
            self.request(self.next_index, lambda at: plan(at) if at == self.next_index else None)
            self.next_index += 1
        ready = [at for at, shard in self.pending.items() if shard.done()]
        if not ready and self.recent:
            least = min(self.recent, key=lambda entry: entry[0])
            least[0] += 1 + 0.1 * self.random.random()
            return least[1]
        at = min(ready or self.pending)
        shard = self.pending.pop(at).result()
        self.recent = self.recent[-RECENT_SHARDS:] + [[1.0, shard]]
        return shard

    def close(self):
        self.pool.shutdown(cancel_futures=True)


def batches(shard, batch_tokens, seed=None, similar=True):
    """Cuts a shard into batches, of samples of similar length unless told otherwise, shuffled if a seed is given."""
    tokens, kinds, lengths = shard
    begins = numpy.concatenate([[0], numpy.cumsum(lengths)])
    generator = numpy.random.default_rng(seed)
    order = generator.permutation(len(lengths)) if seed is not None else numpy.arange(len(lengths))
    window = max(1, len(order) // 4) if similar else 1  # lengths are sorted within windows, so that batches of one length are spread out
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
