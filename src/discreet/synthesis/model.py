"""From a formula and columns to the rows that methods work on, and the matrices of a regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any, Literal

import numpy as np

from discreet.arrays import Real, Whole
from discreet.columns import Column as Held
from discreet.columns import is_number_kind
from discreet.design.codes import canonical_array
from discreet.errors import ColumnError, DataError, ParameterError
from discreet.frames import without_values
from discreet.synthesis.formula import (
    CONSTANT,
    LOCAL,
    NUMBER,
    PLAIN,
    ROOT,
    ModelFormula,
    load_formulaic,
    names_in,
    names_of,
)
from discreet.synthesis.result import SourceRecords

Names = tuple[str, ...]
Crossings = tuple[tuple[str, ...], ...]
Missing = Literal["refuse", "category"]
CELL = "cell "  # how the columns of publishable cells begin, followed by a number
_NO_CODES = ("date", "time", "duration", "interval", "array", "struct", "map")  # kinds, by heads
LARGEST_MODEL = 2**30  # entries of a model matrix that are held at most, 8 GiB of them


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of codes."""

    levels: tuple[str, ...]  # the codes that occur, in alphabetical order
    codes: Whole  # the position of each row's code among the levels

    @classmethod
    def of(cls, values: Any) -> Factor:
        """The factor of any column; missing values are a level of their own."""
        texts, places = canonical_array(values)
        occurring = np.unique(places)
        order = sorted(occurring.tolist(), key=texts.__getitem__)
        rank = np.zeros(len(texts), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return cls(tuple(texts[k] for k in order), rank[places])


Column = Real | Factor
"""A column of a model: numbers, or a factor."""


@dataclass(frozen=True, eq=False)
class Rows:
    """**Confidential.** What a method is given of the records, row by row."""

    Y: Real  # confidential values
    columns: Mapping[str, Column]  # what the right side of the model is made from
    weights: Real | None = None  # survey weights
    clusters: Whole | None = None  # the cluster of each row, numbered from 0
    groups: Whole | None = None  # the group of clusters of each row
    pieces: Whole | None = None  # the piece of its cluster of each row
    other: Real | None = None  # other data that are corrected, columns as in `Y`

    def in_order(self, order: Whole) -> Rows:
        """The same rows in another order."""

        def rearrange(part: Any) -> Any:
            if part is None:
                return None
            if isinstance(part, Mapping):
                return {name: rearrange(column) for name, column in part.items()}
            if isinstance(part, Factor):
                return Factor(part.levels, part.codes[order])
            return part[order]

        return Rows(**{f.name: rearrange(getattr(self, f.name)) for f in fields(self)})

    def canonical_order(self) -> Whole:
        """An order that depends on the contents of the rows alone, not on how they were read."""
        sources = [c.codes if isinstance(c, Factor) else c for c in self.columns.values()]
        labels = [self.weights, self.clusters, self.groups, self.pieces]
        other = [] if self.other is None else list(self.other.T)
        # Confidential columns come first, since they tell most rows apart: one of them, or three,
        # nearly always do, and sorting by every column takes much longer.
        keys = [*self.Y.T, *sources, *(part for part in labels if part is not None), *other]
        for count in (1, 3, len(keys)):
            used = keys[:count]
            order = np.lexsort(used[::-1])
            same = np.ones(len(order) - 1, dtype=bool)
            for key in (each[order] for each in used):
                same &= key[1:] == key[:-1]
            if not same.any():
                break
        return np.asarray(order, dtype=np.int64)

    def contents(self) -> dict[str, Any]:
        """The rows as plain arrays and texts, for a digest; factors by their codes as texts."""
        columns = {
            name: [list(column.levels), column.codes] if isinstance(column, Factor) else column
            for name, column in self.columns.items()
        }
        rest = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "columns"}
        return {**rest, "columns": columns}


