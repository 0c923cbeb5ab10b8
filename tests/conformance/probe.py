"""Redline's grammar compiler and template engine, used through the program `conformance_probe`."""

import json
import subprocess


class Probe:
    def __init__(self, program, of_schemas=None):
        """of_schemas: Redline's own keywords, which are added to each schema."""
        self.of_schemas = of_schemas or {}
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        encoding="utf-8")

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"conformance_probe ended ({self.process.wait()}) when it was asked {question!r:.2000}")
        return json.loads(line)


def table(columns, rows):
    """Returns the lines of a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def most_frequent(counts, most=12):
    """Returns lines with the most frequent texts, and the number of others."""
    lines = [f"- {count} x {text}" for text, count in counts.most_common(most)]
    rest = len(counts) - len(lines)
    return "\n".join(lines + ([f"- and {rest} others"] if rest > 0 else []))
