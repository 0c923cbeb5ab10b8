"""The recipe of the demonstration pair at reduced size: each part against its reference, then the whole.

    recipe_test.py WORK_FOLDER       (environment: REDLINE_BIN)
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RECIPE = os.path.join(ROOT, "bench", "demo_models", "recipe")
sys.path.insert(0, RECIPE)
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch  # noqa: E402

import byte_pair  # noqa: E402
import copy_programs  # noqa: E402
import drills  # noqa: E402
import edits  # noqa: E402
import fast_step  # noqa: E402
import feed  # noqa: E402
import gpu_step  # noqa: E402
import hand_edits  # noqa: E402
import handmade_start  # noqa: E402
import gguf_file  # noqa: E402
import samples  # noqa: E402
import small_modules  # noqa: E402
import train  # noqa: E402
from decode import Decoder  # noqa: E402
from model import Shape, Weights, hidden_states, rope_tables  # noqa: E402
from python_source import NotApplicable, RESERVED, Source, excerpt  # noqa: E402

REDLINE, WORK = os.environ["REDLINE_BIN"], sys.argv.pop(1)
SMALL = Shape(vocabulary=512, layers=3, feed_forward=256, context=512)
INVENTORY = os.path.join(ROOT, "bench", "demo_files", "inventory.py")


LEGACY = """import os, sys
from typing import Dict, List

limit = 10


class Shelf(Base):
    def __init__(self, books: List[str]):
        super(Shelf, self).__init__()
        self.books = books

    def show(self) -> Dict[str, int]:
        for book in self.books[:limit]:
            print("a book of this shelf", book)
        return {}
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def gguf_tail(path, size):
    with open(path, "rb") as file:
        return file.read()[-size:]


def some_edits(count):
    """Returns edits of the demo's own file, of every kind that fits it."""
    source, editor, chance = read(INVENTORY), edits.Editor(["shelf", "box"]), random.Random(3)
    while count:
        try:
            yield (source, *edits.make_edit(editor, chance, source))
            count -= 1
        except NotApplicable:
            pass


class Edits(unittest.TestCase):
    def test_an_edit_is_what_its_instruction_says(self):
        source = "LIMIT = 10\n\n\ndef add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return add(a, a)\n"
        wanted = {
            "delete_function": "LIMIT = 10\n\n\ndef twice(a):\n    return add(a, a)\n",
            "swap_functions": "LIMIT = 10\n\n\ndef twice(a):\n    return add(a, a)\n\n\ndef add(a, b):\n    return a + b\n",
            "indentation": source.replace("    ", "  "),
        }
        for kind, text in wanted.items():
            found = {edits.apply_edit(edits.Editor([]), random.Random(seed), source, kind)[1] for seed in range(20)}
            self.assertIn(text, found, kind)

    def test_every_kind_applies_to_some_file(self):
        files = [Source(read(os.path.join(RECIPE, name))) for name in ("samples.py", "corpus.py", "train.py")]
        editor = edits.Editor(["spam"])
        for kind in edits.KINDS:
            chance = random.Random(11)
            for _ in range(1500):
                try:
                    if chance.random() < 0.1:
                        piece = LEGACY
                    elif chance.random() < 0.7:
                        piece = small_modules.small_module(chance)
                    else:
                        piece = excerpt(chance, chance.choice(files), 300, 2500)
                    instruction, new = edits.apply_edit(editor, chance, piece, kind)
                except NotApplicable:
                    continue
                self.assertTrue(instruction)
                self.assertEqual(new == piece, kind in edits.UNCHANGED, kind)
                break
            else:
                self.fail(f"{kind} fits nowhere")

    def test_users_word_an_edit_in_many_ways(self):
        source, found = "MAX_ITEMS = 10\nprint(MAX_ITEMS)\n", set()
        for seed in range(400):
            try:
                instruction, new = edits.apply_edit(edits.Editor([]), random.Random(seed), source, "set_value")
            except NotApplicable:  # the new number is the old one
                continue
            value = new.split("\n")[0].removeprefix("MAX_ITEMS = ")
            self.assertIn(value, instruction)
            found.add(instruction.replace(value, "N"))
        self.assertGreater(len(found), 150)
        self.assertGreater(sum("`" not in words for words in found), len(found) / 3)
        self.assertIn("Set MAX_ITEMS to N.", found)


