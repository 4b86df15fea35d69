"""Write docs/statements.md, every sentence of a statement: `python tools/statement_page.py`.

Sentences are found in the source itself, so that none is missed. One without a predicate needs a
line in `REASONS`: why none is possible, and the test in which somebody tries to refute it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE, PAGE = ROOT / "src" / "discreet", ROOT / "docs" / "statements.md"
_ABOUT = {"Sentence": "values", "process": "process", "limit": "limits"}
_CONSTANTS = {"SHOWN_IS_TRUE": "shown-is-true", "self.name": "(name of the method)"}
_DONE = "It says what the code did, not what values are like."
_ATTACKS, _PROTECT = "tests/attacks/", "tests/protect/"

REASONS: dict[str, tuple[str, str]] = {
    "(name of the method)": (_DONE, f"{_PROTECT}test_sentences.py"),
    "adjusted": (_DONE, f"{_PROTECT}test_adjust.py"),
    "mean": (_DONE, "tests/serve/test_measures.py"),
    "means": (_DONE, f"{_PROTECT}test_magnitude_key.py"),
    "own-noise": ("It says what somebody with knowledge of their own learns.",
                  f"{_PROTECT}test_magnitude_key.py"),
    "controlled-rounding": (_DONE, f"{_PROTECT}test_controlled_rounding.py"),
    "frequencies": (_DONE, f"{_PROTECT}test_pram.py"),
    "private-groups": ("As above, for several units.", f"{_ATTACKS}test_privacy.py"),
    "concentrated": ("As above, in ρ.", "tests/test_accounting.py"),
    "bounded-unit": (_DONE, f"{_PROTECT}test_discrete_laplace.py"),
    "bounded-weight": (_DONE, f"{_PROTECT}test_weights.py"),
    "drawn-for-mean-weight": (_DONE, f"{_PROTECT}test_mean_weight.py"),
    "hidden-by-records": (_DONE, f"{_PROTECT}test_mean_weight.py"),
    "moved-by-own-weights": ("It warns of what is not hidden.", f"{_ATTACKS}test_weights.py"),
    "changed-by-keys": (_DONE, f"{_ATTACKS}test_kept_parameters.py"),
    "parameters-kept-back": (_DONE, f"{_ATTACKS}test_kept_parameters.py"),
    "weights-vary": ("It repeats a declared figure.", f"{_PROTECT}test_mean_weight.py"),
    "weights-vary-little": ("It repeats a declared figure.", f"{_PROTECT}test_mean_weight.py"),
    "repeated": ("It speaks of an earlier edition.", f"{_ATTACKS}test_builder_editions.py"),
    "equal-values": (_DONE, "tests/synthesize/test_sentences.py"),
    "second-release": ("It speaks of another release.", "tests/synthesize/test_large.py"),
    "spent": (_DONE, f"{_PROTECT}test_discrete_gaussian.py"),
    "clipped": (_DONE, f"{_PROTECT}test_laplace.py"),
    "summed-margins": (_DONE, f"{_PROTECT}test_margins.py"),
    "weighted": (_DONE, f"{_ATTACKS}test_weights.py"),
    "quality": (_DONE, f"{_PROTECT}test_quality.py"),
    "quality-cost": ("It bounds odds between two tables.", f"{_ATTACKS}test_quality.py"),
    "inner-table": ("Its figures belong to the table they were measured on.",
                    f"{_ATTACKS}test_safe.py"),
    "safe": (_DONE, f"{_PROTECT}test_safe.py"),
    "bounds-wanted": ("Whether bounds were reached is confidential.", f"{_PROTECT}test_safe.py"),
    "groups": ("It says what is not hidden; where no group falls in one category it is empty.",
               f"{_ATTACKS}test_statements.py"),
    "nested-crossings": ("It speaks of tables that others may ask for.",
                         f"{_ATTACKS}test_builder.py"),
    "editions": ("It speaks of other editions.", f"{_ATTACKS}test_editions.py"),
    "other-releases": ("It speaks of other releases; its figures belong to a measured table.",
                       f"{_ATTACKS}test_second_releases.py"),
    "released-again": ("It speaks of another release.", f"{_ATTACKS}test_second_releases.py"),
    "public-secret": ("It speaks of the secret.", "tests/microdata/test_public_demo.py"),
    "differs-between-tables": ("It speaks of another table.", f"{_ATTACKS}test_shared_noise.py"),
    "small-count-rounding": (_DONE, f"{_PROTECT}test_small_count.py"),
    "true-counts": ("“Many” and “few” follow from the table, which stays confidential.",
                    f"{_PROTECT}test_small_count.py"),
    "no-noise": ("“Many” follows from the table, which stays confidential.",
                 f"{_PROTECT}test_tabular_adjustment.py"),
    "zeros-kept": (_DONE, "tests/release/test_zeros.py"),
    "rounded": (_DONE, "tests/release/test_rounding.py"),
    "fit-not-reached": (_DONE, "tests/solve/test_certificates.py"),
    "fitted": (_DONE, f"{_ATTACKS}test_statements.py"),
    "decimals": (_DONE, f"{_PROTECT}suppress/test_decimals.py"),
    "decimals-modulo": ("It says what is disclosed.", f"{_PROTECT}suppress/test_decimals.py"),
    "decimals-variance": ("It says what is disclosed.", f"{_PROTECT}suppress/test_decimals.py"),
    "pattern-tells": ("It speaks of neighbouring tables.", f"{_PROTECT}suppress/test_interval.py"),
    "contributor-sums": ("It speaks of what somebody with knowledge of their own can bound.",
                         f"{_PROTECT}suppress/test_attackers.py"),
    "lone-contributors": ("It says what may happen to somebody with knowledge of their own.",
                          f"{_PROTECT}suppress/test_interval.py"),
    "own-parts": ("It says what may happen to somebody with knowledge of their own.",
                  f"{_PROTECT}suppress/test_dominance.py"),
    "forced": ("Whether a forced cell was sensitive is confidential.",
               f"{_PROTECT}suppress/test_rules.py"),
    "suppress": (_DONE, f"{_PROTECT}suppress/test_interval.py"),
    "mixed-merged": (_DONE, "tests/synthesize/test_mixed.py"),
    "mixed-disclosed": ("It says what is disclosed.", "tests/synthesize/test_mixed.py"),
    "mixed-beyond": ("It says what is not preserved.", "tests/synthesize/test_mixed.py"),
    "mixed-records": (_DONE, "tests/synthesize/test_mixed.py"),
    "records": (_DONE, "tests/synthesize/test_from_tables.py"),
    "drawn": (_DONE, "tests/synthesize/test_from_tables.py"),
    "missing-category": (_DONE, "tests/synthesize/test_synthesize.py"),
    "merged-cells": (_DONE, "tests/synthesize/test_safety.py"),
    "disclosed": ("It says what is disclosed; the predicates of what is kept prove it.",
                  "tests/synthesize/test_sentences.py"),
    "beyond-model": ("It says what is not preserved.", "tests/synthesize/test_sentences.py"),
    "out-of-range": ("It says what may happen, not that it does.",
                     "tests/synthesize/test_sentences.py"),
    "near-original": ("“Nearer” is a matter of the method's parameters.",
                      f"{_ATTACKS}test_synthetic_records.py"),
    "kept-components": ("It says what is disclosed.", "tests/synthesize/test_sentences.py"),
    "repeatable": ("It speaks of another run.", f"{_ATTACKS}test_synthetic_records.py"),
    "fresh-draws": ("It speaks of other releases.", f"{_ATTACKS}test_synthetic_records.py"),
    "swapped": (_DONE, "tests/synthesize/test_swap.py"),
    "swapped-few": ("It says what is not hidden.", "tests/synthesize/test_swap.py"),
    "outliers-apart": (_DONE, "tests/synthesize/test_synthesize.py"),
    "public-outliers": ("It says what is disclosed.", "tests/synthesize/test_synthesize.py"),
    "published-columns": ("It names columns; that they are unchanged is the frame itself.",
                          "tests/synthesize/test_synthesize.py"),
}  # fmt: skip
"""By kind: why a sentence has no predicate, and where somebody tries to refute it."""


class Found(NamedTuple):
    """A sentence in the source."""

    kind: str
    about: str
    place: str
    has_predicate: bool


def sentences(source: Path = SOURCE) -> list[Found]:
    """Every sentence that the source can say, by place."""
    found: dict[tuple[str, str], Found] = {}
    for path in sorted(source.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in _calls(tree):
            shown = ast.unparse(call.args[0]) if call.args else "**"
            if shown in ("kind", "**"):  # passed on, or read from a file
                continue
            kind = _CONSTANTS.get(shown, shown.strip("'"))
            has_predicate = any(word.arg == "holds" for word in call.keywords)
            place = path.relative_to(source).as_posix()
            found.setdefault((kind, place), Found(kind, _about(call), place, has_predicate))
    return sorted(found.values(), key=lambda each: (each.place, each.kind))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _ABOUT:
            yield node


def _about(call: ast.Call) -> str:
    """What a sentence is about: said by the function's name, or as the fourth argument."""
    named = [word.value for word in call.keywords if word.arg == "about"]
    for said in (*call.args[3:4], *named):
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            return said.value
    return _ABOUT[call.func.id]  # type: ignore[attr-defined]


def page() -> str:
    """The page as it should be."""
    lines = [
        "# Every sentence of a statement",
        "",
        "A sentence about values has a predicate: `discreet.testing.laws.check_sentences` looks "
        "for releases that break it, under",
        "many secrets, and the tests show that planted faults are found. The others say here why "
        "none is possible, and in which",
        "test somebody who has read the sentence tries to refute it. Made by "
        "`tools/statement_page.py` from the source.",
        "",
        "| sentence | about | in | predicate, or why none |",
        "|---|---|---|---|",
    ]
    for each in sentences():
        shown = "predicate"
        if not each.has_predicate:
            why, test = REASONS[each.kind]
            shown = f"{why} `{test}`"
        lines.append(f"| `{each.kind}` | {each.about} | `{each.place}` | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"written: {PAGE}\n")
