"""How one edition of a data set is drawn after another: the mode, as plain data.

Every office publishes again next year, and two editions tell more than one. What they tell
depends on how the noise of the second hangs together with that of the first; `docs/editions.md` has
the measured figures of every mode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from discreet.errors import ParameterError

Kind = Literal["kept", "fresh", "renewed", "phased", "given"]
_KINDS: tuple[str, ...] = get_args(Kind)
_OLD = {"redrawn": "fresh"}  # what version 0.2 called it; ends with version 0.4
DRAWS_NOTHING = "this method draws nothing"
"""Why editions are fresh where shown values are the true ones."""
CHOICES = "'kept', 'fresh', 'renewed:SHARE', 'phased:EVERY' or 'phased'"


@dataclass(frozen=True)
class EditionMode:
    """How the values of an edition follow those of the one before.

    `kept`: a record keeps its key, so that a cell shows whether its records changed. `fresh`: every
    edition has keys of its own. `renewed`: a keyed share of the records draws a new key for every
    edition. `phased`: a published value is repeated, and drawn afresh every m-th edition; which
    cells are due follows from a keyed hash of the cell and never from the records. `given`: keys
    came with the records, and nobody here knows whether they stay.

    Attributes:
      kind: Which of them.
      share: Share of the records that a renewed edition gives new keys.
      every: After how many editions a phased value is drawn afresh; `None` leaves it to the rule.
    """

    kind: Kind
    share: float | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        if (self.kind == "renewed") != (self.share is not None):
            raise ParameterError("a share goes with renewed keys, and with them alone.")
        if self.share is not None and not 0 < self.share < 1:
            raise ParameterError(
                f"the share of renewed keys must lie between 0 and 1, got {self.share:g}. "
                "'kept' renews none of them and 'fresh' renews all."
            )
        if self.every is not None and (self.kind != "phased" or self.every < 1):
            raise ParameterError(f"phased values are repeated 1 time or more, got {self.every}.")

    @classmethod
    def parse(cls, text: str) -> EditionMode:
        """A mode from its text, such as `"fresh"`, `"renewed:0.05"` or `"phased:4"`."""
        kind, _, number = str(text).partition(":")
        kind = _OLD.get(kind, kind)
        if kind not in _KINDS or (number and kind not in ("renewed", "phased")):
            raise ParameterError(f"the mode of editions must be {CHOICES}, got {text!r}.")
        try:
            if kind == "renewed":
                return cls("renewed", share=float(number))
            every = int(number) if number else None
        except ValueError:
            raise ParameterError(
                f"the mode of editions must be {CHOICES} with a number, got {text!r}."
            ) from None
        return cls(kind, every=every)  # type: ignore[arg-type]

    @property
    def is_by_edition(self) -> bool:
        """Whether record keys belong to one edition, so that another one needs others."""
        return self.kind in ("fresh", "phased", "renewed")

    def __str__(self) -> str:
        number = self.share if self.kind == "renewed" else self.every
        return self.kind if number is None else f"{self.kind}:{number:g}"


def edition_number(edition: str) -> int:
    """The place of an edition in its series, from its name: a number, a year, a quarter, a month.

    >>> [edition_number(text) for text in ("7", "2026", "2026-03", "2026Q2")]
    [7, 2026, 24314, 8105]
    """
    found = re.fullmatch(r"(\d+)(?:-?(Q)?(\d{1,2}))?", edition.strip(), re.IGNORECASE)
    if found is None:
        raise ParameterError(
            f"edition {edition!r} has no place in a series, which renewed keys need. Name editions "
            "by a number, a year, a quarter or a month: '7', '2026', '2026Q2', '2026-03'."
        )
    year, quarter, part = int(found[1]), found[2], found[3]
    if part is None:
        return year
    parts = 4 if quarter else 12
    if not 1 <= int(part) <= parts:
        raise ParameterError(f"edition {edition!r} names part {part} of {parts}.")
    return year * parts + int(part) - 1