class MadeUpFiles(unittest.TestCase):
    def test_small_modules_and_hostile_files_parse(self):
        chance, seen = random.Random(2), set()
        for _ in range(100):
            text = small_modules.small_module(chance)
            Source(text).tree
            hostile = drills.hostile(chance, text)
            Source(hostile).tree
            seen |= {text, hostile}
        self.assertGreater(len(seen), 180)


class StrangeNames(unittest.TestCase):
    def test_names_change_everywhere_alike_and_nothing_else_does(self):
        source = read(INVENTORY)
        strange = samples.StrangeNames(byte_pair.Tokenizer(byte_pair.train([source], 512)))
        shares = []
        for seed in range(8):
            new = strange.put_into(source, random.Random(seed))
            old_words, new_words = (strange.WORD.findall(text) for text in (source, new))
            self.assertEqual(strange.WORD.sub("", source), strange.WORD.sub("", new))
            pairs = set(zip(old_words, new_words))
            self.assertEqual(len(pairs), len(set(old_words)))
            changed = {old for old, renamed in pairs if old != renamed}
            self.assertFalse(changed & RESERVED)
            shares.append(len(changed) / len(pairs))
        self.assertGreater(max(shares), 0.5)


class Kinds(unittest.TestCase):
    def test_what_might_be_copied_from_elsewhere_is_unsure(self):
        copied, changed = samples.COPIED, samples.CHANGED
        for context, kind in ((samples.UNSURE_CONTEXT, samples.UNSURE), (samples.TIED_CONTEXT, samples.TIED)):
            same = list(range(100, 100 + context))
            asked = [1] + same + [6, 9] + same + [7, 9]
            answered = same + [6, 9]
            found = samples.with_unsure(asked, answered, [copied] * len(answered))
            self.assertEqual(found[context:], [kind, copied])
            self.assertEqual(set(found[: samples.UNSURE_CONTEXT]), {copied})
            self.assertEqual(samples.with_unsure(asked, answered, [changed] * len(answered)), [changed] * len(answered))

    def test_where_an_answer_leaves_the_old_text_and_returns_is_marked(self):
        before, after = "first = 1\nsecond = 2\nthird = 3\n", "first = 1\nsecond = 5\n"
        tokenizer = byte_pair.Tokenizer(byte_pair.train([before] * 9, 320))
        maker = samples.SampleMaker(tokenizer, [{"package": "demo", "text": before, "role": "train"}], ["x"], 5)
        tokens = tokenizer.encode(samples.edit_answer(after) + "<|im_end|>")
        kinds = maker._changed_or_copied(tokens, before, after)
        marked = [(tokenizer.decode([token]), kind) for token, kind in zip(tokens, kinds) if kind != samples.COPIED]
        self.assertEqual(
            marked[:3], [("5", samples.LEAVING), ("\n", samples.RESUMING), (marked[2][0], samples.RESUMING)]
        )
        unchanged = maker._changed_or_copied(tokenizer.encode(samples.edit_answer(before)), before, before)
        self.assertEqual(set(unchanged), {samples.COPIED})

    def test_lines_behind_a_copy_are_read_and_programs_said(self):
        source = read(INVENTORY)
        files = [{"package": "demo", "text": source, "role": "train"}]
        maker = samples.SampleMaker(byte_pair.Tokenizer(byte_pair.train([source], 512)), files, ["shelf"], 5)
        seen = set()
        for _ in range(40):
            try:
                tokens, kinds = maker.draw(samples.Mix(100, 600), "program")
            except NotApplicable:
                continue
            seen |= set(kinds)
            said = [t for t, kind in zip(tokens, kinds) if kind == samples.CHANGED]
            self.assertRegex(maker.tokenizer.decode(said), r"(?s)^<(copy|gen).*</program>")
        self.assertEqual(seen, {samples.PROMPT, samples.CHANGED, samples.READ, samples.READ_FIRST})