@dataclass(frozen=True, eq=False)
class ModelMatrices:
    """**Confidential.** The matrices of a model on some records."""

    formula: ModelFormula
    Y: Real  # confidential values, n×k
    X: Real  # the right side with the constant, n×m; in a hybrid model its part within clusters
    others: Mapping[str, Real]  # the other columns of a hybrid model, by the word that marks them
    weights: Real | None  # survey weights, all positive
    columns: Mapping[str, Column]  # what the right side is made from, by name
    crossings: Crossings  # the factors that terms are made of, by the names of their columns
    names: Names  # of the columns of `X` and `others` together

    @property
    def all_columns(self) -> Real:
        """The columns of `X` and `others` side by side, crossed with nothing."""
        return np.hstack([self.X, *self.others.values()]) if self.others else self.X

    @property
    def without_weights(self) -> ModelMatrices:
        r"""The same model with rows multiplied by :math:`\sqrt{w}`.

        What is preserved of them are the weighted moments :math:`X^\top W Y` and
        :math:`Y^\top W Y`.
        """
        if self.weights is None:
            return self
        root = np.sqrt(self.weights)[:, None]
        others = {word: matrix * root for word, matrix in self.others.items()}
        return replace(self, Y=self.Y * root, X=self.X * root, others=others, weights=None)

    def to_original_scale(self, Y: Real) -> Real:
        """The inverse of `without_weights` for synthetic values."""
        return Y if self.weights is None else Y / np.sqrt(self.weights)[:, None]


def read_columns(
    records: SourceRecords, formula: ModelFormula, missing: Missing
) -> tuple[Real, dict[str, Column], Real | None]:
    """Confidential values, columns of the right side, and weights."""
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
        columns |= _read_source(name, table.column(name), missing)
    weights = None
    if formula.weights is not None:
        named = table.column(formula.weights)
        weights = numbers_of(formula.weights, named, "the column of weights")
        if (weights <= 0).any():
            raise DataError(
                f"column {formula.weights!r} holds weights that are not positive; leave such "
                "records out."
            )
    return np.column_stack(Y), columns, weights


def _read_source(name: str, values: Held, missing: Missing) -> dict[str, Column]:
    """A column of the right side, by name; with missing numbers a second one that marks them.

    Missing codes become a level `(missing)`. Missing numbers become the mean of the others, beside
    a column `missing(name)` of zeros and ones.
    """
    is_number = holds_numbers(values)
    numbers = _as_floats(name, values) if is_number else np.empty(0)
    absent = np.isnan(numbers)
    if missing == "refuse" and (absent.any() or values.null_count):
        raise _missing_values(name, "or make them a category with missing='category'")
    if not is_number:
        if values.kind.startswith(_NO_CODES) and not values.is_dictionary:
            raise DataError(
                f"column {name!r} holds {values.kind}, which is neither a number nor a code. Make "
                "a number or a code of it first, or leave it out of the model."
            )
        return {name: Factor.of(values)}
    if not absent.any():
        return {name: numbers}
    if absent.all():
        raise DataError(f"column {name!r} holds no value at all; leave it out of the model.")
    # Beside its mark any number would do: the mean keeps the columns far from dependence.
    numbers[absent] = numbers[~absent].mean()
    return {name: numbers, f"missing({name})": absent.astype(np.float64)}


def numbers_of(name: str, values: Held, role: str) -> Real:
    """A column that must hold a number in every row; texts are read as numbers."""
    if not holds_numbers(values):
        try:
            values = values.cast("float64")
        except ColumnError:
            raise DataError(
                f"column {name!r} is {role} and must hold numbers, but holds {values.kind}."
            ) from None
    numbers = _as_floats(name, values)
    if np.isnan(numbers).any():
        raise _missing_values(name, "or fill them in first")
    return numbers


def holds_numbers(values: Held) -> bool:
    """Whether a column holds numbers, and not codes that are written as such."""
    return is_number_kind(values.kind) and not values.is_dictionary


