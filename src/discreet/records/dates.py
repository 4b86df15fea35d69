"""Dates as codes: years, quarters, months, and ages on a day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from discreet.errors import ParameterError
from discreet.records.query import language_of

PARTS = ("year", "quarter", "month")
_AGE = re.compile(r"age on (\d{4}-\d{2}-\d{2})")
_GERMAN = r"^\s*([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})\s*$"
_DIGITS = r"^\s*([0-9]{4})([0-9]{2})([0-9]{2})\s*$"


def is_of_date(change: str) -> bool:
    """Whether a text asks for a part of a date."""
    return change in PARTS or change.startswith("age on ")


@dataclass(frozen=True)
class DatePart:
    """What becomes of a date: its year, its quarter, its month, or an age in whole years.

    Texts are dates when they are written 2024-12-31, 31.12.2024 or 20241231. Other texts are an
    error when they are tabulated: 12/11/2024 is two days, and nothing tells which.

    >>> DatePart.read("age on 2024-12-31").on
    datetime.date(2024, 12, 31)
    """

    part: str
    on: date | None = None  # the day of an age

    @classmethod
    def read(cls, text: str) -> DatePart:
        """`"year"`, `"quarter"`, `"month"`, or `"age on 2024-12-31"`."""
        if text in PARTS:
            return cls(text)
        found = _AGE.fullmatch(text)
        try:
            return cls("age", date.fromisoformat(found[1] if found else ""))
        except ValueError:
            raise ParameterError(
                f"{text!r} is no part of a date: write 'year', 'quarter', 'month', or 'age on' and "
                "a day, 'age on 2024-12-31'."
            ) from None

    def of(self, column: Any) -> Any:
        """The codes of a column of dates: `2024`, `2024-Q4`, `2024-12`, or an age such as `37`."""
        day = _as_date(column)
        if self.on is not None:
            is_ahead = (day.month() > self.on.month) | (
                (day.month() == self.on.month) & (day.day() > self.on.day)
            )
            years = self.on.year - day.year() - is_ahead.cast("int64")
            return years.cast("string")
        year = day.year().cast("string")
        if self.part == "quarter":
            return year + "-Q" + day.quarter().cast("string")
        if self.part == "month":
            return year + "-" + day.month().cast("string").lpad(2, "0")
        return year


def _as_date(column: Any) -> Any:
    kind = column.type()
    if kind.is_date() or kind.is_timestamp():
        return column
    if not (kind.is_string() or kind.is_integer()):
        raise ParameterError(f"column {column.get_name()!r} holds {kind}, not dates.")
    text = column.cast("string")
    is_german, is_digits = text.re_search(_GERMAN), text.re_search(_DIGITS)

    def joined(pattern: str, places: tuple[int, int, int]) -> Any:
        year, month, day = (text.re_extract(pattern, k) for k in places)
        return year + "-" + month.lpad(2, "0") + "-" + day.lpad(2, "0")

    german, digits = joined(_GERMAN, (3, 2, 1)), joined(_DIGITS, (1, 2, 3))
    branches = (is_german, german), (is_digits, digits)
    return language_of(text).cases(*branches, else_=text).cast("date")
