"""The Python files for training and for evaluation, taken from Debian packages (packages.tsv).

Packages are downloaded and unpacked below the work folder; nothing is installed. A file is left out when it mentions a
copyleft license, is a vendored copy or a generated table, or shares text with a held-out file or with the files given
as `exclude` (the recorded edits that benchmarks use).
"""
import glob
import gzip
import hashlib
import json
import os
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
COPYLEFT = re.compile(r"General Public Licen[sc]e|\bA?L?GPL\b|Mozilla Public")
UNWANTED_PATH = re.compile(
    r"(^|/)(_?vendor|_?vendored|extern|encodings|test_data|testdata|locale|styles|lib2to3|idlelib|turtledemo|__pycache__)(/|$)"
    r"|_builtins\.py$|unistring\.py$|/lexers/_|_pb2\.py$|/pydoc_data/"
)
CHARACTERS_MIN, CHARACTERS_MAX, LINE_MAX = 200, 80_000, 240
SHINGLE_LINES = 4  # this many identical consecutive lines count as shared text
SHARED_SHINGLES_MAX = 2  # license headers and boilerplate


def read_packages():
    with open(os.path.join(HERE, "packages.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    return [{"package": package, "licence": licence, "role": role} for package, licence, role in rows]


def _unpack(package, folder):
    target = os.path.join(folder, package)
    if os.path.isdir(target):
        return target
    downloads = os.path.join(folder, "downloads")
    os.makedirs(downloads, exist_ok=True)
    found = glob.glob(os.path.join(downloads, package + "_*.deb"))
    if not found:
        subprocess.run(
            ["apt-get", "download", "-q", package],
            cwd=downloads,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        found = glob.glob(os.path.join(downloads, package + "_*.deb"))
    subprocess.run(["dpkg", "-x", found[0], target], check=True)
    return target


def _python_files(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                if not UNWANTED_PATH.search(os.path.relpath(path, root)):
                    yield path


def _usable(text):
    if not CHARACTERS_MIN < len(text) < CHARACTERS_MAX or COPYLEFT.search(text):
        return False
    if "\t" in text or "\r" in text or "```" in text or "<|" in text:
        return False
    return sum(ord(c) > 127 for c in text) <= len(text) * 0.01 and max(map(len, text.split("\n"))) <= LINE_MAX


def shingles(text):
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if len(line) > 3]
    return {
        hashlib.blake2b("\n".join(lines[i : i + SHINGLE_LINES]).encode(), digest_size=8).digest()
        for i in range(len(lines) - SHINGLE_LINES + 1)
    }


def _texts_to_exclude(paths):
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                for field in ("before", "after", "prefix_context"):
                    if isinstance(row.get(field), str):
                        yield row[field]


def _drop_shared(files, exclude):
    forbidden = set()
    for text in _texts_to_exclude(exclude):
        forbidden |= shingles(text)
    for file in files:
        if file["role"] == "held_out":
            forbidden |= shingles(file["text"])
    kept, seen, dropped = [], set(), 0
    for file in files:
        digest = hashlib.blake2b(file["text"].encode()).digest()
        shared = file["role"] == "train" and len(shingles(file["text"]) & forbidden) > SHARED_SHINGLES_MAX
        if digest in seen or shared:
            dropped += 1
            continue
        seen.add(digest)
        kept.append(file)
    return kept, dropped


def _read(root, package, role):
    files = []
    for path in _python_files(root):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (UnicodeDecodeError, OSError):  # not Python text, or a dangling link
            continue
        if _usable(text):
            files.append({"package": package, "role": role, "path": os.path.relpath(path, root), "text": text})
    return files


def from_packages(folder, exclude):
    files = []
    for row in read_packages():
        files += _read(_unpack(row["package"], folder), row["package"], row["role"])
    return _drop_shared(files, exclude)


def from_standard_library(exclude, file_count=160):
    """Reads what every machine with Python has, without a download, which is enough for a smoke test."""
    root = os.path.dirname(os.__file__)
    files = [f for f in _read(root, "stdlib", "train") if "-packages/" not in f["path"] and "test" not in f["path"]]
    files = sorted(files, key=lambda f: hashlib.blake2b(f["path"].encode()).digest())[:file_count]
    for file in files[::8]:
        file["role"] = "held_out"
    return _drop_shared(files, exclude)


def save(files, path):
    with gzip.GzipFile(path, "wb", mtime=0) as raw:
        raw.write(json.dumps(files).encode())


def load(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)
