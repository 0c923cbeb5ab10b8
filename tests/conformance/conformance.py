#!/usr/bin/env python3
"""Runs the public suites in a folder against a build of Redline and prints tables in Markdown.

    conformance.py --probe PROGRAM [--redline PROGRAM --models FOLDER] [--work FOLDER] [--kinds schemas,...] FOLDER

Kinds: `schemas` (JSON-Schema-Test-Suite), `masks` (maskbench's instances of JSONSchemaBench), `store` (SchemaStore's
tests), `grammars` (llama.cpp's cases of its grammars and llguidance's), `templates` (folders of *.jinja), `llama` and
`vllm` (the tests of those servers, which need pytest; REDLINE_PORT names a port to use), and `chance` (schemas made by
chance, which need no suite but python3-jsonschema). The exit status is 0 whatever the tables
contain, or 1 if the folder has none of these. With --strict it is also 1 if an invalid instance is accepted or a
template is rendered differently.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import chance_suite
import grammar_suites
import peer_suites
import schema_suites
import template_suite
from probe import Probe


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the suites, each as its repository has it")
    parser.add_argument("--probe", required=True, help="the program conformance_probe")
    parser.add_argument("--redline", default="", help="the program redline, for the servers' tests")
    parser.add_argument("--models", default="", help="the folder of the demonstration models")
    parser.add_argument("--work", type=Path, help="where the servers' tests are copied to")
    parser.add_argument("--kinds", default="schemas,masks,store,grammars,chance,templates,llama,vllm")
    parser.add_argument("--only", default="", help="of the servers' tests, files with one of these texts in their names")
    parser.add_argument("--every", type=int, default=0, help="of maskbench one schema in so many")
    parser.add_argument("--chance", type=int, default=3000, help="the number of schemas by chance")
    parser.add_argument("--member-order", choices=["declared", "any"], help="of all schemas' objects")
    parser.add_argument("--strict", action="store_true")
    return parser.parse_args()


def main():
    asked = arguments()
    kinds = asked.kinds.split(",")
    folder = asked.folder.resolve()
    probe = Probe(asked.probe, {"redline:member_order": asked.member_order} if asked.member_order else {})
    found = wrong = 0
    for kind, find, run in (
            ("schemas", schema_suites.find_test_suite, lambda at: schema_suites.run_test_suite(probe, at).wrong),
            ("masks", schema_suites.find_maskbench, lambda at: schema_suites.run_maskbench(probe, at, asked.every).wrong),
            ("store", schema_suites.find_schema_store, lambda at: schema_suites.run_schema_store(probe, at).wrong),
            ("grammars", grammar_suites.find_grammar_cases, lambda at: grammar_suites.run_grammar_cases(probe, at)),
            ("chance", lambda _: [None], lambda _: chance_suite.run_chance(probe, asked.chance)),
            ("templates", template_suite.find_templates, lambda at: template_suite.count_wrong(probe, at))):
        for suite in find(folder) if kind in kinds else []:
            found += 1
            wrong += run(suite)
            print(flush=True)
    if asked.redline:
        work = asked.work or Path(tempfile.mkdtemp())
        environment = {"REDLINE_BIN": str(Path(asked.redline).resolve()),
                       "REDLINE_MODELS": str(Path(asked.models).resolve()),
                       "REDLINE_PORT": os.environ.get("REDLINE_PORT", "8089")}
        only = [name for name in asked.only.split(",") if name]
        for kind, find, run in (("llama", peer_suites.find_llama, peer_suites.run_llama),
                                ("vllm", peer_suites.find_vllm, peer_suites.run_vllm)):
            for suite in find(folder) if kind in kinds else []:
                found += 1
                run(suite, work.resolve(), environment, only)
                print(flush=True)
    if found == 0:
        print(f"{folder} holds no suite of the kinds {', '.join(kinds)}; see tests/conformance/README.md for their names",
              file=sys.stderr)
        return 1
    return 1 if asked.strict and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
