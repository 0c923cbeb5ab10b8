"""Code edits made by program, each with an instruction as a person might write it.

A kind of edit is a function (ask) -> (words, new text) that raises NotApplicable where it does not fit. The instruction
must determine the new file: a reader of it can tell the one right answer. Where people leave a place open, one convention
holds everywhere; `edits_additions` names these places.
"""
import re

import edits_additions  # noqa: F401  (each of these modules registers its kinds)
import edits_code  # noqa: F401
import edits_definitions  # noqa: F401
import edits_entries  # noqa: F401
import edits_everyday  # noqa: F401
import edits_names  # noqa: F401
import edits_purposes  # noqa: F401
import edits_removals  # noqa: F401
import edits_signatures  # noqa: F401
import edits_simpler  # noqa: F401
import edits_unchanged  # noqa: F401
import edits_values  # noqa: F401
from edit_request import FUNCTIONS, KINDS, UNCHANGED, Request
from python_source import NotApplicable, Source, require

TRIES_PER_EDIT = 30


class Editor:
    """What edits draw from beside the file: `names` are identifiers that renames may take."""

    def __init__(self, names):
        self.name_pool = [name for name in names if not name[:1].isupper()]


def _one_edit(request, kind):
    """Returns (Said, the new source, which may be the old one)."""
    old = request.source
    try:
        said, new = FUNCTIONS[kind](request)
    except (IndexError, RecursionError):
        raise NotApplicable from None
    require("`" * 3 not in said.text and "\n" not in said.text)
    if new is None or kind in UNCHANGED:
        require(new is None)
        return said, old
    require(new != old.text and "`" * 3 not in new)
    source = Source(new)
    source.tree
    return said, source


def _leans_on_earlier(words, source, text, said):
    """Whether words name something that an earlier edit of the same instruction put in."""
    earlier = " ".join(part.text for part in said)
    return any(
        word in earlier and word in source.text and word not in text for word in re.findall(r"\w{2,}", words.text)
    )


def apply_edit(editor, random, text, kind):
    """Returns (instruction, new text). The new text still parses and, but for requests that ask for nothing that the file
    has, differs from the old one."""
    request = Request(random, Source(text), editor.name_pool)
    said, source = _one_edit(request, kind)
    return request.instruction([said]), source.text


def make_edit(editor, random, text, edit_count=None, kinds=None):
    """Returns (instruction, new text, kinds): one to four edits with one instruction."""
    count = edit_count or random.choices([1, 2, 3, 4], [70, 18, 8, 4])[0]
    names = [kind for kind in (kinds or KINDS) if count == 1 or kind not in UNCHANGED]
    weights = [KINDS[kind] for kind in names]
    request, said, done = Request(random, Source(text), editor.name_pool), [], []
    request.source.tree  # a text that does not parse fits no kind
    for _ in range(count * TRIES_PER_EDIT):
        if len(said) == count:
            break
        kind = random.choices(names, weights)[0]
        if kind in UNCHANGED and said:
            continue
        try:
            words, source = _one_edit(request, kind)
        except NotApplicable:
            continue
        if said and (_leans_on_earlier(words, request.source, text, said) or source.text == text):
            continue
        request.source = source
        said.append(words)
        done.append(kind)
    new = request.source.text
    require(said and (new != text or done[0] in UNCHANGED))
    return request.instruction(said), new, done