class HandEdits(unittest.TestCase):
    def test_both_halves_have_as_many_cases_of_each_kind(self):
        for half in ("development", "sealed"):
            cases = hand_edits.load_half(half)
            counts = {kind: sum(case.kind == kind for case in cases) for kind in hand_edits.KINDS}
            self.assertEqual(counts, {"determined": 200, "invention": 25, "unchanged": 25})

    def test_answers_that_are_given_count_as_right_unchanged_or_harm(self):
        tokenizer = byte_pair.Tokenizer(byte_pair.train(["a = 1\n"] * 9, 300))
        case = lambda kind, *accepted: hand_edits.Case("x.py", kind, "set a", "a = 1\n", list(accepted))  # noqa: E731
        cases = [case("determined", "a = 2\n", "a = 3\n"), case("determined", "a = 4\n"), case("unchanged", "a = 1\n")]
        for given, determined, unchanged in (
            ("a = 3\n", {"right": 1, "harm": 1}, {"harm": 1}),
            ("a = 1\n", {"unchanged": 2}, {"right": 1}),
        ):
            answer = tokenizer.encode(samples.edit_answer(given) + "<|im_end|>")
            found = hand_edits.measure(_Parrot(tokenizer, answer), tokenizer, cases, 512)
            self.assertEqual(found, {"determined": determined, "unchanged": unchanged})


class _Parrot:
    """A step whose best tokens are those of one answer."""

    def __init__(self, tokenizer, answer):
        self.answer, self.size = answer, len(tokenizer.tokens)

    def forward(self, batch):
        rows = torch.zeros(len(batch.ids), self.size)
        for at in range(1, len(self.answer) + 1):
            rows[-at, self.answer[-at]] = 1
        return rows

    def logits(self, rows):
        return rows


