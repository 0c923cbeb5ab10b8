"""Training of one model: Muon for matrices, Adam for the rest, resumable checkpoints, a log and its plot."""
import json
import math
import os
import sys
import time

import torch

import feed as feed_module
import gguf_file
import plot
import samples
from model import Weights, tensor_shapes
from fast_step import FastStep
from gpu_step import GpuStep, GraphTrainer
from handmade_start import write_copy_circuit

SECONDS_BETWEEN_CHECKS = 300
GPU_SECONDS_BETWEEN_CHECKS = 60


def make_step(weights, threads, device, exact=False, tokens=8192):
    return FastStep(weights, threads, exact) if device == "cpu" else GpuStep(weights, device, tokens)


class Optimizer:
    def __init__(self, step):
        self.weights, self.kernels = step.weights, getattr(step, "kernels", None)
        self.matrices = [n for n, t in self.weights.tensors.items() if t.dim() == 2 and n != "embedding"]
        self.others = [n for n in self.weights.tensors if n not in self.matrices]
        self.moments = {n: torch.zeros_like(t, requires_grad=False) for n, t in self.weights.tensors.items()}
        self.squares = {n: torch.zeros_like(self.weights[n], requires_grad=False) for n in self.others}
        self.count = 0

    def _orthogonal(self, updates):
        """Newton-Schulz: nearly the closest matrices whose singular values are all one. May overwrite its input."""
        wide = [(u.T if u.shape[0] > u.shape[1] else u).contiguous() for u in updates]
        if self.kernels:
            self.kernels.orthogonalise(wide)
        else:
            wide = self._orthogonal_by_shape(wide)
        return [(w.T if u.shape[0] > u.shape[1] else w).float() for u, w in zip(updates, wide)]

    def _orthogonal_by_shape(self, matrices):
        found, shapes = [None] * len(matrices), {}
        for at, matrix in enumerate(matrices):
            shapes.setdefault(tuple(matrix.shape), []).append(at)
        for places in shapes.values():
            for at, matrix in zip(places, self.newton_schulz(torch.stack([matrices[at] for at in places]))):
                found[at] = matrix
        return found

    @staticmethod
    def newton_schulz(update, dtype=torch.bfloat16):
        """update: [..., rows, columns], at most as many rows as columns"""
        x = (update / (update.norm(dim=(-2, -1), keepdim=True) + 1e-7)).to(dtype)
        for _ in range(5):
            a = x @ x.transpose(-1, -2)
            x = 3.4445 * x + (2.0315 * (a @ a) - 4.7750 * a) @ x
        return x

    def _parts(self, name, update):
        shape = self.weights.shape
        if name.endswith("qkv"):
            return update.split([64 * shape.heads, 64 * shape.groups, 64 * shape.groups])
        return update.chunk(2) if name.endswith("gate_up") else [update]

    def rates(self, matrix_rate, other_rate):
        """Counts a step, and returns its rates and the corrections of both moments as `update` reads them."""
        self.count += 1
        return torch.tensor([matrix_rate, other_rate, 1 / (1 - 0.9**self.count), 1 / (1 - 0.95**self.count)])

    @torch.no_grad()
    def update(self, grads, rates):
        """rates: [4], where the weights are"""
        matrix_rate, other_rate, moment_scale, square_scale = rates.unbind()
        parts = []
        for name in self.matrices:
            self.moments[name].lerp_(grads[name], 0.05)
            parts += self._parts(name, grads[name].lerp(self.moments[name], 0.95))
        turned = iter(self._orthogonal(parts))
        for name in self.matrices:
            for part in self._parts(name, self.weights[name]):
                part.sub_(next(turned) * (matrix_rate * max(1.0, part.shape[0] / part.shape[1]) ** 0.5))
        norm = torch.stack([grads[n].norm() for n in self.others]).norm()
        shrink = (1.0 / (norm + 1e-6)).clamp(max=1.0)
        for name in self.others:
            gradient = grads[name] * shrink
            moment, square = self.moments[name], self.squares[name]
            moment.lerp_(gradient, 0.1)
            square.lerp_(gradient * gradient, 0.05)
            self.weights[name].sub_(other_rate * moment_scale * moment / ((square * square_scale).sqrt() + 1e-10))

    def state(self):
        return {"moments": self.moments, "squares": self.squares, "count": self.count}

    def restore(self, state):
        self.count = state["count"]
        for mine, saved in ((self.moments, state["moments"]), (self.squares, state["squares"])):
            for name in mine:
                mine[name].copy_(saved[name])


def save_checkpoint(path, step, **more):
    tensors = {n: t.detach().cpu() for n, t in step.weights.tensors.items()}
    torch.save({"shape": step.weights.shape.as_dict(), "tensors": tensors, **more}, path + ".part")
    os.replace(path + ".part", path)


def load_weights(path):
    from model import Shape

    state = torch.load(path, map_location="cpu")
    return Weights(Shape(**state["shape"]), state["tensors"]), state


