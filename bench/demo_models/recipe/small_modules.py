"""Small Python files as newcomers have them: constants, a few functions, a class, a main block, 15 to 60 lines."""
import re

from vocabulary import NOUNS, VERBS

THINGS = (
    "user order book invoice task player product ticket student movie recipe car city account message customer employee note "
    "song photo article comment contact device sensor payment package project room score server team vehicle word pet "
    "animal item shop job log file report event lesson course plant game card reading member guest flight hotel bill link "
    "post tag image page coupon expense habit goal workout meal ingredient country phone address delivery"
).split()
FIELDS = (
    "name price email age title total status color size quantity rating date owner city score level category amount weight "
    "phone author year height balance count tax discount active done priority description id code length speed"
).split()
WORDS = (
    "hello world welcome start done ready error loading saved missing invalid unknown finished empty closed open failed "
    "success warning updated deleted created connected retrying"
).split()
NAMES = "Ada Bob Carl Dina Eva Finn Grace Hugo Ida John Karl Lena Maria Nils Olga Paul Rosa Sam Tina Zoe".split()
FILE_ENDINGS = "csv json txt log db yaml ini dat".split()
SETTINGS = (
    "MAX_{T}S=10|50|100|200 TIMEOUT=5|10|30|60 RETRIES=3|5 DEBUG=True|False VERBOSE=True|False PORT=8000|8080|5000 "
    "HOST='localhost'|'127.0.0.1'|'0.0.0.0' VERSION='1.0.0'|'0.3.1'|'2.1.4'|'1.2.0' DEFAULT_{U}=0|1|'none'|'unknown' "
    "{T}_FILE='{t}s.csv'|'data/{t}s.json'|'{t}.txt' BASE_URL='https://example.com'|'http://localhost:8000'|'https://api.example.com/v1' "
    "BATCH_SIZE=16|32|64 TAX_RATE=0.19|0.2|0.07 MIN_{U}=1|5|18 USE_CACHE=True|False LOG_LEVEL='INFO'|'DEBUG' "
    "PAGE_SIZE=20|25|50 THRESHOLD=0.5|0.8|0.75 DELAY=0.1|1.5|2 ENCODING='utf-8'|'latin-1' MAX_RETRIES=3|5|10 LIMIT=10|100|1000 "
    "__version__='0.1.0'|'1.4.2'|'2.0'|'0.9.7' DEBUG=False|True DB_PATH='{t}s.db'|'app.db' GREETING='Hello'|'Hi'|'Welcome'"
).split()

