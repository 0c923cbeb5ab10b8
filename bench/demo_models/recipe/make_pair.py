#!/usr/bin/env python3
"""Makes the demonstration pair, from the corpus to files that other engines have checked.

    make_pair.py --size smoke|quick|demo|more|gpu|words --work FOLDER [--redline build/redline] [--until HH:MM] ...

A second run with the same folder continues where the first one stopped. This needs python3-torch, numpy, gcc and
OpenBLAS; packages come through apt-get download (any Debian 12 mirror). The results in FOLDER are demo-target.gguf and
demo-draft.gguf (Q8_0), the same weights as F32 (demo-*-f32.gguf), vectors.json, eval.json, and the logs and plots of
the training.
"""
import argparse
import glob
import json
import os
import sys
import time

os.environ.setdefault("GOMP_SPINCOUNT", "100000")  # 0.1 ms: threads share their CPUs with others

import torch  # noqa: E402

import byte_pair  # noqa: E402
import corpus  # noqa: E402
import evaluate  # noqa: E402
import gguf_file  # noqa: E402
import samples  # noqa: E402
import settings  # noqa: E402
import train  # noqa: E402
import vectors  # noqa: E402
from python_source import NotApplicable  # noqa: E402


MODELS = ("target", "draft")


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=settings.SIZES, default="demo")
    parser.add_argument("--work", required=True, help="folder for everything that is made")
    parser.add_argument(
        "--steps", default="corpus,tokenizer,target,draft,files,vectors,evaluate,check", help="which steps to run"
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        help="JSON Lines whose before, after and prefix_context must not be learnt from (globs)",
    )
    parser.add_argument(
        "--start", metavar="FOLDER", help="go on from the demo-target.gguf and demo-draft.gguf there, with their tokenizer"
    )
    parser.add_argument("--redline", help="the program, to check with")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--workers", type=int, default=1, help="processes that make samples")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--until", help="HH:MM or HH:MM,HH:MM: stop the target's, the draft's training by then, learning rate at zero"
    )
    parser.add_argument(
        "--seconds", help="N or N,N: stop the target's, the draft's training after so long, learning rate at zero"
    )
    parser.add_argument("--pause", type=float, help="stop after so many seconds of a training; the next run continues it")
    options = parser.parse_args()
    for name in ("target", "draft") if options.start else ():
        path = os.path.join(options.start, f"demo-{name}.gguf")
        if not os.path.isfile(path):
            parser.error(f"--start: expected a folder with demo-target.gguf and demo-draft.gguf, found no {path}")
    return options


