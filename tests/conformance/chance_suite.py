"""Schemas made by chance, of keywords that meet in all ways, against the validator python3-jsonschema.

A grammar must accept no value that the validator refuses. How many of the valid values it accepts is counted.
"""

import json
import random
import re

from probe import table

NAMES = ("a", "b", "c", "ab")
SCALARS = (None, True, 1, 2, 3, 2.5, 0.5, -1, -1.5, 100, "a", "b", "ab", "", "\n", '"', [], {})
VALUES_OF_A_SCHEMA = 60

# Schemas without others in them, and the values of keywords that take no schema.
SIMPLE = (True, False, {"type": "integer"}, {"type": ["string", "null"]}, {"const": 1}, {"enum": ["a", 2, None]},
          {"minimum": 2}, {"maxLength": 1}, {"type": "object"}, {"required": ["a"]}, {"maxItems": 1}, {"pattern": "a"},
          {"type": "number"}, {"multipleOf": 0.5}, {"multipleOf": 0.25, "maximum": 2, "exclusiveMinimum": -1.5},
          {"minimum": -1.5, "maximum": 2.25}, {"exclusiveMinimum": 1},
          {"pattern": "^[ab]*$", "minLength": 2}, {"const": {"a": 1}}, {"enum": [[1], [], {"b": 2}]})
ASSERTED = (("required", (["a"], ["a", "c"])), ("minItems", (1, 2)), ("maxItems", (1, 2)), ("minProperties", (1, 2)),
            ("maxProperties", (1, 2)), ("exclusiveMinimum", (0, 1, 2.5)), ("maximum", (-1, 1, 3)),
            ("type", ("object", "array", "string", "integer", "number", ["number", "string"])),
            ("propertyNames", ({"pattern": "a"}, {"enum": ["a", "b"]}, {"maxLength": 1}, True)),
            ("dependentRequired", ({"a": ["b"]},)), ("uniqueItems", (True, False)))
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE = ("not", "additionalProperties", "items", "contains", "unevaluatedProperties", "unevaluatedItems")


class Schemas:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def make(self, depth):
        if depth == 0 or self.random.random() < 0.12:
            return self.random.choice(SIMPLE)
        schema = {}
        for _ in range(self.random.randint(1, 3)):
            schema.update(self.keyword(depth - 1))
        return schema

    def keyword(self, depth):
        choice = self.random.choice
        kind = choice(("asserted", "asserted", "list", "single", "if", "properties", "patterns", "dependent"))
        if kind == "asserted":
            name, values = choice(ASSERTED)
            return {name: choice(values)}
        if kind == "list":
            return {choice(LISTS): [self.make(depth) for _ in range(self.random.randint(1, 3))]}
        if kind == "single":
            return {choice(SINGLE): self.make(depth)}
        if kind == "if":
            return {"if": self.make(depth), choice(("then", "else")): self.make(depth)}
        if kind == "properties":
            return {"properties": {"a": self.make(depth), "b": self.make(depth)}}
        if kind == "patterns":
            return {"patternProperties": {choice(("^a", "b")): self.make(depth)}}
        return {"dependentSchemas": {"a": self.make(depth)}}


def all_values():
    values = list(SCALARS)
    for one in SCALARS:
        values += [[one], *({name: one} for name in NAMES)]
        for other in SCALARS:
            values += [[one, other], {"a": one, "b": other}, {"a": one, "c": other}]
    return values


def looked_at(validator, schema, value):
    """Returns the names or places of a value at which a schema's keywords look, which hold (python3-jsonschema 4.10
    takes the names in the schema of `additionalProperties` for those)."""
    if not isinstance(schema, dict):
        return set()
    holds = lambda one: validator.evolve(schema=one).is_valid(value)
    of = lambda one: looked_at(validator, one, value)
    found = set()
    for keyword, one in schema.items():
        if keyword in ("allOf", "anyOf", "oneOf"):
            found |= set().union(*(of(way) for way in one if holds(way)))
        elif keyword == "if":
            found |= of(one) | of(schema.get("then")) if holds(one) else of(schema.get("else"))
        elif isinstance(value, dict) and keyword == "dependentSchemas":
            found |= set().union(*(of(needs) for name, needs in one.items() if name in value))
        elif isinstance(value, dict) and keyword == "properties":
            found |= value.keys() & one.keys()
        elif isinstance(value, dict) and keyword == "patternProperties":
            found |= {name for name in value for pattern in one if re.search(pattern, name)}
        elif isinstance(value, dict) and keyword in ("additionalProperties", "unevaluatedProperties"):
            found |= value.keys()
        elif isinstance(value, list) and keyword == "prefixItems":
            found |= set(range(min(len(one), len(value))))
        elif isinstance(value, list) and keyword in ("items", "unevaluatedItems"):
            found |= set(range(len(value)))
        elif isinstance(value, list) and keyword == "contains":
            found |= {i for i, item in enumerate(value) if validator.evolve(schema=one).is_valid(item)}
    return found


def validator_class():
    from jsonschema import Draft202012Validator, ValidationError, validators

    def rest(kind, keyword, parts):
        def check(validator, one, value, schema):
            if not isinstance(value, kind):
                return
            known = looked_at(validator, {k: v for k, v in schema.items() if k != keyword}, value)
            for name, part in parts(value):
                if name not in known and not validator.evolve(schema=one).is_valid(part):
                    yield ValidationError(f"{name} does not match {keyword}")
        return check

    return validators.extend(Draft202012Validator, {
        "unevaluatedProperties": rest(dict, "unevaluatedProperties", dict.items),
        "unevaluatedItems": rest(list, "unevaluatedItems", enumerate)})


def run_chance(probe, count, seed=1):
    Validator = validator_class()
    schemas, values = Schemas(seed), all_values()
    compiled = valid = accepted = 0
    wrong = []
    for _ in range(count):
        schema = schemas.make(3)
        tried = schemas.random.sample(values, VALUES_OF_A_SCHEMA)
        said = probe.ask({"schema": schema, "texts": [json.dumps(value) for value in tried]})
        if "why" in said:
            continue
        compiled += 1
        validator = Validator(schema)
        for value, is_taken in zip(tried, said["accepted"]):
            is_valid = validator.is_valid(value)
            valid += is_valid
            accepted += is_valid and is_taken
            if is_taken and not is_valid:
                wrong.append((schema, value))
    print("## Schemas by chance against python3-jsonschema\n")
    print(table(["schemas", "compile", "valid accepted", "invalid ACCEPTED"],
                [[count, compiled, f"{accepted}/{valid}", f"**{len(wrong)}**"]]))
    for schema, value in wrong[:10]:
        print(f"\n- {json.dumps(schema)} accepts {json.dumps(value)}")
    return len(wrong)