# Each template is one function; the first line in angle brackets lists the imports that it needs. {t} is a thing, {T} the
# same in capitals, {C} as a class, {f}, {g} and {h} are fields, {w} a word, {n} and {m} numbers, {v} a verb, {q} the quote.
FUNCTIONS = [
    "<>\ndef add_{t}({t}s, {t}):\n    {t}s.append({t})\n    return {t}s",
    "<>\ndef get_{f}s({t}s):\n    result = []\n    for {t} in {t}s:\n        result.append({t}.{f})\n    return result",
    "<>\ndef get_{f}s({t}s):\n    result = []\n    for {t} in {t}s:\n        if {t}.{g} > {n}:\n            result.append({t}.{f})\n    return result",
    '<>\ndef find_{t}({t}s, {f}):\n    """Return the first {t} with this {f}."""\n    for {t} in {t}s:\n        if {t}["{f}"] == {f}:\n            return {t}\n    return None',
    "<>\ndef total_{f}({t}s):\n    total = 0\n    for {t} in {t}s:\n        total += {t}.{f}\n    return total",
    '<>\ndef print_{t}({t}):\n    print("{F}: " + str({t}.{f}))\n    print("{G}:", {t}.{g})',
    '<>\ndef greet({f}):\n    return "{w}, " + {f} + "!"',
    '<>\ndef describe_{t}({t}):\n    return "%s has {f} %s" % ({t}.{g}, {t}.{f})',
    '<>\ndef format_{t}({f}, {g}={n}):\n    return "{} ({})".format({f}, {g})',
    '<>\ndef show_{t}s({t}s):\n    # print one line for each {t}\n    for i, {t} in enumerate({t}s):\n        print(f"{i}: {{t}}")',
    "<>\ndef is_valid_{f}({f}):\n    if {f} == None:\n        return False\n    if {f} < {n}:\n        return False\n    return True",
    '<>\ndef check_{f}({f}):\n    if {f} > {n}:\n        return "high"\n    elif {f} > {m}:\n        return "medium"\n    else:\n        return "low"',
    '<>\ndef parse_{f}(text):\n    try:\n        return int(text)\n    except ValueError:\n        print("{w} {f}")\n        return None',
    '<csv>\ndef load_{t}s(path):\n    """Load all {t}s from a CSV file."""\n    {t}s = []\n    with open(path) as f:\n        reader = csv.DictReader(f)\n        for row in reader:\n            {t}s.append(row)\n    return {t}s',
    '<json>\ndef load_{t}s(path="{t}s.json"):\n    with open(path) as f:\n        return json.load(f)',
    '<json>\ndef save_{t}s({t}s, path):\n    with open(path, "w") as f:\n        json.dump({t}s, f, indent=2)\n    print("{w}")',
    "<>\ndef read_lines(path):\n    lines = []\n    for line in open(path):\n        line = line.strip()\n        if not line:\n            continue\n        lines.append(line)\n    return lines",
    '<requests>\ndef fetch_{t}({t}_id):\n    response = requests.get(f"https://example.com/{t}s/{{t}_id}")\n    response.raise_for_status()\n    return response.json()',
    '<requests>\ndef download(url, timeout={n}):\n    response = requests.get(url, timeout=timeout)\n    if response.status_code != 200:\n        raise Exception("{w}: " + url)\n    return response.text',
    '<sqlite3>\ndef get_{t}s(db_path):\n    connection = sqlite3.connect(db_path)\n    cursor = connection.cursor()\n    cursor.execute("SELECT {f}, {g} FROM {t}s")\n    rows = cursor.fetchall()\n    connection.close()\n    return rows',
    "<random>\ndef random_{t}({t}s):\n    if not {t}s:\n        return None\n    return random.choice({t}s)",
    "<time>\ndef wait_for_{t}({t}, seconds={n}):\n    for _ in range(seconds):\n        if {t}.{f}:\n            return True\n        time.sleep(1)\n    return False",
    '<os>\ndef {t}_files(folder):\n    files = os.listdir(folder)\n    return [f for f in files if f.endswith(".{e}")]',
    "<datetime>\ndef today():\n    return datetime.date.today().isoformat()",
    "<>\ndef average(values):\n    if len(values) == 0:\n        return 0\n    return sum(values) / len(values)",
    "<>\ndef apply_discount(price, discount={n}):\n    # discount is in percent\n    return price - price * discount / 100",
    "<>\ndef {v}_{t}({t}, {f}, {g}=None):\n    if {g} is None:\n        {g} = {n}\n    {t}.{f} = {f}\n    {t}.{g} = {g}\n    return {t}",
    '<>\ndef count_{f}s({t}s):\n    counts = {}\n    for {t} in {t}s:\n        key = {t}["{f}"]\n        counts[key] = counts.get(key, 0) + 1\n    return counts',
    "<>\ndef sort_{t}s({t}s, reverse=False):\n    return sorted({t}s, key=lambda {t}: {t}.{f}, reverse=reverse)",
    "<>\ndef remove_{t}({t}s, {f}):\n    return [{t} for {t} in {t}s if {t}.{f} != {f}]",
    '<>\ndef make_{t}({f}, {g}):\n    return {\n        "{f}": {f},\n        "{g}": {g},\n        "{h}": {n},\n    }',
    "<>\ndef clamp(value, low=0, high={n}):\n    if value < low:\n        return low\n    if value > high:\n        return high\n    return value",
    '<logging>\ndef {v}_{t}s({t}s):\n    logging.info("{v} {t}s")\n    for {t} in {t}s:\n        {v}_{t}({t})',
    '<>\ndef divide(a, b):\n    if b == 0:\n        raise ValueError("{w}")\n    return a / b',
    '<>\ndef ask_{f}():\n    answer = input("{F}? ")\n    while answer == "":\n        answer = input("{F}? ")\n    return answer',
    "<>\ndef {v}_{f}({f}):\n    if type({f}) == str:\n        return {f}.strip().lower()\n    return {f}",
    "<>\ndef is_even(number):\n    return number % 2 == 0",
    "<>\ndef factorial(n):\n    if n <= 1:\n        return 1\n    return n * factorial(n - 1)",
    "<>\ndef fibonacci(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a",
    '<re>\ndef is_email(text):\n    return re.match(r"[^@]+@[^@]+", text) is not None',
    "<>\ndef celsius_to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32",
    "<>\ndef squares(limit):\n    result = []\n    for i in range(limit):\n        result.append(i * i)\n    return result",
    "<>\ndef count_words(text):\n    counts = {}\n    for word in text.split():\n        word = word.lower()\n        if word not in counts:\n            counts[word] = 0\n        counts[word] += 1\n    return counts",
    '<subprocess>\ndef run(command):\n    result = subprocess.run(command, capture_output=True, text=True)\n    if result.returncode != 0:\n        print("{w}:", result.stderr)\n    return result.stdout',
    "<>\ndef {v}_lines(path):\n    f = open(path)\n    lines = f.readlines()\n    f.close()\n    return lines",
    '<json>\ndef {v}_{t}s_to(path, {t}s):\n    f = open(path, "w")\n    json.dump({t}s, f)\n    f.close()',
    '<>\ndef is_{w}({t}):\n    if {t}.{f} == "{w}":\n        return True\n    return False',
    '<>\ndef is_{f}_{w}({t}):\n    if {t}["{f}"] > {n}:\n        return True\n    else:\n        return False',
    "<>\ndef has_{f}({t}s, {f}):\n    for {t} in {t}s:\n        if {t}.{f} == {f}:\n            return True\n    return False",
    '<>\ndef has_{w}_{t}({t}s):\n    for {t} in {t}s:\n        if {t}["{g}"] >= {n}:\n            return True\n    return False',
    "<>\ndef {f}_of_all({t}s):\n    result = 0\n    for {t} in {t}s:\n        if {t}.{g} > {m}:\n            result += {t}.{f}\n    return result",
    '<logging>\ndef {v}_{t}({t}):\n    if {t} is None:\n        logging.warning("no {t}")\n        return False\n    logging.debug("{v} %s", {t})\n    return True',
    '<logging>\ndef {v}_all({t}s):\n    for {t} in {t}s:\n        try:\n            {t}.{v}()\n        except Exception as e:\n            logging.error("{w}: %s", e)',
    '<hashlib>\ndef hash_{f}({f}):\n    return hashlib.md5({f}.encode()).hexdigest()',
    '<time>\ndef measure(function):\n    start = time.time()\n    function()\n    return time.time() - start',
    '<argparse>\ndef parse_arguments():\n    parser = argparse.ArgumentParser(description="{w} {t}s")\n    parser.add_argument("path")\n    parser.add_argument("--{f}", type=int, default={n})\n    parser.add_argument("--verbose", action="store_true")\n    return parser.parse_args()',
    '<sys>\ndef usage():\n    print("usage: {t}.py PATH [{U}]")\n    sys.exit(1)',
    '<>\ndef {t}_extension(name):\n    if name.endswith((".jpg", ".png", ".{e}")):\n        return True\n    return False',
    '<re>\ndef find_{f}s(text):\n    pattern = re.compile(r"[a-z]+")\n    return pattern.findall(text)',
    "<threading>\nlock = threading.Lock()\n\n\ndef {v}_safely({t}):\n    with lock:\n        {t}.{v}()",
    '<>\ndef {t}_line({t}):\n    return {t}.{f} + ";" + str({t}.{g}) + ";" + {t}.{h}',
    '<>\ndef {t}_label({t}):\n    return "{F}: {} ({G} {})".format({t}.{f}, {t}.{g})',
    '<>\ndef read_{f}():\n    while True:\n        answer = input("{F}: ")\n        if answer in ("y", "n"):\n            return answer == "y"\n        print("{w}")',
    '<>\ndef to_{f}(text):\n    try:\n        return float(text)\n    except:\n        return {m}',
    '<>\ndef show_{f}({t}):\n    print(f"{F}: {{t}.{f}:.2f}")',
    '<>\ndef format_{f}(value):\n    return "%.2f {w}" % value',
    '<>\ndef print_total({t}s):\n    total = sum({t}["{f}"] for {t} in {t}s)\n    print(f"total: {total:.1f}")',
    "<>\ndef first_{t}s({t}s, count={n}):\n    return {t}s[:count]",
    "<>\ndef last_{t}s({t}s, count={n}):\n    return {t}s[-count:]",
    "<>\ndef {v}_pages(url, limit={n}, quiet=False):\n    for page in range(limit):\n        {v}_page(url + str(page), quiet=quiet)",
    "<>\ndef {v}_page(url, limit={n}, quiet=False):\n    if not quiet:\n        print(url)\n    return url[:limit]",
    "<>\ndef update_{t}({t}, **changes):\n    for key, value in changes.items():\n        setattr({t}, key, value)\n    return {t}",
]
METHODS = [
    "def add_{f}(self, {f}):\n    self.{f}s.append({f})",
    "def get_{f}(self):\n    return self.{f}",
    "def set_{f}(self, {f}):\n    self.{f} = {f}",
    'def __repr__(self):\n    return "{C}(" + self.{f} + ")"',
    'def __str__(self):\n    return f"{self.{f}} ({self.{g}})"',
    "def is_{w}(self):\n    return self.{f} == None",
    "def increase_{f}(self, amount=1):\n    self.{f} += amount\n    return self.{f}",
    'def show(self):\n    """Print the {t}."""\n    print("{F}:", self.{f})\n    print("{G}:", self.{g})',
    'def {v}(self, {h}, verbose=False):\n    if verbose:\n        print("{v}", {h})\n    self.{h} = {h}\n    return True',
    'def withdraw(self, amount):\n    if amount > self.{f}:\n        raise ValueError("{w}")\n    self.{f} -= amount',
    'def to_dict(self):\n    return {"{f}": self.{f}, "{g}": self.{g}}',
    "def reset(self):\n    self.{f} = 0\n    self.{g} = None",
    "@property\ndef full_{f}(self):\n    return self.{f}.title()",
    '@staticmethod\ndef from_text(text):\n    {f}, {g} = text.split(",")\n    return {C}({f}, {g})',
    "def __len__(self):\n    return len(self.{f}s)",
    "def {v}_text(self, text):\n    return text.strip().lower()",
    "def {v}_{h}s(self, values):\n    return [value * {n} for value in values]",
    "def has_{f}(self, {h}):\n    for {g} in self.{f}s:\n        if {g} == {h}:\n            return True\n    return False",
    "def is_{w}(self):\n    if self.{f} > {n}:\n        return True\n    return False",
    "def total(self):\n    total = 0\n    for {g} in self.{f}s:\n        total += {g}.{h}\n    return total",
    'def log(self, message):\n    logger.debug("%s: %s", self.{f}, message)',
    'def check(self):\n    if self.{f} is None:\n        raise ValueError("no {f}")\n    return self.{f}',
]
TESTS = [
    'def test_{v}_{t}():\n    {t} = make_{t}("{w}", {n})\n    assert {t}["{f}"] == "{w}"',
    "def test_average():\n    assert average([1, 2, 3]) == 2",
    "def test_{f}_is_{w}():\n    assert get_{f}({n}) == {m}\n    assert get_{f}({m}) != {n}",
    "def test_empty_{t}s():\n    {t}s = []\n    assert total_{f}({t}s) == 0",
    'def test_{t}_{f}():\n    {t} = {C}("{p}", {n})\n    assert {t}.{f} == "{p}"',
    "def test_{v}_raises():\n    with pytest.raises(ValueError):\n        {v}_{t}(None)",
]
ROUTES = [
    '@app.route("/{t}s")\ndef list_{t}s():\n    return jsonify({t}s)',
    '@app.route("/{t}s/<int:{t}_id>")\ndef get_{t}({t}_id):\n    {t} = {t}s.get({t}_id)\n    if {t} is None:\n        return "not found", 404\n    return jsonify({t})',
    '@app.route("/")\ndef index():\n    return "{w}"',
    '@app.route("/health")\ndef health():\n    return {"status": "ok"}',
    '@app.route("/{t}s/<int:{t}_id>", methods=["DELETE"])\ndef delete_{t}({t}_id):\n    if {t}_id not in {t}s:\n        return jsonify({"error": "no such {t}"}), 404\n    del {t}s[{t}_id]\n    return "", 204',
    '@app.route("/login", methods=["POST"])\ndef login():\n    data = request.get_json()\n    if "name" not in data:\n        return jsonify({"error": "name missing"}), 400\n    return jsonify({"ok": True})',
    '@app.route("/{t}s", methods=["POST"])\ndef create_{t}():\n    data = request.get_json()\n    {t}s[data["id"]] = data\n    return jsonify(data), 201',
]
COMMENTS = [
    "# {v} the {t}",
    "# TODO: {v} {f}",
    "# all {t}s",
    "# settings",
    "# helper functions",
    "# the {f} of the {t}",
    "# default {f}",
]
TYPES_OF = {
    "path": "str",
    "text": "str",
    "url": "str",
    "values": "list",
    "number": "int",
    "n": "int",
    "price": "float",
    "{t}s": "list",
    "limit": "int",
    "name": "str",
    "age": "int",
    "email": "str",
    "title": "str",
    "count": "int",
}


