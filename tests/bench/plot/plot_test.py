"""Checks that bench/plot.py draws every figure from samples of the studies' output."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLES = pathlib.Path(__file__).resolve().parent / "samples"
sys.path.insert(0, str(ROOT / "bench"))

import plot


class PlotTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_plot(self, *arguments):
        return subprocess.run([sys.executable, "-B", ROOT / "bench/plot.py", "--to", self.folder, *map(str, arguments)],
                              capture_output=True, text=True)

    def draw(self, *samples, only=()):
        done = self.run_plot(*(SAMPLES / s for s in samples), *(("--only", *only) if only else ()))
        self.assertEqual(done.returncode, 0, done.stderr)
        return {p.stem: p.read_text() for p in self.folder.glob("*.svg")}

    def test_draws_every_figure_and_names_its_series(self):
        drawn = self.draw("edit.json", "load.json", "copy.json", "evict.json", "pie.json")
        self.assertEqual(set(drawn), {f"{b}-{name}" for b, figures in plot.FIGURES.items() for name in figures})
        series = {"edit-speed": ["regular", "lookup"], "edit-steps": ["proposed", "accepted"],
                  "edit-timeline": ["session", "target", "draft"],
                  "load-throughput": ["regular", "auto"], "load-goodput": ["regular", "auto"],
                  "copy-runs": ["logits of the last row", "logits of every row"], "copy-coverage": ["edits"],
                  "copy-moved": ["verified, plans again", "forced, one program"],
                  "evict-pace": ["reevaluate", "shift", "lazy"], "pie-times": ["exact", "pie"]}
        for name, svg in drawn.items():
            xml.dom.minidom.parseString(svg)
            for one in series[name]:
                self.assertIn(f">{one}</text>", svg, name)

    def test_says_what_was_replayed_and_escapes_names(self):
        svg = self.draw("edit.json", only=["edit-speed"])["edit-speed"]
        self.assertIn("REPLAYED drafts, 80 % right", svg)
        self.assertIn("&lt;four&gt; &amp; ", svg)

    def test_the_fewest_passes_take_a_row_each(self):
        edit = {"edit": "a", "edit_ratio": 0.1, "characters": 1000, "first_token_seconds": 2}
        runs = [{**edit, "method": "regular", "tokens": 101, "seconds": 12, "least_rounds": 101},
                {**edit, "method": "auto", "tokens": 101, "seconds": 6, "least_rounds": 20}]
        self.assertEqual(plot.optimum_of(runs), [(0.1, 250)])  # 2 s for the prompt, 20 passes of 0.1 s
        self.assertEqual(plot.optimum_of(runs[1:]), [], "how long a pass takes is not known")

    def test_steps_are_those_of_the_middle_edit_of_the_fastest_method_that_drafts(self):
        svg = self.draw("edit.json", only=["edit-steps"])
        self.assertEqual(list(svg), ["edit-steps"])
        self.assertIn("lookup on c", svg["edit-steps"])

    def test_clients_and_rates_share_no_axis(self):
        svg = self.draw("load.json")["load-throughput"]
        self.assertIn(">clients</text>", svg)
        self.assertNotIn(">2.5</text>", svg)
        svg = self.draw("load_rates.json")["load-throughput"]
        self.assertIn(">requests per second</text>", svg)
        self.assertIn(">2.5</text>", svg)

    def test_the_same_data_gives_the_same_file(self):
        self.assertEqual(self.draw("pie.json"), self.draw("pie.json"))

    def test_refuses_what_no_study_wrote(self):
        for text, problem in {'{"benchmark": "prefix"}': "found prefix", '{"benchmark": "edit", "runs": []}': "no data",
                              "{": "Expecting"}.items():
            file = self.folder / "bad.json"
            file.write_text(text)
            done = self.run_plot(file)
            self.assertEqual(done.returncode, 1)
            self.assertIn(problem, done.stderr)


if __name__ == "__main__":
    unittest.main()
