"""A pytest plugin with stand-ins for modules that other servers' tests import and that clients do not need, so that the
tests that use them fail alone and the others run. Where OpenAI's client is not installed, a sufficient replacement is
used; tokenizers are the server's own, through HTTP."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import tempfile
from unittest.mock import MagicMock

import requests

ABSENT = {"vllm", "torch", "transformers", "huggingface_hub", "numpy", "librosa", "soundfile", "PIL",
          "schemathesis", "partial_json_parser", "prometheus_client", "wget"}


class ServersTokenizer:
    """The tokenizer of the server under test, with the members that these tests use."""

    chat_template = None

    def __getattr__(self, name):  # such as add_tokens of a model that does not exist here
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()

    def _ask(self, path, body):
        answer = requests.post(f"http://127.0.0.1:{os.environ['REDLINE_PORT']}/{path}", json=body, timeout=60,
                               headers={"Authorization": "Bearer token-abc123"})
        answer.raise_for_status()
        return answer.json()

    def encode(self, text, add_special_tokens=True, **_):
        return self._ask("tokenize", {"content": text, "add_special": add_special_tokens})["tokens"]

    def decode(self, ids, **_):
        return self._ask("detokenize", {"tokens": list(ids)})["content"]

    def __call__(self, text, **more):
        return MagicMock(input_ids=self.encode(text, **more))

    def apply_chat_template(self, conversation=None, tools=None, add_generation_prompt=False, tokenize=True, **_):
        body = {"messages": conversation, "add_generation_prompt": add_generation_prompt}
        text = self._ask("apply-template", {**body, "tools": tools} if tools else body)["prompt"]
        return self.encode(text, add_special_tokens=False) if tokenize else text


class _StandIn(MagicMock):
    __path__ = []
    __spec__ = None


MEMBERS = {("transformers", "AutoTokenizer"): MagicMock(from_pretrained=lambda *_, **__: ServersTokenizer()),
           ("huggingface_hub", "snapshot_download"): lambda *_, **__: tempfile.mkdtemp()}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in ABSENT:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = _StandIn(name=spec.name)
        for (of, member), value in MEMBERS.items():
            if of == spec.name:
                setattr(module, member, value)
        module.get_tokenizer = lambda *_, **__: ServersTokenizer()
        return module

    def exec_module(self, module):
        pass


if importlib.util.find_spec("regex") is None:
    sys.modules["regex"] = re  # this is as much of it as they use
sys.meta_path.append(_Finder())  # after the finders of what is installed
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fallback"))
