"""The words that generated edits and files draw from."""
from python_source import NotApplicable, RESERVED

NOUNS = (
    "data value item result config count index name path buffer node event handler client request response table column "
    "record user group token cache limit offset start stop parser reader writer stream queue worker task status flag mode "
    "level total width height score weight label source target entry field option context session state batch model query "
    "filter map list info text line key prefix suffix root parent child size length depth order step rate ratio error "
    "message code type kind format version base extra default current previous next first last raw clean safe fast local "
    "remote main temp final active open ready"
).split()
VERBS = (
    "get set load save read write parse build make create update remove find check compute run process handle send fetch "
    "apply convert merge split render validate init close reset flush collect resolve"
).split()
CLASS_ENDINGS = (
    "Manager Handler Reader Writer Builder Parser Client Server Node Event Config Record Table Buffer Cache Queue Worker "
    "Filter Encoder Decoder Loader Factory Context Session Adapter Proxy Visitor Base View Model Form Field"
).split()
EXCEPTIONS = (
    "ValueError TypeError KeyError OSError RuntimeError Exception AttributeError IndexError NotImplementedError LookupError "
    "FileNotFoundError PermissionError TimeoutError"
).split()
MODULES = (
    "logging os sys re json time math random functools itertools collections warnings pathlib typing threading".split()
)
TYPES = "int str bool float None list dict bytes tuple object".split()


def a_sentence(random):
    noun, verb = (lambda: random.choice(NOUNS)), (lambda: random.choice(VERBS))
    return random.choice(
        [
            f"{verb().capitalize()} the {noun()} {noun()}.",
            f"Return the {noun()} of the {noun()}.",
            f"{verb().capitalize()} the {noun()} from the {noun()} {noun()}.",
            f"See the {noun()} {noun()} for details.",
            f"The {noun()} is {random.choice(['empty', 'cached', 'ready', 'valid', 'missing', 'closed'])} when the {noun()} is set.",
        ]
    )


def new_name(random, old, used, pool):
    for _ in range(20):
        way = random.random()
        if old.isupper() and len(old) > 1:
            name = "_".join(random.sample(NOUNS, random.choice([1, 2, 2]))).upper()
        elif old[:1].isupper():
            name = (
                random.choice(NOUNS).capitalize() + random.choice(CLASS_ENDINGS)
                if way < 0.7
                else random.choice(["Base", "My", "Simple", "Custom"]) + old
            )
        elif way < 0.4 and pool:
            name = random.choice(pool)
        elif way < 0.65:
            name = random.choice(VERBS) + "_" + random.choice(NOUNS)
        elif way < 0.75:
            name = random.choice(NOUNS) + "_" + random.choice(NOUNS)
        elif way < 0.85:
            name = random.choice(NOUNS)
        elif way < 0.93:
            name = old + "_" + random.choice(NOUNS + ["v2", "new", "old", "impl"])
        else:
            name = random.choice(["new_", "my_", "_", "do_"]) + old
        if (
            name not in used
            and name not in RESERVED
            and name.isidentifier()
            and name[:1].isupper() == old[:1].isupper()
        ):
            return name
    raise NotApplicable