class Pair:
    def __init__(self, options):
        self.options, self.size = options, settings.SIZES[options.size]()
        self.until = dict(zip(MODELS, map(_clock, options.until.split(",")))) if options.until else {}
        self.seconds = dict(zip(MODELS, map(float, options.seconds.split(",")))) if options.seconds else {}
        os.makedirs(options.work, exist_ok=True)

    def path(self, name):
        return os.path.join(self.options.work, name)

    def files(self, role):
        return [f for f in corpus.load(self.path("corpus.json.gz")) if f["role"] == role]

    def tokenizer(self):
        return byte_pair.Tokenizer.load(self.path("tokenizer.json"))

    def held_out_maker(self, *part):
        files = self.files("held_out")
        names = samples.identifiers(files, samples.random_module.Random(samples.seed_of("held-out names")))
        return samples.SampleMaker(self.tokenizer(), files, names, samples.seed_of(self.size.seed, *part))

    def make_corpus(self):
        if os.path.exists(self.path("corpus.json.gz")):
            return
        exclude = sorted(path for pattern in self.options.exclude for path in glob.glob(pattern))
        files, dropped = (
            corpus.from_packages(self.path("packages"), exclude)
            if self.size.packages
            else corpus.from_standard_library(exclude)
        )
        corpus.save(files, self.path("corpus.json.gz"))
        characters = {role: sum(len(f["text"]) for f in files if f["role"] == role) for role in ("train", "held_out")}
        say(
            f"corpus: {len(files)} files, {characters} characters, {dropped} files dropped as shared with what must not be learnt"
        )

    def make_tokenizer(self):
        if os.path.exists(self.path("tokenizer.json")):
            return
        if self.options.start:
            _, tokens, merges = gguf_file.read(os.path.join(self.options.start, "demo-target.gguf"))
            with open(self.path("tokenizer.json"), "w", encoding="utf-8") as file:
                json.dump({"tokens": tokens, "merges": merges}, file)
            return
        files, random = self.files("train"), samples.random_module.Random(samples.seed_of(self.size.seed, "tokenizer"))
        random.shuffle(files)
        texts, total = [], 0
        for file in files:
            texts.append(file["text"][:20_000])
            total += len(texts[-1])
            if total > self.size.tokenizer_characters:
                break
        maker = samples.SampleMaker(
            _NoTokenizer(), files, samples.identifiers(files, random), samples.seed_of(self.size.seed, "instructions")
        )
        texts += _example_prompts(maker, max(50, total // 3000))
        with open(self.path("tokenizer.json"), "w", encoding="utf-8") as file:
            json.dump(byte_pair.train(texts, self.size.vocabulary), file)
        sample = "".join(file["text"] for file in files[-20:])
        ids = self.tokenizer().encode_text(sample)
        assert self.tokenizer().decode(ids) == sample
        say(f"tokenizer: {self.size.vocabulary} tokens, {len(sample) / len(ids):.2f} characters of code each")

    def train_model(self, name, run, teacher=None):
        mix = samples.Mix(100, min(800, self.size.largest_edit), 1024, edit=0.8, program=0.2, plain=0, middle=0)
        held_out = samples.make_shard(self.held_out_maker("validation"), mix, self.size.validation_tokens)
        o = self.options
        return train.train(
            name,
            run,
            self.size,
            o.work,
            held_out,
            o.threads,
            o.device,
            o.workers,
            teacher,
            self.until.get(name),
            os.path.join(o.start, f"demo-{name}.gguf") if o.start else None,
            self.seconds.get(name),
            o.pause,
        )

    def make_target(self):
        self.train_model("target", self.size.target)

    def make_draft(self):
        self.train_model("draft", self.size.draft, train.load_weights(self.path("target.pt"))[0])

    def trained(self, name):
        """Returns the model as rounded to Q8_0, and how many tokens it has seen: from the checkpoint or, where the training
        was on another machine, from the files that came back."""
        if os.path.exists(self.path(f"{name}.pt")):
            weights, state = train.load_weights(self.path(f"{name}.pt"))
            return gguf_file.rounded(weights), state["tokens"]
        with open(self.path(f"{name}.log.jsonl"), encoding="utf-8") as log:
            return gguf_file.read(self.path(f"demo-{name}.gguf"))[0], json.loads(log.readlines()[-1])["tokens"]

    def make_files(self):
        for name in MODELS:
            if not os.path.exists(self.path(f"{name}.log.jsonl")):
                say(f"{name} is not trained yet")
                continue
            weights, tokens = self.trained(name)
            description = (
                f"Small model for demonstrations and tests: simple edits of Python files. {weights.parameter_count()} parameters, "
                f"{tokens / 1e6:.1f} million training tokens."
            )
            for path, kind in ((f"demo-{name}.gguf", gguf_file.Q8_0), (f"demo-{name}-f32.gguf", gguf_file.F32)):
                gguf_file.write(
                    self.path(path), weights, self.tokenizer(), f"Redline demo {name}", description, kind
                )
        sizes = [f"{os.path.basename(p)} {os.path.getsize(p) / 1e6:.1f} MB" for p in sorted(glob.glob(self.path("*.gguf")))]
        say("written: " + ", ".join(sizes))

    def make_vectors(self):
        target, draft = (self.trained(name)[0] for name in MODELS)
        found = vectors.make(target, draft, self.held_out_maker("vectors"), self.size.vector_cases)
        vectors.save(found, self.path("vectors.json"))

    def evaluate(self):
        (target, target_tokens), (draft, draft_tokens) = self.trained("target"), self.trained("draft")
        step = train.make_step(target, self.options.threads, "cpu", exact=True)
        files = self.files("held_out")
        names = samples.identifiers(files, samples.random_module.Random(samples.seed_of("held-out names")))
        found = evaluate.measure(step, draft, self.tokenizer(), files, names, self.size)
        found["trained_tokens"] = {"target": target_tokens, "draft": draft_tokens}
        with open(self.path("eval.json"), "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
        say(
            f"edits {found['edits']['all']}, programs {found['copy_programs']}, next line {found['next_line']}, draft {found['draft_agreement']}"
        )

    def make_edits(self):
        """Writes the held-out edits whose programs `evaluate` measures, for `redline-bench copy --edits`."""
        size = self.size
        tasks = evaluate.draw_tasks(
            self.held_out_maker("evaluation", "programs"),
            size.held_out_programs,
            120,
            min(1500, size.largest_edit),
            size.target.shape.context,
            program=True,
        )
        with open(self.path("edits.jsonl"), "w", encoding="utf-8") as file:
            for number, task in enumerate(tasks):
                row = {"id": f"held-out-{number}", "path": "file.py"}
                file.write(json.dumps({**row, **{key: task[key] for key in ("instruction", "before", "after")}}) + "\n")

    def check(self):
        if not self.options.redline:
            say("no --redline: the files were not checked")
            return
        problems = [
            f"{name} {problem}"
            for name in ("target", "draft")
            for file in (f"demo-{name}.gguf", f"demo-{name}-f32.gguf")
            for problem in vectors.check_with_redline(
                self.options.redline, self.path(file), name, self.path("vectors.json")
            )
        ]
        if problems:
            sys.exit("redline disagrees with the reference:\n" + "\n".join(problems))
        say(f"redline gives the reference's tokens for all {self.size.vector_cases} prompts, both models")


class _NoTokenizer:
    """A stand-in for drawing tasks before there is a tokenizer."""


def _example_prompts(maker, count):
    texts, mix = [], samples.Mix(100, 600)
    for number in range(count * 3):
        if len(texts) >= count:
            break
        try:
            instruction, before, after, _ = maker.edit_task(mix)
        except NotApplicable:
            continue
        program = samples.copy_programs.shortest(before, after)
        texts += (
            [instruction, samples.program_message(instruction, before) + program] if number % 3 == 0 else [instruction]
        )
    return texts


def _clock(text):
    now = time.localtime()
    hour, minute = map(int, text.split(":"))
    when = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, hour, minute, 0, 0, 0, -1))
    return when if when > time.time() - 3600 else when + 86_400


def main():
    options = parse_arguments()
    pair = Pair(options)
    steps = {
        "corpus": pair.make_corpus,
        "tokenizer": pair.make_tokenizer,
        "target": pair.make_target,
        "draft": pair.make_draft,
        "files": pair.make_files,
        "vectors": pair.make_vectors,
        "evaluate": pair.evaluate,
        "edits": pair.make_edits,
        "check": pair.check,
    }
    for name in options.steps.split(","):
        say(f"step: {name}")
        steps[name]()


if __name__ == "__main__":
    main()