def returned_type(text):
    """Guesses what a function returns, as its author would annotate it."""
    found = re.findall(r"return (.*)", text)
    last = found[-1] if found else "None"
    if last in ("True", "False", "None"):
        return "None" if last == "None" else "bool"
    if re.match(r"(\[|sorted|result|lines|rows|\w+s$)", last):
        return "list"
    if re.match(r"(counts|\{)", last):
        return "dict"
    return "str" if re.search(r"[\"']|text|upper|lower", last) else "float" if "/" in last else "int"


class Writer:
    """Writes one module: the same thing and fields all through, and one style of quotes and annotations."""

    def __init__(self, random):
        self.random = random
        self.thing, self.other = random.sample(THINGS, 2)
        self.fields = random.sample(FIELDS, 6)
        self.quote = random.choice(["'", '"', '"'])
        self.annotated, self.comments, self.docstrings = (
            random.random() < 0.3,
            random.random() < 0.5,
            random.random() < 0.4,
        )

    def filled(self, text, thing=None):
        random, t = self.random, thing or self.thing
        f, g, h = random.sample(self.fields, 3)
        values = {
            "t": t,
            "T": t.upper(),
            "C": t.capitalize(),
            "f": f,
            "g": g,
            "h": h,
            "F": f.capitalize(),
            "G": g.capitalize(),
            "U": f.upper(),
        }
        values |= {
            "w": random.choice(WORDS),
            "v": random.choice(VERBS),
            "e": random.choice(FILE_ENDINGS),
            "p": random.choice(NAMES),
        }
        values |= {
            "n": str(random.choice([2, 3, 5, 10, 18, 20, 30, 50, 60, 100])),
            "m": str(random.choice([0, 1, 4, 7, 15, 25, 42, 80])),
        }
        return re.sub(r"\{(\w)\}", lambda match: values.get(match[1], match[0]), text)

    def function(self, templates, thing=None, indent=0):
        text = self.filled(self.random.choice(templates), thing)
        imports, text = text.split("\n", 1) if text.startswith("<") else ("<>", text)
        if self.annotated:
            head, _, rest = text.partition("\n")
            if head.startswith("def "):
                head = re.sub(
                    r"\b(\w+)(?=[,)])", lambda m: f"{m[1]}: {TYPES_OF[m[1]]}" if m[1] in TYPES_OF else m[1], head
                )
                head = re.sub(r"\):$", f") -> {returned_type(text)}:", head)
            text = head + "\n" + rest
        if text.startswith("def ") and self.random.random() < 0.09:  # a parameter that nothing uses
            text = re.sub(
                r"\)( -> \w+)?:\n",
                lambda m: f", {self.random.choice(['verbose=False', 'debug=False', 'options=None', 'strict=True', 'logger=None'])}){m[1] or ''}:\n",
                text,
                count=1,
            )
            text = text.replace("(, ", "(").replace("**changes, ", "")
        if self.docstrings and text.startswith("def ") and '"""' not in text and self.random.random() < 0.6:
            head, _, rest = text.partition("\n")
            words = self.filled(
                self.random.choice(
                    [
                        "{V} the {t}.",
                        "Return the {f}.",
                        "{V} {t}s.",
                        "Return True if the {t} is {w}.",
                        "{V} the {f} of a {t}.",
                    ]
                )
            )
            text = f'{head}\n    """{words.replace("{V}", self.random.choice(VERBS).capitalize())}"""\n{rest}'
        if self.random.random() < 0.12:
            lines = text.split("\n")
            at = next((i for i in range(1, len(lines)) if lines[i].startswith("    ") and '"""' not in lines[i]), None)
            if at and text.startswith("def"):
                name = re.match(r"def (\w+)", text)[1]
                lines.insert(
                    at, f'    print("{self.random.choice([name, "debug", "in " + name, self.random.choice(WORDS)])}")'
                )
                text = "\n".join(lines)
        return imports.strip("<>"), "\n".join(" " * indent + line if line else line for line in text.split("\n"))

    def settings(self):
        rows = []
        for entry in self.random.sample(SETTINGS, self.random.choice([0, 1, 2, 2, 3, 4])):
            name, values = self.filled(entry).split("=", 1)
            row = f"{name} = {self.random.choice(values.split('|'))}"
            rows.append(
                row
                + (
                    f"  # {self.filled(self.random.choice(['in seconds', 'the {f}', 'see the {t}']))}"
                    if self.comments and self.random.random() < 0.15
                    else ""
                )
            )
        random, t = self.random, self.thing
        if random.random() < 0.35:
            pairs = [
                (f, random.choice([str(random.randint(1, 99)), f'"{random.choice(WORDS)}"', "True", "None"]))
                for f in random.sample(self.fields, random.randint(2, 4))
            ]
            name = random.choice(
                [t.upper() + "_DEFAULTS", "CONFIG", "SETTINGS", "config", t + "_prices", "defaults", "OPTIONS"]
            )
            body = [f'"{key}": {value}' for key, value in pairs]
            rows.append(
                f"{name} = {{" + ", ".join(body) + "}"
                if random.random() < 0.4
                else f"{name} = {{\n" + "".join(f"    {b},\n" for b in body) + "}"
            )
        if random.random() < 0.35:
            items = random.choice(
                [random.sample(NAMES, 3), random.sample(WORDS, 4), random.sample(FIELDS, 3), random.sample(THINGS, 4)]
            )
            items = (
                [f'"{item}"' for item in items]
                if random.random() < 0.75
                else [str(random.randint(1, 60)) for _ in range(4)]
            )
            name = random.choice(
                ["NAMES", "COLORS", "ALLOWED", "names", t + "_types", "STATUSES", "COLUMNS", "columns", "TAGS"]
            )
            rows.append(
                f"{name} = [" + ", ".join(items) + "]"
                if random.random() < 0.6
                else f"{name} = [\n" + "".join(f"    {i},\n" for i in items) + "]"
            )
        return rows

    def class_(self):
        random = self.random
        own = random.sample(self.fields, random.choice([2, 2, 3]))
        rest = [f for f in self.fields if f not in own]
        base = random.choice(["", "", "", "", "(object)", "(Base)", "(Model)"])
        lines = [f"class {self.thing.capitalize()}{base}:"]
        if self.docstrings:
            lines.append(f'    """A {self.thing} with its {own[0]}."""')
            lines.append("")
        if random.random() < 0.2:
            value = random.choice(["0", f'"{self.thing}s"'])
            lines += [f"    {random.choice(['kind', 'table', 'count'])} = {value}", ""]
        parameters = [f"{f}: {TYPES_OF.get(f, 'str')}" if self.annotated else f for f in own]
        if random.random() < 0.4:
            parameters[-1] += (
                random.choice([" = 0", ' = ""', " = None"])
                if self.annotated
                else random.choice(["=0", '=""', "=None", "=10"])
            )
        lines.append(f"    def __init__(self, {', '.join(parameters)}):")
        lines += [f"        self.{f} = {f}" for f in own]
        if random.random() < 0.5:
            lines.append(
                f"        self.{rest[0]}{random.choice(['s = []', ' = None', ' = 0', ' = False', ' = True', ' = {}'])}"
            )
        kept, self.fields = self.fields, own + rest[:1]
        for _ in range(random.choice([1, 2, 2, 3])):
            while len(self.fields) < 3:
                self.fields.append(random.choice(rest))
            _, text = self.function(METHODS, indent=4)
            name = re.search(r"def (\w+)", text)[1]
            if f"def {name}(" not in "\n".join(lines):
                lines += ["", text]
        self.fields = kept
        return "\n".join(lines)

    def main(self, functions):
        random, t = self.random, self.thing
        lines = []
        for name, count in random.sample(functions, min(len(functions), random.choice([1, 2, 2, 3]))):
            values = [
                random.choice(
                    [
                        str(random.randint(1, 50)),
                        f'"{random.choice(NAMES)}"',
                        f"{t}s",
                        f'"{t}s.csv"',
                        f'"{random.choice(WORDS)}"',
                    ]
                )
                for _ in range(count)
            ]
            call = f"{name}({', '.join(values)})"
            lines.append(
                random.choice(
                    [call, f"print({call})", f"{random.choice(['result', 'value', t, t + 's', 'found'])} = {call}"]
                )
            )
        if random.random() < 0.5:
            lines.append(
                random.choice(
                    [
                        f'print("{random.choice(WORDS)}")',
                        f"print({random.choice(['result', t, t + 's'])})",
                        f'print("{t.capitalize()}s: " + str(len({t}s)))',
                        f'print("Total: %d" % len({t}s))',
                        f'print(f"{random.choice(WORDS)} {{{t}s}}")',
                    ]
                )
            )
        way = random.random()
        if way < 0.4:
            return ['if __name__ == "__main__":\n' + "\n".join("    " + line for line in lines)]
        if way < 0.75:
            head = "def main():\n" + "\n".join("    " + line for line in lines)
            return [
                head,
                random.choice(
                    ['if __name__ == "__main__":\n    main()', 'if __name__ == "__main__":\n    main()', "main()"]
                ),
            ]
        return ["\n".join(lines)]

    def module(self):
        random, imports, blocks = self.random, set(), []
        style = random.choices(["plain", "class", "tests", "web", "both"], [42, 16, 12, 12, 18])[0]
        settings = self.settings() if style != "tests" or random.random() < 0.2 else []
        if self.comments and settings and random.random() < 0.4:
            settings.insert(random.randrange(len(settings)), self.filled(random.choice(COMMENTS)))
        if style in ("class", "both"):
            blocks.append(self.class_())
        names = set()
        templates = {"plain": FUNCTIONS, "tests": TESTS, "web": ROUTES, "class": FUNCTIONS, "both": FUNCTIONS}[style]
        wanted = {"class": [0, 1], "tests": [2, 3, 4, 5], "web": [2, 3, 4]}.get(style, [2, 3, 3, 4, 5, 6])
        for _ in range(random.choice(wanted)):
            needed, text = self.function(templates, random.choice([None, None, None, self.other]))
            found = re.search(r"^def (\w+)\((.*?)\)", text, re.M)
            if found[1] in names:
                continue
            names.add(found[1])
            imports |= set(needed.split())
            if self.comments and random.random() < 0.2:
                text = self.filled(random.choice(COMMENTS)) + "\n" + text
            blocks.append(text)
        if style == "web":
            settings = ["app = Flask(__name__)", f"{self.thing}s = {{}}"] + settings
            blocks += (
                [
                    'if __name__ == "__main__":\n    app.run('
                    + random.choice(["", "debug=True", "port=5000", "debug=True, port=8000"])
                    + ")"
                ]
                if random.random() < 0.6
                else []
            )
        elif style != "tests" and random.random() < 0.65:
            functions = re.findall(r"^def (\w+)\((.*?)\)", "\n".join(blocks), re.M)
            functions = [
                (n, len([p for p in a.split(",") if p.strip() and "=" not in p and "*" not in p])) for n, a in functions
            ]
            blocks += self.main(functions) if functions else []
        heads = [f"import {name}" for name in imports]
        if random.random() < 0.4:
            heads.append(
                "import " + random.choice("os sys json time math random logging re datetime collections".split())
            )
        if random.random() < 0.25:
            heads.append(
                random.choice(
                    [
                        "from typing import List, Optional",
                        "from collections import Counter, defaultdict",
                        "from pathlib import Path",
                        "from datetime import datetime, timedelta",
                        "from dataclasses import dataclass",
                        "from os import path, listdir",
                        f"from .{self.thing} import {random.choice(VERBS)}_{random.choice(NOUNS)}",
                    ]
                )
            )
        if style == "web":
            heads.append("from flask import Flask, jsonify" + random.choice([", request", "", ", request, abort"]))
        if style == "tests":
            heads += ["import pytest"] if "pytest" in "\n".join(blocks) or random.random() < 0.5 else []
            heads += [f"from {self.thing}s import {self.thing.capitalize()}, make_{self.thing}"]
        heads = (
            sorted(set(heads), key=lambda line: (line.startswith("from"), line))
            if random.random() < 0.7
            else random.sample(sorted(set(heads)), len(set(heads)))
        )
        if random.random() < 0.2:
            settings.insert(0, "logger = logging.getLogger(__name__)")
            heads = [h for h in heads if h != "import logging"] + ["import logging"]
        parts = ["\n".join(heads)] if heads else []
        parts += ["\n".join(settings)] if settings else []
        text = "\n\n".join(parts)
        gap = "\n\n" if random.random() < 0.15 else "\n\n\n"
        text = gap.join(([text] if text else []) + blocks) + "\n"
        if random.random() < 0.15:
            words = self.filled(
                random.choice(
                    [
                        "Tools for {t}s.",
                        "{C} management.",
                        "A small script that works with {t}s.",
                        "Helpers for the {t} {f}.",
                    ]
                )
            )
            text = f'"""{words}"""\n' + text
        if random.random() < 0.25:
            text = text.replace(" is None", " == None").replace(" is not None", " != None")
        if self.quote == "'":
            text = re.sub(r'(?<!")"([^"\'\n\\]*)"(?!")', r"'\1'", text)
        else:
            text = re.sub(r"(?<![\w'])'([^\"'\n\\]*)'(?!\w)", r'"\1"', text)
        return text


def small_module(random):
    """Returns the text of a module."""
    for _ in range(20):
        text = Writer(random).module()
        if 8 <= text.count("\n") <= 75:
            return text
    return text
