# SPDX-License-Identifier: MIT
"""Two pictures as SVG: the frontier of hints (what a request waits more than alone, against what the batch program keeps), and how long
requests take in each row."""
from __future__ import annotations

import html
import math
from typing import Any

import rows

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 440, 84, 44, 24, 64
INK, GRID, LINE, OTHER = "#1b1f24", "#d8dde3", "#1769aa", "#b3541e"


def step_of(span: float) -> float:
    """A round distance between lines, of which 4 to 8 cover the span."""
    step = 1.0
    while span / step > 8:
        step *= 10
    while span / step < 4:
        step /= 2 if str(step)[0] != "5" else 2.5
    return step


def ticks(low: float, high: float) -> list[float]:
    step = step_of(high - low)
    first = int(low / step) * step
    values = [first + i * step for i in range(40)]
    return [value for value in values if low <= value <= high + step / 1000]


class Axes:
    """Data to picture."""

    def __init__(self, points):
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        margin_x, margin_y = max(max(xs) - min(xs), 0.5) * 0.12, max(max(ys) - min(ys), 10) * 0.12
        self.x = (min(xs) - margin_x, max(xs) + margin_x)
        self.y = (min(min(ys), 0) - margin_y, max(ys) + margin_y)

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - (y - self.y[0]) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM),
        )


def text(
    x: float, y: float, words: str, anchor: str = "middle", size: int = 13, colour: str = INK, turn: str = ""
) -> str:
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s"%s>%s</text>' % (
        x,
        y,
        anchor,
        size,
        colour,
        turn,
        html.escape(words),
    )


def frame(axes: Axes) -> list[str]:
    parts = []
    for value in ticks(*axes.x):
        x, _ = axes.at(value, axes.y[0])
        parts.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>' % (x, TOP, x, HEIGHT - BOTTOM, GRID))
        parts.append(text(x, HEIGHT - BOTTOM + 18, "%g %%" % round(value, 2)))
    for value in ticks(*axes.y):
        _, y = axes.at(axes.x[0], value)
        parts.append(
            '<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s"/>'
            % (LEFT, y, WIDTH - RIGHT, y, INK if value == 0 else GRID)
        )
        parts.append(text(LEFT - 8, y + 4, "%g" % round(value, 2), "end"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, "work the batch program keeps, of what it does alone"))
    parts.append(
        text(
            20,
            (TOP + HEIGHT - BOTTOM) / 2,
            "p99 above alone, µs",
            turn=' transform="rotate(-90 20 %.1f)"' % ((TOP + HEIGHT - BOTTOM) / 2),
        )
    )
    return parts


def mark(axes: Axes, point: tuple[float, float], words: str, colour: str, right: bool) -> list[str]:
    """A point and its name below it: the line's to the right, the others' to the left, so that neighbours do not meet."""
    x, y = axes.at(point[0], point[1])
    right = right and x < WIDTH - RIGHT - 100
    return [
        '<circle cx="%.1f" cy="%.1f" r="5" fill="%s"/>' % (x, y, colour),
        text(x + (8 if right else -8), y + 17, words, "start" if right else "end", 12, colour),
    ]


def hints(found: dict[str, Any], dry: bool = False) -> str:
    """The picture, or None where there are fewer than two points."""

    def point(name):
        f = found.get(name)
        return None if not f or f["kept"] is None or f["over_p99"] is None else (f["kept"], f["over_p99"])

    line = [(lead, point("hint-%d" % lead)) for lead in rows.LEADS if point("hint-%d" % lead)]
    others = [
        (words, point(name))
        for name, words in (
            ("gpreempt-1", "no hint"),
            ("hint-wrong", "wrong hints too"),
            ("hint-miss", "hints missing"),
        )
        if point(name)
    ]
    if len(line) < 2:
        return None
    axes = Axes([p for _, p in line + others])
    title = "Hints: added latency against batch kept, by how long ahead a request is announced"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" role="img">'
        % (WIDTH, HEIGHT, WIDTH, HEIGHT),
        "<title>%s</title>" % html.escape(title),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text(LEFT, 24, title, "start", 15),
        *frame(axes),
    ]
    path = " ".join("%s%.1f %.1f" % ("M" if i == 0 else "L", *axes.at(*p)) for i, (_, p) in enumerate(line))
    parts.append('<path d="%s" fill="none" stroke="%s" stroke-width="2"/>' % (path, LINE))
    for lead, p in line:
        parts += mark(axes, p, "%d µs" % lead, LINE, True)
    for words, p in others:
        parts += mark(axes, p, words, OTHER, False)
    if dry:
        parts.append(text(WIDTH / 2, HEIGHT / 2, "dry run: nothing was measured", size=28, colour="#c0392b"))
    return "\n".join(parts + ["</svg>"]) + "\n"


BARS = ("alone", "native-1", "mps-1", "gpreempt-1", "hint-300", "native-4", "gpreempt-4", "native-8", "gpreempt-8")
BAR_LEFT, BAR_STEP, BAR_TOP = 290, 30, 60


def bars(found: dict[str, Any], dry: bool = False) -> str:
    """How long requests take, p50 to p99, on a logarithmic scale; None where there are fewer than two rows."""
    shown = [(rows.ROWS[name].title, found[name]) for name in BARS if name in found and found[name]["p99"]]
    if len(shown) < 2:
        return None
    low = 10 ** math.floor(math.log10(min(f["p50"] for _, f in shown)))
    high = 10 ** math.ceil(math.log10(max(f["p99"] for _, f in shown)))
    height = BAR_TOP + BAR_STEP * len(shown) + 50

    def at(value):
        return BAR_LEFT + math.log(value / low) / math.log(high / low) * (WIDTH - BAR_LEFT - 90)

    title = "A request of 200 µs: p50 to p99, from arrival to completion"
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="system-ui, sans-serif" role="img">'
        % (WIDTH, height, WIDTH, height),
        "<title>%s</title>" % html.escape(title),
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text(20, 24, title, "start", 15),
    ]
    for decade in range(round(math.log10(low)), round(math.log10(high)) + 1):
        x = at(10**decade)
        parts.append(
            '<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s"/>' % (x, BAR_TOP - 12, x, height - 40, GRID)
        )
        parts.append(text(x, height - 20, "%g µs" % 10**decade if decade < 3 else "%g ms" % 10 ** (decade - 3)))
    for i, (words, f) in enumerate(shown):
        y = BAR_TOP + BAR_STEP * i
        colour = LINE if "gpreempt" in words else INK if words == "alone" else OTHER
        parts.append(text(BAR_LEFT - 12, y + 12, words, "end"))
        parts.append(
            '<rect x="%.1f" y="%d" width="%.1f" height="14" rx="3" fill="%s"/>'
            % (at(f["p50"]), y, max(at(f["p99"]) - at(f["p50"]), 3), colour)
        )
        parts.append(text(at(f["p99"]) + 8, y + 12, "%.0f, %.0f" % (f["p50"], f["p99"]), "start", 12, colour))
    if dry:
        parts.append(text(WIDTH / 2, height / 2, "dry run: nothing was measured", size=28, colour="#c0392b"))
    return "\n".join(parts + ["</svg>"]) + "\n"
