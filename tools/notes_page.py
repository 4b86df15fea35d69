"""Write the methods notes of three methods to `docs/examples/notes/`.

Run: python tools/notes_page.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import discreet as dc
from discreet.release.formats.write import About
from discreet.release.language import ENGLISH, Language
from discreet.release.notes import notes_files

FOLDER = Path(__file__).parents[1] / "docs" / "examples" / "notes"
METHODS = {
    "cell-key": {},
    "discrete-gaussian": {"epsilon": 1.0, "delta": 1e-9},
    "suppress": {"rules": "threshold(3)"},
}


def note_of(method: str) -> str:
    """The methods note of a release of two linked tables of the demo census."""
    people = dc.demo.census(2_000)
    table = people.tabulate("region[province]*age[broad_age] + region[province]*sex")
    release = table.protect(method, **METHODS[method])
    found = notes_files(release, About(title=f"People, protected by {method}"), Language(ENGLISH))
    return found[f"methods.{ENGLISH}.md"].decode()


if __name__ == "__main__":
    for name in METHODS:
        (FOLDER / f"{name}.md").write_text(note_of(name), encoding="utf-8")
        sys.stdout.write(f"written: {FOLDER / name}.md\n")
