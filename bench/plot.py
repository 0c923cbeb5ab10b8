#!/usr/bin/env python3
"""Draws the measurements of redline-bench's studies (see bench/README.md).

    python3 bench/plot.py edit.json load.json --to plots

A study's JSON names its benchmark. Each figure of that benchmark for which the file has data becomes one file in the
folder, such as plots/edit-speed.svg. Needs Debian's python3-matplotlib (deploy/install_packages.sh plot).
"""

import argparse
import json
import pathlib
import statistics
import sys

# Okabe and Ito's colors, which most color-blind readers can tell apart. A method has the same one in every figure.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
METHOD_COLOURS = {
    "regular": "#7f7f7f", "lookup": "#0072b2", "assisted": "#e69f00", "blazedit": "#009e73", "prediction": "#cc79a7",
    "auto": "#d55e00", "reevaluate": "#7f7f7f", "shift": "#0072b2", "lazy": "#d55e00", "exact": "#7f7f7f",
    "pie": "#d55e00",
}
LIGHT_GREY = "#c8c8c8"


def group(rows, key):
    """Groups the rows by key(row), in the order in which keys first appear."""
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def colour_of(name, index):
    return METHOD_COLOURS.get(name.split(",")[0].split(" ")[0], COLOURS[index % len(COLOURS)])


