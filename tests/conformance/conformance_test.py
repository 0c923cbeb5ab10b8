"""Runs the small cases in this folder and checks the tables. Usage: conformance_test.py PROBE"""

import contextlib
import io
import re
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

try:
    import jinja2  # noqa: F401
    import pytest  # noqa: F401
    import pytest_timeout  # noqa: F401
    import requests  # noqa: F401
except ImportError as why:
    print(f"{why}: skipped")
    sys.exit(77)

import chance_suite
import grammar_suites
import peer_suites
import schema_suites
import template_suite
from peers.serve import read
from probe import Probe

CASES = HERE / "cases"
probe = Probe(sys.argv.pop())


def printed(run, *arguments):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        run(*arguments)
    return text.getvalue()


class Tables(unittest.TestCase):
    def test_suite_of_schemas(self):
        (suite,) = schema_suites.find_test_suite(CASES)
        said = printed(schema_suites.run_test_suite, probe, suite)
        self.assertIn("| draft2020-12 required | 2 | 1 | 2 / 2 of 2 | 2 | **0** |", said)
        self.assertIn("| uuid | 1/1 | 1/1 |", said)
        self.assertRegex(said, r"Schemas refused, by reason:\n- 1 x ")

    def test_an_accepted_invalid_instance_is_named(self):
        tally = schema_suites.Tally()
        tally.add(probe, "too wide", {"type": "integer"}, [("a", True), (1, False)])
        self.assertEqual((tally.valid, tally.accepted_some, tally.wrong, tally.right), (1, 0, 1, 0))
        self.assertIn("- too wide", schema_suites.failures(tally))

    def test_an_instance_is_tried_in_each_spelling(self):
        self.assertEqual(schema_suites.spellings({"a": ["é", 1]}),
                         ['{"a":["é",1]}', '{"a": ["é", 1]}', '{"a":["\\u00e9",1]}'])

    def test_maskbench(self):
        (suite,) = schema_suites.find_maskbench(CASES)
        said = printed(schema_suites.run_maskbench, probe, suite, 0)
        self.assertRegex(said, r"\| Tiny \| 1 \| 100.0% \| 1 \| 1/1 \| 0/2 \| \d+ / \d+ / \d+ \|")
        self.assertIn("| **all** | 1 |", said)

    def test_schema_store(self):
        (suite,) = schema_suites.find_schema_store(CASES)
        said = printed(schema_suites.run_schema_store, probe, suite)
        self.assertRegex(said, r"\| 1 \| 1 \| 1 \| 1 / 1 of 1 \| \*\*0\*\* of 1 \|")

    def test_grammars(self):
        (suite,) = grammar_suites.find_grammar_cases(CASES)
        said = printed(grammar_suites.run_grammar_cases, probe, suite)
        self.assertIn("| grammar | 1 | 1 | 2 of 2 | **0** of 3 |", said)
        self.assertIn("| schema | 1 | 1 | 2 of 2 | **0** of 3 |", said)
        self.assertEqual([case[3:] for case in grammar_suites.cases_of(suite.read_text())],
                         [(["1+2", "123"], ["+", "1+", "line\n"]), (["true", "false"], ["1", '"true"', "True"])])

    def test_schemas_by_chance(self):
        try:
            import jsonschema  # noqa: F401
        except ImportError as why:
            self.skipTest(str(why))
        said = printed(chance_suite.run_chance, probe, 100)
        self.assertRegex(said, r"\| 100 \| \d+ \| \d+/\d+ \| \*\*0\*\* \|")

    def test_templates(self):
        said = printed(template_suite.run_templates, probe, CASES / "templates")
        chats = len(template_suite.conversations())
        # The last conversation has no message, which the first template refuses; the second is never rendered.
        self.assertIn(f"| 2 | {2 * chats} | {chats - 1} | {chats + 1} | 0 | 0 | 0 |", said)

    def test_a_difference_of_templates_is_shown(self):
        self.assertEqual(template_suite.first_difference("abc", "abd"), "at 2 'c', Jinja2 has 'd'")

    def test_servers_tests_are_run_to_their_ends(self):
        (suite,) = peer_suites.find_llama(CASES)
        with tempfile.TemporaryDirectory() as work:
            environment = {"REDLINE_BIN": "", "REDLINE_MODELS": "", "REDLINE_PORT": "0"}
            said = printed(peer_suites.run_llama, suite, Path(work), environment, [])
        self.assertIn("| test_shape | 1 | 0 | 2 | 0 | 6 |", said)
        self.assertIn("test_two_of_four_assertions_fail: response.status == 400", said)
        self.assertIn("test_breaks: RuntimeError: without a word", said)

    def test_options_of_another_server_are_read(self):
        self.assertEqual(read(["--host", "::1", "--jinja", "--port", "80"]),
                         {"--host": "::1", "--jinja": True, "--port": "80"})


if __name__ == "__main__":
    unittest.main()
