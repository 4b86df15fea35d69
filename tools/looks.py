"""Pictures of what users see, for docs/looks.md: python tools/looks.py.

The seven pictures that `discreet.assessment.plots` draws, objects as notebooks show them, and pages
of the documentation, which `make docs` must have built. All of it is of invented people.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import screenshots  # noqa: E402  (tools are no package)

import discreet as dc  # noqa: E402
from discreet.assessment import plots  # noqa: E402

OUT = ROOT / "docs" / "_static"
BUILT = ROOT / "docs" / "_build"
STYLE = "body { font: 15px sans-serif; margin: 1.2rem; background: white; width: 1000px; }"
PAGES = (("index.html", False), ("reference/methods.html", True))
PAGES += (("tutorials/010_first_publication.html", False), ("methods/fitting.html", True))


def draw() -> dict[str, object]:
    """The pictures, one call each."""
    people = dc.demo.census(persons=5_000)
    small, table = people.tabulate("district*marital"), people.tabulate("district*age[age]")
    noise = dc.perturbation_table(D=5, V=3, js=2)
    methods = {"cell keys": dc.CellKey(noise), "drop-add": dc.DropAdd(), "SAFE": dc.Safe()}
    drawn = {
        name: [table.simulate(method, seed=k) for k in range(5)] for name, method in methods.items()
    }
    compared = dc.compare(
        small,
        {**methods, "small count rounding": dc.SmallCountRounding(3)},
        measures=["unchanged-small-cells", "hellinger-utility"],
        fitters="least-squares",
        replicates=20,
        seed=1,
    )
    first = drawn["cell keys"][0]
    later = dc.demo.census(persons=5_100).tabulate("district*age[age]")
    second = later.simulate(dc.CellKey(noise), seed=2)
    return {
        "before-after": plots.before_after(table, first),
        "by-size": plots.deviations_by_size(table, drawn),
        "by-group": plots.disclosure_by_group(table, first, "age"),
        "map": compared.plot("unchanged-small-cells", "hellinger-utility"),
        "transitions": plots.transitions(noise, table, drawn["cell keys"]),
        "suppressed": plots.suppressed(
            dc.Suppress(dc.rules.Threshold(45)).pattern(people.tabulate("province*age[broad_age]"))
        ),
        "editions": plots.edition_changes(first, second, (table, later)),
    }


def displays() -> str:
    """Objects as a notebook shows them, as a page."""
    people = dc.demo.census(persons=5_000)
    table = people.tabulate("region[province]*age")
    release = table.protect(dc.CellKey(dc.perturbation_table(D=5, V=3, js=2), threshold=10))
    shown = (people, release, release.fit().fit_result, table.simulate("safe", seed=1))
    parts = "<hr>".join(each._repr_html_() for each in shown)
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>{parts}'


def sheet(browser: object, folder: Path) -> str:
    """Four pages of the documentation on a screen, and under them on a phone."""
    found = []
    for width, height in ((1280, 860), (390, 780)):
        for k, (page, is_dark) in enumerate(PAGES):
            screenshots._look(browser, width, "dark" if is_dark else "light")
            browser.get((BUILT / page).as_uri())
            path = folder / f"{width}-{k}.png"
            screenshots._picture(browser, width, path, height)
            shown = base64.b64encode(path.read_bytes()).decode()
            share = 480 if width > 600 else 232
            found.append(f'<img width={share} src="data:image/png;base64,{shown}">')
    style = "img { border: 1px solid #999; margin: 4px; } body { line-height: 0; }"
    return f"<!doctype html><style>{STYLE} {style}</style>{''.join(found)}"


def main() -> None:
    """Write them all."""
    for name, chart in draw().items():
        (OUT / f"looks-{name}.svg").write_text(plots.to_svg(chart), encoding="utf-8")
    browser = screenshots.driver()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = {"notebook": displays(), "documentation": sheet(browser, folder)}
        for kind, text in pages.items():
            (folder / f"{kind}.html").write_text(text, encoding="utf-8")
            screenshots._look(browser, 1040, "light")
            browser.get((folder / f"{kind}.html").as_uri())
            screenshots._picture(browser, 1040, OUT / f"looks-{kind}.png")
    browser.quit()


if __name__ == "__main__":
    main()
