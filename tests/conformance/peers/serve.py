#!/usr/bin/env python3
"""Starts `redline serve` with equivalents of the options of llama.cpp's server, whose tests start it by its name.

Options without a counterpart are left out. REDLINE_BIN, REDLINE_MODELS: the program, and the demonstration models.
"""

import os
import subprocess
import sys

FLAGS = {"--no-webui", "--context-shift", "--embedding", "--reranking", "--metrics", "--slots", "--no-slots", "--jinja",
         "--no-jinja", "--cont-batching", "--kv-unified", "--verbose", "--offline", "--no-models-autoload",
         "--no-cache-idle-slots", "--webui-mcp-proxy"}


def read(arguments):
    """Returns the values by option, or True for options without a value."""
    out, rest = {}, list(arguments)
    while rest:
        name = rest.pop(0)
        out[name] = True if name in FLAGS or not rest else rest.pop(0)
    return out


def knows(program, option):
    return option in subprocess.run([program, "serve", "--help"], capture_output=True, text=True).stdout


def command_for(arguments):
    program, models = os.environ["REDLINE_BIN"], os.environ["REDLINE_MODELS"]
    given = read(arguments)
    slots = int(given.get("--parallel", 1))
    out = [program, "serve", "--model", f"{models}/demo-target.gguf", "--accept-any-model", "--log-level", "warning",
           "--listen", f"{given.get('--host', '127.0.0.1')}:{given.get('--port', '8080')}",
           "--running-max", str(slots)]
    if "--ctx-size" in given:
        out += ["--context", str(max(16, int(given["--ctx-size"]) // slots))]
    if "--batch-size" in given:
        out += ["--prompt-chunk-rows", str(max(16, int(given["--batch-size"])))]
    if "--alias" in given:
        out += ["--alias", f"{given['--alias']}:temperature={given.get('--temp', '0.8')}"]
    if "--model-draft" in given:
        out += ["--draft", f"{models}/demo-draft.gguf"]
    if "--api-key" in given:
        out += ["--api-key", given["--api-key"], "--cors-origin", "*"]  # --cors-origin requires keys
    if "--no-webui" in given:
        out += ["--no-ui"]
    if "--context-shift" in given:
        out += ["--eviction", "shift"]
    if "--chat-template-file" in given and knows(program, "--chat-template"):
        out += ["--chat-template", given["--chat-template-file"]]
    return out


if __name__ == "__main__":
    command = command_for(sys.argv[1:])
    os.execv(command[0], command)