def axes_for(title, note, x_label, y_label):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 4.8), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title + ("\n" if note else ""), loc="left", fontweight="bold")
    axes.text(0, 1.02, note, transform=axes.transAxes, fontsize="small", color="#555555")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(axis="y", color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend_beside(axes):
    legend = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    for handle in legend.legendHandles:
        handle.set_alpha(1)


def powers_of_two_on_x(axes, values):
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{v:g}" for v in values])
    axes.minorticks_off()


def replayed_note(data):
    parts = ["REPLAYED choices, every pass computed"] if data.get("replayed") else []
    if "draft_right" in data:
        parts.append(f"REPLAYED drafts, {100 * data['draft_right']:.0f} % right")
    return ", ".join(parts + [data.get("model", "")])


def optimum_of(runs):
    """Returns (ratio, characters per second) of each edit with the fewest possible passes, each as long as one of a row."""
    regular = {r["edit"]: r for r in runs if r["method"] == "regular" and r.get("tokens", 0) > 1}
    points = {}
    for r in runs:
        one = regular.get(r.get("edit"))
        if one is None or not r.get("least_rounds") or r["method"] == "regular":
            continue
        prompt = one["first_token_seconds"]
        pass_seconds = (one["seconds"] - prompt) / (one["tokens"] - 1)
        points[r["edit"]] = (r["edit_ratio"], r["characters"] / (prompt + r["least_rounds"] * pass_seconds))
    return sorted(points.values())


def edit_speed(data):
    """Plots characters per second of each edit by its ratio; a line joins the medians of tenths of the range."""
    runs = data.get("runs")
    if not runs:
        return None
    figure, axes = axes_for("Characters per second by edit ratio", replayed_note(data),
                            "edit ratio: changed characters / characters", "characters per second, prompt included")
    for i, (method, mine) in enumerate(group(runs, lambda r: r["method"]).items()):
        colour = colour_of(method, i)
        axes.scatter([r["edit_ratio"] for r in mine], [r["characters_per_second"] for r in mine], s=14, color=colour,
                     alpha=0.45, linewidths=0, label=method)
        tenths = group(sorted(mine, key=lambda r: r["edit_ratio"]), lambda r: min(int(10 * r["edit_ratio"]), 9))
        if len(mine) >= 20:
            axes.plot([statistics.median(r["edit_ratio"] for r in t) for t in tenths.values()],
                      [statistics.median(r["characters_per_second"] for r in t) for t in tenths.values()],
                      color=colour, linewidth=2)
    optimum = optimum_of(runs)
    if optimum:
        axes.plot(*zip(*optimum), color=COLOURS[-1], linewidth=1, linestyle=":", label="fewest passes, if rows were free")
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    legend_beside(axes)
    return figure


def typical_run(runs):
    """Returns the edit with the middle ratio, from the fastest method that drafts."""
    drafting = {m: g for m, g in group(runs, lambda r: r["method"]).items() if any(r.get("drafted") for r in g)}
    if not drafting:
        return None
    fastest = max(drafting.values(), key=lambda g: statistics.mean(r["characters_per_second"] for r in g))
    return sorted(fastest, key=lambda r: r["edit_ratio"])[len(fastest) // 2]


def edit_steps(data):
    """Plots the tokens proposed and accepted in each pass of the target model in one edit."""
    run = typical_run(data.get("runs", []))
    if run is None or not run.get("steps"):
        return None
    figure, axes = axes_for(f"Draft tokens of each pass: {run['method']} on {run['edit']}", replayed_note(data),
                            "pass of the target model", "draft tokens")
    passes = range(1, len(run["steps"]) + 1)
    axes.bar(passes, [proposed for proposed, _ in run["steps"]], color=LIGHT_GREY, label="proposed")
    axes.bar(passes, [accepted for _, accepted in run["steps"]], color=COLOURS[0], width=0.5, label="accepted")
    axes.xaxis.get_major_locator().set_params(integer=True)
    legend_beside(axes)
    return figure


def edit_timeline(data):
    """Plots the times in which each part of the process was busy in one edit."""
    run = typical_run(data.get("runs", []))
    if run is None or not run.get("timeline"):
        return None
    figure, axes = axes_for(f"Busy parts: {run['method']} on {run['edit']}", replayed_note(data),
                            "milliseconds after the first message", "")
    parts = group(run["timeline"], lambda busy: busy[0])
    for i, (part, mine) in enumerate(parts.items()):
        axes.broken_barh([(begin / 1000, (end - begin) / 1000) for _, begin, end in mine], (i - 0.4, 0.8),
                         color=colour_of(part, i))
    axes.set_yticks(range(len(parts)), list(parts))
    axes.invert_yaxis()
    return figure


def load_figure(data, title, note, y_label, value):
    """Plots a value by clients, or by requests per second where no level is a number of clients."""
    rows = [r for r in data.get("summary", []) if value in r]
    by_clients = [r for r in rows if not r["level"].endswith("/s")]
    rows = by_clients or rows
    if not rows:
        return None
    amount = lambda r: float(r["level"].split(" ")[0].removesuffix("/s"))
    figure, axes = axes_for(title, note, "clients" if by_clients else "requests per second", y_label)
    for i, (method, mine) in enumerate(group(rows, lambda r: r["method"]).items()):
        mine.sort(key=amount)
        axes.plot([amount(r) for r in mine], [r[value] for r in mine], marker="o", color=colour_of(method, i),
                  linewidth=2, label=method)
    powers_of_two_on_x(axes, sorted({amount(r) for r in rows}))
    axes.set_ylim(bottom=0)
    legend_beside(axes)
    return figure


def load_throughput(data):
    return load_figure(data, "Characters per second by load", "", "characters per second, all clients together",
                       "characters_per_second")


def load_goodput(data):
    target = data.get("target_ms", {"ttft": 0, "tpot": 0})
    return load_figure(data, "Answers within the latency target by load",
                       f"target: TTFT {target['ttft']:g} ms, TPOT {target['tpot']:g} ms",
                       "answers per second within the target", "goodput_per_second")


def copy_runs(data):
    """Plots what one run of N tokens costs compared with N decode steps."""
    runs = data.get("prices", {}).get("runs")
    if not runs:
        return None
    figure, axes = axes_for("Speed-up of one run of N tokens over N decode steps",
                            f"{data.get('model', '')}, {data.get('context', 0)} tokens in the KV cache", "N", "speed-up")
    lengths = [r["tokens"] for r in runs]
    axes.plot(lengths, [r["speed_up"] for r in runs], marker="o", color=COLOURS[1], label="logits of the last row")
    axes.plot(lengths, [r["steps_ms"] / r["all_logits_ms"] for r in runs], marker="o", color=COLOURS[0],
              label="logits of every row")
    powers_of_two_on_x(axes, lengths)
    axes.set_ylim(bottom=0)
    legend_beside(axes)
    return figure


def copy_coverage(data):
    """Plots the share of the new files that can be copied, by the shortest span that counts."""
    corpora = data.get("corpora")
    if not corpora:
        return None
    figure, axes = axes_for("What can be copied, by the shortest span that counts",
                            "greedy matches of tokens; at the left: whole lines", "tokens of a span, at least",
                            "% of the new files' tokens")
    levels = [l["level"].removeprefix("tokens >= ") for l in corpora[0]["coverage"]]
    for i, corpus in enumerate(corpora):
        axes.plot(levels, [100 * l["share"] for l in corpus["coverage"]], marker="o", color=COLOURS[i % len(COLOURS)],
                  linestyle="-" if i < len(COLOURS) else "--", label=corpus["corpus"])
    axes.set_ylim(0, 100)
    legend_beside(axes)
    return figure


def copy_moved(data):
    """Plots the share of files that come out exactly right when ends of spans are off; the mean over the corpora."""
    rows = [m for corpus in data.get("corpora", []) for m in corpus["moved"]]
    if not rows:
        return None
    figure, axes = axes_for("Files that are exact although ends of spans are off", "SIMULATED choices, all corpora",
                            "lines by which an end is off, at most", "% exact")
    kinds = {"forced": "forced", "verified": "verified", "auto_confidence": "auto by confidence",
             "auto_anchors": "auto with anchors"}
    for model, style in {"one program": ":", "plans again": "-"}.items():
        by_lines = group([r for r in rows if r["model"] == model], lambda r: r["lines"])
        for i, (field, name) in enumerate(kinds.items()):
            axes.plot(list(by_lines), [100 * statistics.mean(r[field] for r in at) for at in by_lines.values()],
                      marker="o", linestyle=style, color=COLOURS[i], label=f"{name}, {model}")
    axes.set_ylim(0, 105)
    legend_beside(axes)
    return figure


def evict_pace(data):
    """Plots the time per token after the window is full, compared with a token before that."""
    rows = data.get("rows")
    if not rows:
        return None
    figure, axes = axes_for("Time per token after the window is full",
                            f"{data.get('model', '')}, a window of {data['window']} tokens", "tokens evicted at a time",
                            "of a token before the window is full")
    for i, (policy, mine) in enumerate(group(rows, lambda r: r["policy"]).items()):
        axes.plot([r["n_discard"] for r in mine], [r["of_fixed"] for r in mine], marker="o", linewidth=2,
                  color=colour_of(policy, i), label=policy)
    powers_of_two_on_x(axes, sorted({r["n_discard"] for r in rows}))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda v, _: f"{v:g}x")
    legend_beside(axes)
    return figure


def pie_times(data):
    """Plots the time until the KV is up to date after an insertion near the start of a cached text."""
    rows = [t for t in data.get("times", []) if t["at"] <= 100]
    if not rows:
        return None
    figure, axes = axes_for("An insertion near the start of a cached text",
                            f"{data.get('model', '')}, {rows[0]['inserted']} tokens inserted", "tokens of context",
                            "milliseconds until the KV is up to date")
    for i, policy in enumerate(["exact", "pie"]):
        mine = [t for t in rows if policy + "_ms" in t]
        axes.plot([t["context"] for t in mine], [t[policy + "_ms"] for t in mine], marker="o", linewidth=2,
                  color=colour_of(policy, i), label=policy)
    powers_of_two_on_x(axes, sorted({t["context"] for t in rows}))
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    legend_beside(axes)
    return figure


FIGURES = {
    "edit": {"speed": edit_speed, "steps": edit_steps, "timeline": edit_timeline},
    "load": {"throughput": load_throughput, "goodput": load_goodput},
    "copy": {"runs": copy_runs, "coverage": copy_coverage, "moved": copy_moved},
    "evict": {"pace": evict_pace},
    "pie": {"times": pie_times},
}


def draw(path, folder, extension, only=()):
    """Draws the figures of one study's JSON, or only the named ones, and returns the files."""
    data = json.loads(path.read_text())
    benchmark = data.get("benchmark") if isinstance(data, dict) else None
    if benchmark not in FIGURES:
        raise ValueError(f"{path}: expected \"benchmark\" to be one of {', '.join(FIGURES)}, found {benchmark}")
    written = []
    for name, make in FIGURES[benchmark].items():
        figure = make(data) if not only or f"{benchmark}-{name}" in only else None
        if figure is None:
            continue
        file = folder / f"{benchmark}-{name}.{extension}"
        # Without a date the same data gives the same file.
        figure.savefig(file, dpi=120, metadata={"Date": None} if extension == "svg" else None)
        written.append(file)
    if not written:
        raise ValueError(f"{path}: has no data for a figure")
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", nargs="+", type=pathlib.Path, help="what a study wrote with --json")
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path("."), help="folder (default: this one)")
    parser.add_argument("--only", nargs="+", default=[], metavar="FIGURE",
                        choices=[f"{b}-{name}" for b, figures in FIGURES.items() for name in figures],
                        help="draw only these: %(choices)s (default: all that the data has)")
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    arguments = parser.parse_args()
    try:
        import matplotlib
    except ModuleNotFoundError:
        sys.exit(f"plot.py: {sys.executable} has no matplotlib; install it with deploy/install_packages.sh plot and "
                 "run this with /usr/bin/python3")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "redline", "font.family": "sans-serif"})
    arguments.to.mkdir(parents=True, exist_ok=True)
    for path in arguments.json:
        try:
            for file in draw(path, arguments.to, arguments.format, arguments.only):
                print(file)
        except KeyError as field:
            sys.exit(f"plot.py: {path}: expected a field {field}, found none")
        except (OSError, ValueError) as problem:
            sys.exit(f"plot.py: {problem}")


if __name__ == "__main__":
    main()