def _missing_values(name: str, remedy: str) -> DataError:
    return DataError(f"column {name!r} has missing values. Leave such records out, {remedy}.")


def _as_floats(name: str, values: Held) -> Real:
    # A copy, since missing numbers are filled in; NaN stands where one is missing.
    numbers = np.array(values.to_numpy(), dtype=np.float64)
    if np.isinf(numbers).any():
        raise DataError(f"column {name!r} holds infinite values; leave such records out.")
    return numbers


def build(
    formula: ModelFormula, Y: Real, columns: Mapping[str, Column], weights: Real | None = None
) -> ModelMatrices:
    """The matrices of a formula."""
    parts = dict(formula.parts)
    first = parts.pop(PLAIN, "") or parts.pop(LOCAL, "")
    X, names, crossings = _matrix(first, columns, len(Y))
    others = {}
    for word, part in parts.items():
        matrix, more, further = _matrix(part, columns, len(Y))
        others[word] = matrix[:, 1:]  # the constant is in X already
        names, crossings = (*names, *more[1:]), (*crossings, *further)
    crossings = tuple(dict.fromkeys(crossings))
    return ModelMatrices(formula, Y, X, others, weights, columns, crossings, names)


def crossings_of(model: ModelMatrices, word: str) -> Crossings:
    """The factors that are crossed in the terms which a word marks."""
    part = model.formula.parts.get(word)
    return () if part is None else _matrix(part, model.columns, len(model.Y))[2]


def cells_of(crossing: tuple[str, ...], columns: Mapping[str, Column]) -> Whole:
    """The number of each row's cell in a crossing of factors."""
    codes = np.zeros(len(values_of(columns[crossing[0]])), dtype=np.int64)
    for name in crossing:
        part = np.unique(values_of(columns[name]), return_inverse=True)[1]
        codes = np.unique(codes * (part.max() + 1) + part, return_inverse=True)[1]
    return codes


def values_of(column: Column) -> Real | Whole:
    """The numbers of a column, or the codes of a factor."""
    return column.codes if isinstance(column, Factor) else column


def _matrix(part: str, columns: Mapping[str, Column], n: int) -> tuple[Real, Names, Crossings]:
    """Columns of a sum of terms, the constant first; their names, and the factors that cross."""
    parsed: Any = load_formulaic().Formula(part or CONSTANT)
    used = names_in(parsed)
    marks = [name for name in columns if name.startswith("missing(") and name[8:-1] in used]
    marks += [name for name in columns if name.startswith(CELL)]
    # Checked before the matrix is made, by the columns that terms have at least: a crossing of two
    # fine codes is refused instead of filling the memory.
    least = len(marks)
    for term in parsed:
        factors = (columns.get(str(factor.expr)) for factor in term.factors)
        least += prod(max(len(f.levels) - 1, 1) for f in factors if isinstance(f, Factor))
    _check_size(least, n)
    found = _evaluate(parsed, columns, n)
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


def _evaluate(parsed: Any, columns: Mapping[str, Column], n: int) -> Any:
    import pandas as pd

    values: dict[str, Any] = dict(columns)
    for name, column in columns.items():
        if isinstance(column, Factor):
            levels = pd.Index(column.levels, dtype=object)
            values[name] = pd.Categorical.from_codes(column.codes, levels)
    frame = pd.DataFrame(values, index=range(n))
    try:
        return parsed.get_model_matrix(frame, context=_OWN, output="numpy")
    except Exception as error:  # formulaic passes on whatever a transformation raises
        # What went wrong is said without quoting a record, as errors land in logs.
        reason = without_values(error).splitlines()[0].rstrip(".")
        raise ParameterError(f"the right side of the model failed: {reason}.") from None


def _number(values: Any) -> Any:
    import pandas as pd

    return pd.to_numeric(pd.Series(values).astype(str))


_OWN = {NUMBER: _number, ROOT: np.sqrt}


def _check_size(m: int, n: int) -> None:
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
