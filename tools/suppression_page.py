"""Measured figures of suppression in the docs, from `docs/suppression_compared.json`.

`python tools/suppression_page.py` writes the tables of docs/suppression_compared.md, and the totals
of docs/methods/suppress.md and docs/benchmarks.md, between `<!-- measured -->` and `<!-- end -->`.
`python -m benchmarks.suppression` measures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
DATA = DOCS / "suppression_compared.json"
START, END = "<!-- measured -->\n", "<!-- end -->"
KINDS = {"public": "public", "lone": "alone", "inside": "inside", "outside": "elsewhere"}
Cases = dict[str, dict[str, Any]]


def pages() -> dict[Path, str]:
    """Each page with what is measured."""
    cases: Cases = json.loads(DATA.read_text(encoding="utf-8"))
    parts = {
        DOCS / "suppression_compared.md": every_case(cases),
        DOCS / "methods" / "suppress.md": totals(cases),
        DOCS / "benchmarks.md": totals(cases),
    }
    return {path: with_part(path.read_text(encoding="utf-8"), part) for path, part in parts.items()}


def with_part(page: str, part: str) -> str:
    """A page with what stands between the marks replaced."""
    before, rest = page.split(START)
    return f"{before}{START}\n{part}\n{END}{rest.split(END, 1)[1]}"


def every_case(cases: Cases) -> str:
    """A line for each recorded run, counts and sums apart, and the least cost of small tables."""
    parts = {"Counts": table(kind(cases, "freq_")), "Sums": table(kind(cases, "mag_"))}
    parts["Least cost"] = least(cases)
    return "\n\n".join(f"## {title}\n\n{part}" for title, part in parts.items())


def least(cases: Cases) -> str:
    """Costs of our patterns beside the least cost and its bounds."""
    head = ["table, rule", "`interval`", "`optimal`", "at least", "relaxation", "CPU s: `optimal`"]
    rows = []
    for name, case in {**kind(cases, "freq_"), **kind(cases, "mag_")}.items():
        if "least" in case:
            found, ours = case["least"], case["ours"]
            costs = (ours["cost"], found["cost"], found["bound"], ours["relaxed"])
            figures = [*(f"{round(cost):,}" for cost in costs), seconds(found["cpu"])]
            which = ", ".join(f"`{word}`" for word in name.split())
            rows.append("| " + " | ".join([which, *figures]) + " |")
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *rows])


def kind(cases: Cases, start: str) -> Cases:
    """Some of the cases, small tables first."""
    some = {name: case for name, case in cases.items() if name.startswith(start)}
    return dict(sorted(some.items(), key=lambda pair: (pair[1]["cells"], pair[0])))


def table(cases: Cases) -> str:
    """Recorded patterns beside ours."""
    short = [f"short: {word}" for word in KINDS.values()]
    head = ["table, recorded run", "cells", "sensitive", "secondary: recorded", "ours"]
    head += ["sum hidden: recorded", "ours", *short, "in sums", "ours: short", "open"]
    head += ["CPU s: recorded", "ours"]
    rows = [line(name, case) for name, case in cases.items()]
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *rows])


def line(name: str, case: dict[str, Any]) -> str:
    """One recorded run."""
    theirs, ours = case["recorded"], case["ours"]
    which, run = name.split(" ", 1)
    cells = [f"`{which}`, `{run}`", case["cells"], case["sensitive"]]
    cells += [theirs["secondary"], ours["secondary"], round(theirs["sum"]), round(ours["sum"])]
    cells += [theirs.get("short", {}).get(word) for word in KINDS] + [theirs.get("in_sums")]
    cells += [ours["short"] + ours["in_sums"], ours["unproved"]]
    return (
        "| " + " | ".join([*map(text, cells), seconds(theirs["cpu"]), seconds(ours["cpu"])]) + " |"
    )


def totals(cases: Cases) -> str:
    """All cases together that have a recorded time and were attacked, and the large ones."""
    head = ["", "runs", "secondary: recorded", "ours", "sum hidden: recorded", "ours"]
    head += ["short: recorded", "ours", "CPU s: recorded", "ours"]
    rows = []
    for title, start in (("counts", "freq_"), ("sums", "mag_")):
        some = [case for case in kind(cases, start).values() if case["recorded"]["cpu"]]
        for word, chosen in (
            (f"{title}, up to 4,000 cells", [c for c in some if "short" in c["recorded"]]),
            (f"{title}, larger", [c for c in some if "short" not in c["recorded"]]),
        ):
            if chosen:
                rows.append([word, *map(text, added(chosen))])
    lines = ["| " + " | ".join(row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def added(cases: list[dict[str, Any]]) -> list[Any]:
    """Figures of several runs added up."""
    theirs, ours = ([case[side] for case in cases] for side in ("recorded", "ours"))
    found: list[Any] = [len(cases)]
    for name in ("secondary", "sum"):
        found += [round(sum(one[name] for one in side)) for side in (theirs, ours)]
    short = [sum(one["short"].values()) for one in theirs if "short" in one]
    found += [sum(short) if short else None, sum(one["short"] for one in ours)]
    return found + [round(sum(one["cpu"] for one in side)) for side in (theirs, ours)]


def text(value: Any) -> str:
    """A number as it is written, or a dash."""
    return "–" if value is None else value if isinstance(value, str) else f"{value:,}"


def seconds(value: float | None) -> str:
    """CPU seconds, short."""
    return "–" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    for path, page in pages().items():
        path.write_text(page, encoding="utf-8")
