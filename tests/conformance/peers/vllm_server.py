"""The part of vLLM's `tests/utils.py` that its tests use: a server, here Redline, that a `with` block runs."""

import os
import socket
import subprocess
import tempfile
import time

import requests

VLLM_PATH = os.getcwd()


def get_open_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class RemoteOpenAIServer:
    DUMMY_API_KEY = "token-abc123"

    def __init__(self, model, vllm_serve_args=(), *, env_dict=None, **_):
        given = [str(one) for one in vllm_serve_args]
        option = lambda name, usual=None: given[given.index(name) + 1] if name in given[:-1] else usual
        self.host, self.port = "127.0.0.1", int(os.environ.get("REDLINE_PORT", 0)) or get_open_port()
        folder, models = tempfile.mkdtemp(), os.environ["REDLINE_MODELS"]
        command = [os.environ["REDLINE_BIN"], "serve", "--model", f"{models}/demo-target.gguf", "--accept-any-model",
                   "--compat", "vllm", "--log-level", "warning", "--listen", f"{self.host}:{self.port}",
                   "--alias", option("--served-model-name", model)]
        if option("--max-model-len"):
            command += ["--context", option("--max-model-len")]
        if option("--max-num-seqs"):
            command += ["--running-max", option("--max-num-seqs")]
        if option("--api-key"):
            command += ["--api-key", option("--api-key")]
        self.process = subprocess.Popen(command, cwd=folder)
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}")
            try:
                if requests.get(self.url_for("health"), timeout=5).status_code == 200:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(8)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def url_root(self):
        return f"http://{self.host}:{self.port}"

    def url_for(self, *parts):
        return self.url_root + "/" + "/".join(parts)

    def _client(self, kind, more):
        return kind(base_url=self.url_for("v1"), api_key=self.DUMMY_API_KEY, max_retries=0,
                    **{"timeout": 60, **more})

    def get_client(self, **more):
        import openai
        return self._client(openai.OpenAI, more)

    def get_async_client(self, **more):
        import openai
        return self._client(openai.AsyncOpenAI, more)
