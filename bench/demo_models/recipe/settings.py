"""The sizes in which a pair can be made. `python3 make_pair.py --size NAME` makes one, from the corpus on."""
from dataclasses import dataclass, field

from model import Shape
from samples import Mix


@dataclass
class Stage:
    """A part of the training."""

    share: float  # the share of the run's tokens
    mixes: list  # shards have these mixes of samples in turn


@dataclass
class Run:
    """How one of the two models is trained."""

    shape: Shape
    tokens: int
    batch_tokens: int = 4096
    matrix_rate: float = 0.006  # the learning rate of Muon
    other_rate: float = 0.0015  # the learning rate of Adam, for embedding, norms and biases
    warm_up_steps: int = 40
    constant_share: float = 0.55  # the share of the run with a constant rate, which then falls linearly to zero
    teacher_mix: float = 0.0  # the share of the teacher's distribution in the loss


@dataclass
class Size:
    vocabulary: int
    tokenizer_characters: int
    target: Run
    draft: Run
    stages: list
    packages: bool = True  # False: only the standard library of this Python
    held_out_edits: int = 600  # a third of them in files of 2,000 characters and more
    held_out_programs: int = 80
    held_out_lines: int = 80
    hand_edits: bool = True  # whether the requests written by hand are measured too
    validation_tokens: int = 40_000
    shard_tokens: int = 100_000
    vector_cases: int = 20
    largest_edit: int = 5000  # the size in characters of the largest files that the evaluation takes
    seed: int = 20261121
    notes: dict = field(default_factory=dict)


def _stages(*rows):
    return [Stage(share, [Mix(low, high, tokens, strange_names=0.35)]) for share, low, high, tokens in rows]


def _pair(vocabulary, context, target, draft):
    shape = lambda layers, wide, heads, groups: Shape(
        vocabulary, 256 if heads <= 4 else heads * 64, layers, heads, groups, wide, context
    )  # noqa: E731
    return shape(*target), shape(*draft)


def _smoke():
    target, draft = _pair(1024, 1024, (3, 256, 4, 2), (3, 256, 4, 2))
    return Size(
        vocabulary=1024,
        tokenizer_characters=150_000,
        target=Run(target, 24_000, 2048, warm_up_steps=3),
        draft=Run(draft, 8_000, 2048, warm_up_steps=2, teacher_mix=0.5),
        stages=_stages((1.0, 60, 300, 512)),
        packages=False,
        held_out_edits=4,
        held_out_programs=2,
        held_out_lines=2,
        hand_edits=False,
        validation_tokens=3_000,
        shard_tokens=16_000,
        vector_cases=4,
        largest_edit=500,
    )


def _quick():
    target, draft = _pair(4096, 2048, (4, 512, 4, 2), (3, 256, 4, 2))
    return Size(
        vocabulary=4096,
        tokenizer_characters=6_000_000,
        target=Run(target, 4_000_000),
        draft=Run(draft, 1_500_000, teacher_mix=0.75),
        stages=_stages((0.7, 80, 450, 640), (0.3, 100, 1500, 1200)),
        largest_edit=2500,
    )


def _demo():
    target, draft = _pair(4096, 4096, (8, 768, 4, 2), (3, 256, 4, 2))
    return Size(
        vocabulary=4096,
        tokenizer_characters=6_000_000,
        target=Run(target, 90_000_000, 8192),
        draft=Run(draft, 30_000_000, 8192, teacher_mix=0.75),
        stages=_stages((0.3, 80, 600, 768), (0.4, 100, 2000, 1600), (0.18, 200, 3500, 2600), (0.12, 500, 5200, 4096)),
        shard_tokens=400_000,
    )


def _more():
    """Continues a finished `demo` pair (--start) with longer files, more programs and half the rate."""
    size = _demo()
    for run in (size.target, size.draft):
        run.matrix_rate, run.other_rate, run.constant_share = 0.003, 0.0008, 0.4
    size.stages = [
        Stage(share, [Mix(low, high, tokens, edit=0.62, program=0.3, plain=0.04, middle=0.04, strange_names=0.25)])
        for share, low, high, tokens in (
            (0.3, 80, 1500, 1400),
            (0.35, 100, 3500, 2600),
            (0.35, 100, 5200, 4096),
        )
    ]
    return size


def _gpu():
    """Trains for minutes on a GPU, with files of all lengths at all times but the first."""
    target, draft = _pair(4096, 6144, (8, 1152, 6, 2), (4, 256, 4, 2))

    def mix(low, high, tokens):
        shares = dict(edit=0.55, program=0.25, plain=0.12, middle=0.08)
        return Mix(low, high, tokens, strange_names=0.25, **shares)

    small, medium, long = mix(60, 1200, 1200), mix(100, 3000, 2600), mix(800, 6600, 6144)
    rates = dict(matrix_rate=0.01, other_rate=0.0025, warm_up_steps=100, constant_share=0.5)
    return Size(
        vocabulary=4096,
        tokenizer_characters=6_000_000,
        target=Run(target, 1_000_000_000, 65_536, **rates),
        draft=Run(draft, 400_000_000, 65_536, teacher_mix=0.75, **rates),
        stages=[Stage(0.1, [mix(60, 700, 800)]), Stage(0.9, [small, medium, long] * 3 + [small])],
        shard_tokens=254_000,
    )


def _words():
    """Continues a finished `gpu` pair (--start) on a CPU: mostly small files as newcomers have them, and requests in
    everyday words."""
    size = _gpu()
    for run in (size.target, size.draft):
        run.batch_tokens, run.matrix_rate, run.other_rate, run.constant_share = 16_384, 0.002, 0.0006, 0.3
        run.warm_up_steps = 40
    size.target.tokens, size.draft.tokens = 60_000_000, 20_000_000

    def mix(low, high, tokens, edit, program, **shares):
        return Mix(low, high, tokens, edit=edit, program=program, plain=0.04, middle=0.04, **shares)

    small = mix(60, 1500, 1300, 0.78, 0.14, small_modules=0.5, drills=0.25, strange_names=0.12)
    medium = mix(200, 3000, 2600, 0.72, 0.2, small_modules=0.3, drills=0.25, strange_names=0.2)
    long = mix(1000, 6000, 5200, 0.6, 0.32, small_modules=0, drills=0.15, strange_names=0.2)
    size.stages = [Stage(1.0, [small, medium, small, long])]
    size.shard_tokens = 200_000
    return size


SIZES = {
    "smoke": _smoke,  # for CI: takes a minute and shows that every step works
    "quick": _quick,  # about an hour on two busy cores: edits of small files
    "demo": _demo,  # two and a half hours on two cores with AMX
    "more": _more,  # starts from a `demo` pair and takes as long as there is time
    "gpu": _gpu,  # ten minutes of a large GPU
    "words": _words,  # starts from a `gpu` pair and takes as long as there is time
}
