"""Line charts as SVG, written by hand: no package needed."""
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 260, 64, 16, 30, 40
COLOURS = ["#1f6feb", "#d1242f", "#1a7f37", "#8250df"]


def _ticks(low, high, count=5):
    if high <= low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= min((m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= count), default=10)
    first = math.ceil(low / step)
    return [round(step * n, 10) for n in range(first, int(high / step) + 1)]


def _chart(title, series, offset, x_label):
    points = [p for rows in series.values() for p in rows]
    x_low, x_high = min(p[0] for p in points), max(p[0] for p in points)
    y_low, y_high = min(0, min(p[1] for p in points)), max(p[1] for p in points) or 1
    x_of = lambda x: LEFT + (x - x_low) / ((x_high - x_low) or 1) * (WIDTH - LEFT - RIGHT)  # noqa: E731
    y_of = (
        lambda y: offset + HEIGHT - BOTTOM - (y - y_low) / ((y_high - y_low) or 1) * (HEIGHT - TOP - BOTTOM)
    )  # noqa: E731
    out = [f'<text x="{LEFT}" y="{offset + 18}" font-weight="bold">{title}</text>']
    for y in _ticks(y_low, y_high):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(y):.1f}" y2="{y_of(y):.1f}" stroke="#d0d7de"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y_of(y) + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in _ticks(x_low, x_high, 8):
        out.append(f'<text x="{x_of(x):.1f}" y="{offset + HEIGHT - BOTTOM + 16}" text-anchor="middle">{x:g}</text>')
    out.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{offset + HEIGHT - 8}" text-anchor="middle">{x_label}</text>'
    )
    for n, (name, rows) in enumerate(series.items()):
        colour = COLOURS[n % len(COLOURS)]
        path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in rows)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out.append(
            f'<text x="{WIDTH - RIGHT}" y="{offset + 18 + 14 * n}" text-anchor="end" fill="{colour}">{name}</text>'
        )
    return out


def write(path, charts, x_label):
    """charts: title -> {name: [(x, y), ...]}"""
    charts = {title: {n: rows for n, rows in series.items() if rows} for title, series in charts.items()}
    charts = {title: series for title, series in charts.items() if series}
    body = []
    for index, (title, series) in enumerate(charts.items()):
        body += _chart(title, series, index * HEIGHT, x_label)
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * len(charts)}" '
            'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(body)
            + "\n</svg>\n"
        )
