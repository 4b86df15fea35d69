"""From a formula and columns to the matrices of a regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.arrays import Real, Whole
from discreet.design.codes import canonical_array
from discreet.errors import DataError, ParameterError
from discreet.frames import is_numeric, without_values
from discreet.synthesize.formula import (
    CONSTANT,
    LOCAL,
    NUMBER,
    PLAIN,
    ROOT,
    ModelFormula,
    names_in,
    names_of,
)
from discreet.synthesize.result import Records
from discreet.synthesize.tolerances import LARGEST_MODEL

if TYPE_CHECKING:
    import pyarrow as pa


Names = tuple[str, ...]
Crossings = tuple[tuple[str, ...], ...]


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


@dataclass(frozen=True, eq=False)
class Model:
    """**Confidential.** The matrices of a model on some records.

    Attributes:
      formula: The formula.
      Y: The confidential values, n×k.
      X: The columns of the right side with the constant, n×m; for hybrid data those that are
        crossed with clusters.
      others: For hybrid data, the columns that are not crossed with clusters, or with other sets
        of rows; by the word that marks them.
      weights: Survey weights, all positive.
      columns: What the right side is made from, by name.
      crossings: The factors that terms are made of, each crossing as the names of its columns.
      names: Names of the columns of `X` and `others` together.
    """

    formula: ModelFormula
    Y: Real
    X: Real
    others: Mapping[str, Real]
    weights: Real | None
    columns: Mapping[str, Column]
    crossings: Crossings
    names: Names

    @property
    def all_columns(self) -> Real:
        """The columns of `X` and `others` side by side, crossed with nothing."""
        return np.hstack([self.X, *self.others.values()]) if self.others else self.X

    @property
    def scaled(self) -> Model:
        r"""The same model with rows multiplied by :math:`\sqrt{w}`, and no weights.

        What is preserved of them are the weighted moments :math:`X^\top W Y` and
        :math:`Y^\top W Y`.
        """
        if self.weights is None:
            return self
        root = np.sqrt(self.weights)[:, None]
        others = {word: matrix * root for word, matrix in self.others.items()}
        return replace(self, Y=self.Y * root, X=self.X * root, others=others, weights=None)

    def unscaled(self, Y: Real) -> Real:
        """The inverse of `scaled` for synthetic values."""
        return Y if self.weights is None else Y / np.sqrt(self.weights)[:, None]


def read_columns(
    records: Records, formula: ModelFormula, missing: Missing
) -> tuple[Real, dict[str, Column], Real | None]:
    """Confidential values, columns of the right side, and weights.

    Raises:
      UnknownNameError: A column is not there; the nearest names are named.
      ParameterError: A confidential column stands on the right side as well.
      DataError: Values are missing, infinite, or of a kind that no model takes.
    """
    table = records.table
    records.require([*formula.confidential, *([formula.weights] if formula.weights else [])])
    sources = formula.sources(records.columns)
    for name in (*sources, formula.weights):
        if name in formula.confidential:
            raise ParameterError(
                f"column {name!r} stands on both sides of the model. What is on the right is "
                "published as it is; leave it out there."
            )
    if not len(table):
        raise DataError("there are no records.")
    Y = [
        numbers_of(name, table.column(name), "confidential, on the left side of the model,")
        for name in formula.confidential
    ]
    columns: dict[str, Column] = {}
    for name in sources:
        columns |= column_of(name, table.column(name), missing)
    return np.column_stack(Y), columns, _weights(records, formula.weights)


def build(
    formula: ModelFormula,
    Y: Real,
    columns: Mapping[str, Column],
    weights: Real | None = None,
) -> Model:
    """The matrices of a formula.

    Raises:
      ParameterError: There are more parameters than rows, or a term cannot be evaluated.
    """
    parts = dict(formula.parts)
    first = parts.pop(PLAIN, "") or parts.pop(LOCAL, "")
    X, names, crossings = _matrix(first, columns, len(Y))
    others = {}
    for word, part in parts.items():
        matrix, more, further = _matrix(part, columns, len(Y))
        others[word] = matrix[:, 1:]
        names, crossings = (*names, *more[1:]), (*crossings, *further)
    return Model(formula, Y, X, others, weights, columns, tuple(dict.fromkeys(crossings)), names)


def _matrix(part: str, columns: Mapping[str, Column], n: int) -> tuple[Real, Names, Crossings]:
    """Columns of a sum of terms, the constant first; their names, and the factors that cross."""
    from formulaic import Formula

    parsed: Any = Formula(part or CONSTANT)
    used = names_in(parsed)
    marks = [name for name in columns if name.startswith("missing(") and name[8:-1] in used]
    _check_size(len(marks) + sum(_width(term, columns) for term in parsed), n)
    found = _evaluated(parsed, columns, n)
    _check_size(len(marks) + found.shape[1], n)
    names = ("constant", *map(str, found.model_spec.column_names[1:]), *marks)
    marked = [column for m in marks if isinstance(column := columns[m], np.ndarray)]
    matrix = np.column_stack([np.asarray(found, dtype=np.float64), *marked])
    for name, column in zip(names, matrix.T, strict=True):
        if not np.isfinite(column).all():
            raise DataError(
                f"term {name!r} has no finite value for some records; a logarithm of zero, say."
            )
    return matrix, names, _crossings(parsed, found.model_spec, columns)


def _evaluated(parsed: Any, columns: Mapping[str, Column], n: int) -> Any:
    """The model matrix by formulaic; what went wrong is said without quoting a record."""
    import pandas as pd

    values = {k: c.as_pandas() if isinstance(c, Factor) else c for k, c in columns.items()}
    frame = pd.DataFrame(values, index=range(n))
    try:
        return parsed.get_model_matrix(frame, context=_OWN, output="numpy")
    except Exception as error:  # formulaic passes on whatever a transformation raises
        reason = without_values(error).splitlines()[0].rstrip(".")
        raise ParameterError(f"the right side of the model failed: {reason}.") from None


def _number(values: Any) -> Any:
    """The function `number(…)` of formulas: codes that are numbers, as numbers."""
    import pandas as pd

    return pd.to_numeric(pd.Series(values).astype(str))


_OWN = {NUMBER: _number, ROOT: np.sqrt}


def _check_size(m: int, n: int) -> None:
    """Refuse a model with more parameters than rows, or one that no memory holds."""
    if m > n:
        raise ParameterError(
            f"the model has {m:,} parameters or more, but there are {n:,} rows. Leave out terms, "
            "use coarser codes, or read codes that are numbers as numbers: number(age)."
        )
    if m * n > LARGEST_MODEL:
        raise ParameterError(
            f"the model matrix would have {n:,} rows and {m:,} columns. Use coarser codes, or "
            "make the cells clusters: method='hybrid' with clusters='cell'."
        )


def _width(term: Any, columns: Mapping[str, Column]) -> int:
    """The least number of columns that a term has."""
    factors = [columns.get(str(factor.expr)) for factor in term.factors]
    return prod(max(len(f.levels) - 1, 1) for f in factors if isinstance(f, Factor))


def _crossings(parsed: Any, spec: Any, columns: Mapping[str, Column]) -> Crossings:
    """For each term the columns of its factors, those that are codes and those made so by C(…)."""
    found = []
    for term in parsed:
        crossed: set[str] = set()
        for factor in term.factors:
            kind = spec.encoder_state.get(factor.expr, (None,))[0]
            if kind is not None and kind.value == "categorical":
                crossed |= names_of(factor) & set(columns)
        found.append(tuple(sorted(crossed)))
    return tuple(filter(None, found))


def _weights(records: Records, name: str | None) -> Real | None:
    if name is None:
        return None
    weights = numbers_of(name, records.table.column(name), "the column of weights")
    if (weights <= 0).any():
        raise DataError(
            f"column {name!r} holds weights that are not positive; leave such records out."
        )
    return weights


Missing = Literal["refuse", "category"]
MISSING_RULES: tuple[Missing, ...] = ("refuse", "category")


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