@torch.no_grad()
def validate(step, shard, batch_tokens):
    """Returns the loss, and the shares of right tokens and of wholly right answers, given the right text before."""
    loss_sum = right_sum = count = whole = answers = 0
    for batch in feed_module.batches(shard, batch_tokens):
        counted = sum(batch.kind == kind for kind in samples.ANSWERED).bool()
        chosen = counted.nonzero()[:, 0]
        if not len(chosen):
            continue
        hidden = step.forward(batch)
        logits = step.logits(hidden[chosen.to(hidden.device)]).cpu()
        wanted = batch.wanted[chosen]
        loss_sum += float(torch.nn.functional.cross_entropy(logits, wanted, reduction="sum"))
        right = torch.ones(len(batch.ids), dtype=torch.bool)
        right[chosen] = logits.argmax(-1) == wanted
        right_sum += int(right[chosen].sum())
        count += len(chosen)
        for a, b in zip(batch.begin[:-1], batch.begin[1:]):
            if counted[a:b].any():
                answers += 1
                whole += bool(right[a:b].all())
    return {"loss": loss_sum / count, "right": right_sum / count, "whole": whole / answers, "answers": answers}


class Log:
    """Writes a line of JSON for each report, a bar on the terminal, and a plot of all reports."""

    def __init__(self, path, name):
        self.path, self.name, self.rows, self.shown = path, name, [], sys.stderr.isatty()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.rows = [json.loads(line) for line in file]

    def cut(self, tokens):
        """Drops what came after a checkpoint."""
        self.rows = [row for row in self.rows if row["tokens"] <= tokens]
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in self.rows)

    def add(self, **row):
        row = {k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()}
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def bar(self, share, text):
        filled = int(30 * share)
        line = f"{self.name} [{'#' * filled}{'.' * (30 - filled)}] {share:6.1%} {text}"
        print("\r" + line if self.shown else line, end="" if self.shown else "\n", file=sys.stderr, flush=True)

    def plot(self, path):
        points = lambda key: [(r["tokens"] / 1e6, r[key]) for r in self.rows if key in r]  # noqa: E731
        plot.write(
            path,
            {
                "loss": {"training": points("loss"), "held out": points("held_out_loss")},
                "right tokens in answers": {
                    "copied": points("copied"),
                    "changed": points("changed"),
                    "held out": points("held_out_right"),
                },
                "exact match": {"held out": points("held_out_whole")},
            },
            "million tokens",
        )


class Trainer:
    """Steps of training on a CPU; GraphTrainer has the same functions."""

    def __init__(self, step, optimizer, teacher, mix):
        self.step, self.optimizer, self.teacher, self.mix, self.sums = step, optimizer, teacher, mix, 0

    def run(self, batch, matrix_rate, other_rate):
        grads, loss, right, chosen = self.step.gradients(batch, self.teacher, self.mix)
        self.optimizer.update(grads, self.optimizer.rates(matrix_rate, other_rate))
        kinds, weight = batch.kind[chosen], batch.weight[chosen]
        copied, changed = sum(kinds == kind for kind in samples.COPIES).bool().float(), (kinds == samples.CHANGED).float()
        rows = [loss * weight, weight, right * copied, copied, right * changed, changed]
        self.sums = self.sums + torch.stack([row.sum() for row in rows])

    def taken_sums(self):
        """Returns [weighted loss, weight, right copies, copies, right changes, changes] since the last call."""
        found, self.sums = self.sums.tolist(), 0
        return found