class CopyPrograms(unittest.TestCase):
    def test_programs_are_those_of_the_runtime_and_resolve_there(self):
        with tempfile.TemporaryDirectory() as folder:
            before_path, after_path = os.path.join(folder, "before"), os.path.join(folder, "after")
            for before, _, after, kinds in some_edits(12):
                for path, text in ((before_path, before), (after_path, after)):
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                program = copy_programs.shortest(before, after)
                oracle = subprocess.run(
                    [REDLINE, "copy", "oracle", before_path, after_path], capture_output=True, text=True, check=True
                )
                self.assertEqual(program, oracle.stdout.rstrip("\n"), kinds)
                resolved = subprocess.run(
                    [REDLINE, "copy", "resolve", before_path, "-"],
                    input=program,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.assertEqual(resolved.stdout, after, kinds)
                self.assertEqual(copy_programs.resolve(before, program), after, kinds)
                self.assertTrue(all(copy_programs.is_prefix(before, program[:n]) for n in range(len(program) + 1)))

    def test_pieces_are_the_program_and_what_each_copy_stands_for(self):
        before = "a\nb\nc\n"
        program = '<copy lines="1-2"/><gen>x <copy lines="1-1"/>\n</gen><copy lines="3-3"/></program>'
        wanted = [
            ('<copy lines="1-2"/>', "a\nb\n"),
            ('<gen>x <copy lines="1-1"/>\n</gen>', ""),
            ('<copy lines="3-3"/>', "c\n"),
            ("</program>", ""),
        ]
        self.assertEqual(copy_programs.pieces(before, program), wanted)
        for end in range(len(program)):
            self.assertEqual("".join(text for text, _ in copy_programs.pieces(before, program[:end])), program[:end])
        for before, _, after, kinds in some_edits(6):
            program = copy_programs.shortest(before, after)
            found = copy_programs.pieces(before, program)
            self.assertEqual("".join(text for text, _ in found), program, kinds)
            self.assertEqual([bool(copied) for text, copied in found], [text.startswith("<copy") for text, _ in found])

    def test_a_copy_ends_where_a_token_ends_with_its_lines_behind_it_and_without(self):
        before = "a = 1\nb = 2\nc = 3\n"
        program = '<copy lines="1-2"/><gen>b = 4\n</gen><copy lines="3-3"/></program>'
        tokenizer = byte_pair.Tokenizer(byte_pair.train([program] * 20, 400))
        self.assertTrue(any(b"/><" in tokenizer.bytes_of(t) for t in tokenizer.encode(program)))
        alone, said_alone = samples.program_tokens(tokenizer, before, program)
        served, said = samples.program_tokens(tokenizer, before, program, served=True)
        self.assertEqual(tokenizer.decode(alone), program)
        self.assertTrue(all(said_alone))
        self.assertEqual([t for t, is_said in zip(served, said) if is_said], alone)
        self.assertEqual(
            tokenizer.decode(served),
            '<copy lines="1-2"/>a = 1\nb = 2\n<gen>b = 4\n</gen><copy lines="3-3"/>c = 3\n</program>',
        )

    def test_what_is_no_program_is_refused(self):
        before = "a\nb\nc\n"
        for program in (
            "",
            '<copy lines="0-1"/></program>',
            '<copy lines="2-1"/></program>',
            '<copy lines="1-4"/></program>',
            "<gen>x</gen>",
            "<gen>x</program>",
            "</program>\n",
            "x</program>",
        ):
            self.assertIsNone(copy_programs.resolve(before, program), program)
        for prefix in ('<copy lines="4', '<copy lines="3-1', '<copy lines="01', "x", "</program>x"):
            self.assertFalse(copy_programs.is_prefix(before, prefix), prefix)

    def test_text_that_looks_like_an_end_is_escaped(self):
        before, after = "a\n", "a\n</gen><\\/gen>\n"
        program = copy_programs.shortest(before, after)
        self.assertIn("<\\/gen><\\\\/gen>", program)
        self.assertEqual(copy_programs.resolve(before, program), after)


class Training(unittest.TestCase):
    def test_hand_written_gradients_equal_those_of_autograd(self):
        torch.manual_seed(1)
        weights = Weights(SMALL)
        handmade_start.write_copy_circuit(weights)
        for name, tensor in weights.tensors.items():
            if name.endswith("bias"):
                tensor.add_(torch.randn(tensor.shape) * 0.1)
        rows, length = 3, 150
        ids, wanted = torch.randint(0, 512, (rows, length)), torch.randint(0, 512, (rows, length))
        weight = (torch.rand(rows, length) < 0.5).float()
        batch = fast_step.Batch(ids.view(-1), wanted.view(-1), weight.view(-1), torch.arange(rows + 1) * length)
        grads, _, _, _ = fast_step.FastStep(weights, 2, exact=True).gradients(batch)

        for tensor in weights.tensors.values():
            tensor.requires_grad_(True)
        logits = hidden_states(weights, ids, rope_tables(SMALL)) @ weights["embedding"].T
        loss = torch.nn.functional.cross_entropy(logits.view(-1, 512), wanted.view(-1), reduction="none")
        ((loss * weight.view(-1)).sum() / weight.sum()).backward()
        for name, tensor in weights.tensors.items():
            difference = (grads[name] - tensor.grad).norm() / tensor.grad.norm()
            self.assertLess(float(difference), 1e-4, name)

    def test_packed_samples_on_a_gpu_give_the_same_gradients(self):
        torch.manual_seed(1)
        weights = Weights(SMALL)
        lengths = [150, 33, 1, 64, 200]
        ids, wanted = torch.randint(0, 512, (2, sum(lengths)))
        begin = torch.tensor([0] + lengths).cumsum(0)
        batch = fast_step.Batch(ids, wanted, (torch.rand(sum(lengths)) < 0.5).float(), begin)
        exact = fast_step.FastStep(weights, 2, exact=True).gradients(batch)
        packed = gpu_step.GpuStep(weights, "cpu", 512, torch.float32).gradients(batch)
        for name, gradient in exact[0].items():
            self.assertLess(float((gradient - packed[0][name]).norm() / gradient.norm()), 1e-4, name)
        self.assertTrue(torch.equal(exact[2], packed[2]))
        self.assertTrue(torch.equal(exact[3], packed[3]))

    def test_steps_that_a_graph_can_record_are_the_plain_ones(self):
        torch.manual_seed(1)
        shard = (
            torch.randint(0, 512, (900,)).numpy().astype("uint16"),
            torch.randint(0, 10, (900,)).numpy().astype("uint8"),
            torch.tensor([300, 33, 24, 250, 200, 93]).numpy().astype("int32"),
        )
        outcomes = []
        for trainer in (train.Trainer, gpu_step.GraphTrainer):
            step = gpu_step.GpuStep(Weights(SMALL, seed=4), "cpu", 512, torch.float32)
            trainer = trainer(step, train.Optimizer(step), None, 0.0)
            for batch in feed.batches(shard, 512):
                trainer.run(batch, 0.01, 0.002)
            outcomes.append((step.weights.tensors, trainer.taken_sums()))
        (plain, plain_sums), (recorded, recorded_sums) = outcomes
        self.assertGreater(float((plain["0.qkv"] - Weights(SMALL, seed=4)["0.qkv"]).abs().max()), 0.001)
        for name, tensor in plain.items():
            self.assertLess(float((tensor - recorded[name]).abs().max().detach()), 2e-4, name)
        for one, other in zip(plain_sums, recorded_sums):
            self.assertAlmostEqual(one, other, delta=1e-3 * abs(one))
        self.assertGreater(min(plain_sums[1], plain_sums[3], plain_sums[5]), 10)

    def test_products_of_bf16_give_nearly_the_same_gradients(self):
        torch.manual_seed(1)
        weights = Weights(SMALL)
        lengths = [150, 33, 1, 64, 65, 200, 17, 500]
        ids, wanted = torch.randint(0, 512, (2, sum(lengths)))
        weight = (torch.rand(sum(lengths)) < 0.5).float()
        begin = torch.tensor([0] + lengths).cumsum(0)
        batch = fast_step.Batch(ids, wanted, weight, begin)
        exact, tiles = fast_step.FastStep(weights, 2, exact=True), fast_step.FastStep(weights, 2)
        self.assertFalse(exact.kernels.library.rounds())
        if not tiles.kernels.library.rounds():
            self.skipTest("this CPU does not multiply bf16")
        wanted_grads, found_grads = exact.gradients(batch)[0], tiles.gradients(batch)[0]
        for name, wanted_grad in wanted_grads.items():
            difference = (found_grads[name] - wanted_grad).norm() / wanted_grad.norm()
            self.assertLess(float(difference), 0.03, name)
            self.assertGreater(float(difference), 0, name)

    def test_pieces_of_a_batch_give_its_gradients(self):
        torch.manual_seed(1)
        weights = Weights(SMALL)
        lengths = [100, 300, 7, 450, 200, 512, 90]
        ids, wanted = torch.randint(0, 512, (2, sum(lengths)))
        begin = torch.tensor([0] + lengths).cumsum(0)
        batch = fast_step.Batch(ids, wanted, (torch.rand(sum(lengths)) < 0.5).float(), begin)
        self.assertGreater(len(list(batch.pieces(fast_step.PIECE_TOKENS))), 1)
        self.assertEqual([len(piece.ids) for piece in batch.pieces(450)], [407, 450, 200, 512, 90])
        step = fast_step.FastStep(weights, 2, exact=True)
        first, again = step.gradients(batch), step.gradients(batch)
        alone = fast_step.FastStep(weights, 1, exact=True).gradients(batch)
        for name, grad in first[0].items():
            self.assertTrue(torch.equal(grad, again[0][name]), name)
            self.assertLess(float((grad - alone[0][name]).norm() / grad.norm()), 1e-5, name)
        self.assertTrue(torch.equal(first[1], alone[1]))

    def test_orthogonal_matrices_are_those_of_the_portable_form(self):
        torch.manual_seed(1)
        shapes = [(256, 256), (128, 256), (256, 768)]
        matrices = [torch.randn(shape) for shape in shapes]
        found = [m.clone() for m in matrices]
        fast_step.Kernels(2, exact=True).orthogonalise(found)
        for matrix, orthogonal in zip(matrices, found):
            # In floats, because sums of bf16 are rounded less or more by different CPUs.
            portable = train.Optimizer.newton_schulz(matrix.clone(), torch.float32)
            self.assertLess(float((portable - orthogonal).norm() / orthogonal.norm()), 1e-3)
            values = torch.linalg.svdvals(orthogonal)
            self.assertLess(float(values.max()), 1.3)
            self.assertGreater(float(values.median()), 0.6)

    def test_more_layers_are_the_same_function_at_first(self):
        torch.manual_seed(1)
        weights, ids = Weights(SMALL, seed=2), torch.randint(0, 512, (1, 60))
        more = train.grown(weights, Shape(**{**SMALL.as_dict(), "layers": 5}))
        self.assertEqual(more.shape.layers, 5)
        first, second = (hidden_states(w, ids, rope_tables(SMALL)) for w in (weights, more))
        self.assertTrue(torch.equal(first, second))
        self.assertTrue(torch.equal(hidden_states(train.grown(weights, SMALL), ids, rope_tables(SMALL)), first))
        for other in ({"layers": 2}, {"layers": 6}, {"feed_forward": 512}):
            with self.assertRaises(ValueError, msg=other):
                train.grown(weights, Shape(**{**SMALL.as_dict(), **other}))

    def test_the_hand_made_start_copies_what_stood_before(self):
        torch.manual_seed(1)
        shape = Shape(vocabulary=4096, layers=3, feed_forward=256, context=512)
        weights = Weights(shape)
        handmade_start.write_copy_circuit(weights)
        ids = torch.randint(0, 4096, (200,)).repeat(2).tolist()
        best = Decoder(weights).logits(ids).argmax(-1)[210:-1]
        right = (best == torch.tensor(ids[211:])).float().mean()
        self.assertGreater(float(right), 0.95)

    def test_the_whole_recipe_runs_and_its_loss_falls(self):
        command = [
            sys.executable,
            "-B",
            os.path.join(RECIPE, "make_pair.py"),
            "--size",
            "smoke",
            "--work",
            WORK,
            "--redline",
            REDLINE,
            "--threads",
            "2",
            "--device",
            "cpu",
            "--exclude",
            os.path.join(ROOT, "bench", "edits.jsonl"),
        ]
        subprocess.run(command, check=True)  # fails where redline's tokens differ from the reference's
        losses_of = {}
        for name in ("target", "draft"):
            rows = [json.loads(line) for line in read(os.path.join(WORK, f"{name}.log.jsonl")).splitlines()]
            losses = [row["held_out_loss"] for row in rows if "held_out_loss" in row]
            losses_of[name] = losses
            self.assertGreaterEqual(len(losses), 2)
            # Which modules the standard library has, and with it the corpus, depends on the installed packages.
            self.assertLess(losses[-1], losses[0] * 0.95, name)
            self.assertTrue(read(os.path.join(WORK, f"{name}.svg")).startswith("<svg"))
        found = json.loads(read(os.path.join(WORK, "eval.json")))
        self.assertLess(found["edits"]["all"]["exact"], 1)
        self.assertGreater(found["edits"]["right_tokens"], 0.3)
        self.assertEqual(len(json.loads(read(os.path.join(WORK, "vectors.json")))["cases"]), 4)
        for name in ("target", "draft"):
            path = os.path.join(WORK, f"demo-{name}-f32.gguf")
            again = os.path.join(WORK, "again.gguf")
            subprocess.run([REDLINE, "quantize", path, again, "--type", "q8_0"], check=True, stdout=subprocess.DEVNULL)
            rounded, twice = (gguf_tail(p, 1_000_000) for p in (os.path.join(WORK, f"demo-{name}.gguf"), again))
            self.assertEqual(rounded, twice, "redline rounds to Q8_0 as the recipe does")

        for name in ("target", "draft"):
            weights, state = train.load_weights(os.path.join(WORK, f"{name}.pt"))
            stored, tokens, merges = gguf_file.read(os.path.join(WORK, f"demo-{name}.gguf"))
            for key, tensor in gguf_file.rounded(weights).tensors.items():
                self.assertTrue(torch.equal(stored[key], tensor), key)
        self.assertEqual({"tokens": tokens, "merges": merges}, json.loads(read(os.path.join(WORK, "tokenizer.json"))))

        again = subprocess.run(command + ["--steps", "target,draft"], check=True, capture_output=True, text=True)
        self.assertNotIn("tokens/s", again.stderr, "a finished model is not trained again")

        with tempfile.TemporaryDirectory() as folder:
            command[command.index("--work") + 1] = folder
            subprocess.run(command + ["--start", WORK, "--steps", "corpus,tokenizer,target"], check=True)
            first = json.loads(read(os.path.join(folder, "target.log.jsonl")).splitlines()[0])
        self.assertAlmostEqual(first["held_out_loss"], losses_of["target"][-1], delta=0.05)

    def test_the_same_seed_gives_the_same_samples(self):
        self.assertEqual(samples.seed_of("data", 1), samples.seed_of("data", 1))
        self.assertEqual([e[1:] for e in some_edits(5)], [e[1:] for e in some_edits(5)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
