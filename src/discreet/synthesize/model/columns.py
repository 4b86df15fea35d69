"""Columns of records as a model takes them: numbers, and factors without missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.codes import canonical_array
from discreet.errors import DataError
from discreet.frames import is_numeric

if TYPE_CHECKING:
    import pyarrow as pa

Missing = Literal["refuse", "category"]
MISSING_RULES: tuple[Missing, ...] = ("refuse", "category")


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of codes.

    Attributes:
      levels: The codes that occur, in alphabetical order.
      codes: The position of each row's code among the levels.
    """

    levels: tuple[str, ...]
    codes: Whole

    @classmethod
    def of(cls, values: Any) -> Factor:
        """The factor of any column; missing values are a level of their own."""
        texts, places = canonical_array(values)
        occurring = np.unique(places)
        order = sorted(occurring.tolist(), key=texts.__getitem__)
        rank = np.zeros(len(texts), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return cls(tuple(texts[k] for k in order), rank[places])

    def as_pandas(self) -> Any:
        """The factor as a categorical column of pandas."""
        import pandas as pd

        return pd.Categorical.from_codes(self.codes, pd.Index(self.levels, dtype=object))

    def in_order(self, order: Whole) -> Factor:
        """The same factor of rows in another order."""
        return Factor(self.levels, self.codes[order])


Column = Real | Factor
"""A column of a model: numbers, or a factor."""


def column_of(name: str, values: pa.ChunkedArray, missing: Missing) -> dict[str, Column]:
    """A column of the right side, by name; with missing numbers a second one that marks them.

    Missing codes become a level `(missing)`. Missing numbers become the mean of the others, beside
    a column `missing(name)` of zeros and ones.
    """
    is_number = is_numeric(values.type)
    numbers = _numbers(name, values) if is_number else np.empty(0)
    absent = np.isnan(numbers)
    if missing == "refuse" and (absent.any() or values.null_count):
        raise _missing_values(name, "or make them a category with missing='category'")
    if not is_number:
        _check_codes(name, values.type)
        return {name: Factor.of(values)}
    if not absent.any():
        return {name: numbers}
    if absent.all():
        raise DataError(f"column {name!r} holds no value at all; leave it out of the model.")
    numbers[absent] = numbers[~absent].mean()
    return {name: numbers, f"missing({name})": absent.astype(np.float64)}


def numbers_of(name: str, values: pa.ChunkedArray, role: str) -> Real:
    """A column that must hold a number in every row; texts are read as numbers.

    Errors say its role, what it is for.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_numeric(values.type):
        try:
            values = pc.cast(values, pa.float64())
        except pa.ArrowException:
            raise DataError(
                f"column {name!r} is {role} and must hold numbers, but holds {values.type}."
            ) from None
    numbers = _numbers(name, values)
    if np.isnan(numbers).any():
        raise _missing_values(name, "or fill them in first")
    return numbers


def _missing_values(name: str, remedy: str) -> DataError:
    return DataError(f"column {name!r} has missing values. Leave such records out, {remedy}.")


def _numbers(name: str, values: pa.ChunkedArray) -> Real:
    """Numbers of their own, NaN where one is missing."""
    import pyarrow as pa

    numbers = np.array(values.cast(pa.float64(), safe=False).to_numpy())
    if np.isinf(numbers).any():
        raise DataError(f"column {name!r} holds infinite values; leave such records out.")
    return numbers


def _check_codes(name: str, kind: pa.DataType) -> None:
    """Refuse what is neither a number nor a code."""
    import pyarrow as pa

    if pa.types.is_nested(kind) or pa.types.is_temporal(kind):
        raise DataError(
            f"column {name!r} holds {kind}, which is neither a number nor a code. Make a number or "
            "a code of it first, or leave it out of the model."
        )