def _plan_of(run, stages, shard_tokens, share_of_time):
    """Returns a function index -> (mix, tokens) of a shard, or None. With a clock, a stage begins at its time."""
    shards = max(1, -(-run.tokens // shard_tokens))
    ends, total = [], 0.0
    for stage in stages:
        total += stage.share
        ends.append(total)

    def plan(index):
        if index >= shards:
            return None
        place = max((index + 0.5) / shards, share_of_time())
        stage = next((s for s, end in zip(stages, ends) if place < end), stages[-1])
        return stage.mixes[index % len(stage.mixes)], min(shard_tokens, run.tokens)

    return plan


def rate_factor(run, step_count, share):
    warm = min(1.0, (step_count + 1) / run.warm_up_steps)
    return warm * min(1.0, max(0.01, (1 - share) / (1 - run.constant_share)))


def grown(weights, shape):
    """Returns the same function with as many layers as `shape` has: layers before the last one are doubled, and the
    second of the two adds nothing yet."""
    old, tensors = weights.shape.layers, {name: weights[name].clone() for name in ("embedding", "final_norm")}
    seconds = range(2 * old - 1 - shape.layers, old - 1)
    plan = [(i, share) for i in range(old) for share in ((1.0, 0.0) if i in seconds else (1.0,))]
    for new, (i, share) in enumerate(plan):
        for part in ("attention_norm", "qkv", "qkv_bias", "attention_out", "feed_forward_norm", "gate_up", "down"):
            tensors[f"{new}.{part}"] = weights.layer(i, part) * (share if part in ("attention_out", "down") else 1.0)
    if {name: tuple(tensor.shape) for name, tensor in tensors.items()} != tensor_shapes(shape):
        raise ValueError(f"expected a model that more layers make {shape}, found {weights.shape}")
    return Weights(shape, tensors)


def train(
    name,
    run,
    size,
    folder,
    held_out_shard,
    threads=2,
    device="cpu",
    workers=1,
    teacher=None,
    until=None,
    start=None,
    seconds=None,
    pause=None,
):
    """Trains until run.tokens are seen or the clock reaches `until`, starting from a checkpoint if there is one, or
    else from the GGUF file `start`. With a clock, the learning rate falls with whichever of the two ends first.
    `seconds` ends the training after so long in all, and `pause` stops it after so long to be continued; both count on
    over several runs."""
    checkpoint, log = os.path.join(folder, f"{name}.pt"), Log(os.path.join(folder, f"{name}.log.jsonl"), name)
    torch.set_num_threads(threads)
    if os.path.exists(checkpoint):
        weights, state = load_weights(checkpoint)
    elif start:
        weights, state = grown(gguf_file.read(start)[0], run.shape), None
    else:
        weights, state = Weights(run.shape, seed=samples.seed_of(size.seed, name) % 2**31), None
        write_copy_circuit(weights, seed=samples.seed_of(size.seed, name, "circuit") % 2**31)
    tokens, steps, index, on_cpu = 0, 0, 0, device == "cpu"
    if state:
        tokens, steps, index = state["tokens"], state["steps"], state["shard"]
        log.cut(tokens)
        if state.get("done"):
            return weights
    begun = time.time() - (state.get("seconds", 0.0) if state else 0.0)
    until = begun + seconds if seconds else until
    share_of_time = lambda: (time.time() - begun) / max(1.0, until - begun) if until else 0.0  # noqa: E731
    paused = lambda: pause is not None and time.time() - begun > pause  # noqa: E731
    plan = _plan_of(run, size.stages, size.shard_tokens, share_of_time)
    shards = feed_module.Feed(folder, samples.seed_of(size.seed, name, "data"), workers)
    shards.request(index, plan)  # the makers start while the step is prepared
    step = make_step(weights, threads, device, tokens=run.batch_tokens)
    guide = make_step(teacher, threads, device, tokens=run.batch_tokens) if teacher else None
    optimizer = Optimizer(step)
    if state:
        optimizer.restore(state["optimizer"])
    trainer = (Trainer if on_cpu else GraphTrainer)(step, optimizer, guide, run.teacher_mix)
    last_check, since = time.time(), (time.time(), tokens)

    def save(done):
        save_checkpoint(
            checkpoint,
            step,
            optimizer=optimizer.state(),
            tokens=tokens,
            steps=steps,
            shard=index,
            seconds=time.time() - begun,
            done=done,
        )
        log.plot(os.path.join(folder, f"{name}.svg"))

    def check():
        found = validate(step, held_out_shard, run.batch_tokens)
        log.add(
            tokens=tokens,
            seconds=time.time() - begun,
            held_out_loss=found["loss"],
            held_out_right=found["right"],
            held_out_whole=found["whole"],
            answers=found["answers"],
        )

    check()
    share = tokens / run.tokens
    while share < 1 and plan(index):
        shard = shards.shard(index, plan) if on_cpu else shards.any_shard(index, plan)
        for batch in feed_module.batches(
            shard, run.batch_tokens, samples.seed_of(size.seed, name, index), similar=on_cpu
        ):
            share = max(tokens / run.tokens, share_of_time())
            if share >= 1 or paused():
                break
            factor = rate_factor(run, steps, share)
            trainer.run(batch, run.matrix_rate * factor, run.other_rate * factor)
            tokens, steps = tokens + len(batch.ids), steps + 1
            if steps % 20 == 0 or steps == 1:
                s, now = trainer.taken_sums(), time.time()
                if not math.isfinite(s[0]):
                    raise ArithmeticError(f"{name}: the loss is {s[0]} after {steps} steps; a lower rate may help")
                speed = (tokens - since[1]) / max(1e-3, now - since[0])
                log.add(
                    tokens=tokens,
                    seconds=now - begun,
                    steps=steps,
                    loss=s[0] / max(1.0, s[1]),
                    copied=s[2] / max(1.0, s[3]),
                    changed=s[4] / max(1.0, s[5]),
                    rate=factor,
                    tokens_per_second=speed,
                )
                log.bar(
                    share,
                    f"{tokens / 1e6:.2f} M tokens, loss {s[0] / max(1., s[1]):.3f}, copied {s[2] / max(1., s[3]):.4f}, "
                    f"changed {s[4] / max(1., s[5]):.4f}, {speed:.0f} tokens/s",
                )
                since = now, tokens
        if paused():
            break
        index += 1
        if time.time() - last_check > (SECONDS_BETWEEN_CHECKS if on_cpu else GPU_SECONDS_BETWEEN_CHECKS):
            check()
            save(False)
            last_check = time.time()
    shards.close()
    check()
    save(not paused())
    print(file=sys.stderr)
    return step.weights
