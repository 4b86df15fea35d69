"""Synthetic records: public ones in `Synthetic`, those of an experiment in `SyntheticTrial`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.arrays import Real
from discreet.columns import is_whole_kind
from discreet.display import Display, Displayed, Grid, align_columns
from discreet.errors import ConfidentialError, ParameterError, check_known
from discreet.files import written_whole
from discreet.frames import Frame, is_lazy, is_pandas, read_frame
from discreet.ledger import Ledger
from discreet.parquet import write_parquet
from discreet.protect.publish import open_ledger
from discreet.records.backend import fetch
from discreet.records.records import UnitRecords
from discreet.records.secret import Secret, secret_of
from discreet.release.files import CSV, release_ending, write_with_statement
from discreet.tables import show
from discreet.tables.statement import Statement
from discreet.tables.truth import UNNAMED, DataSet, SecretLike

HEADER = "discreet_synthetic"
FORMAT = 1
_HEAD = 6


@dataclass(frozen=True, eq=False, repr=False)
class Synthesized:
    """Records with synthetic values in some columns, and the statement that goes with them.

    `discreet.synthesis` makes a `Synthetic` for publication, or with `simulate=True` a
    `SyntheticTrial`. Both can be measured.

    Attributes:
      frame: The records in the frame library in which they were given, or as a `Frame`.
      statement: What was done and what it promises.
      confidential: The columns whose values are synthetic.
      model: The model in one spelling.
      method: The method's name in the registry.
    """

    frame: Any
    statement: Statement
    confidential: tuple[str, ...]
    model: str
    method: str


@dataclass(frozen=True, eq=False, repr=False)
class Synthetic(Displayed, show.Frames, Synthesized):
    """**Public.** Synthetic records that may be shown and handed out, with their statement.

    Made by `discreet.synthesis`.
    """

    def to_frame(self) -> Frame:
        """The records as a frame."""
        return read_frame(self.frame)

    def save(self, path: str | Path) -> Path:
        """Write the records and their statement.

        Args:
          path: A name that ends in `.parquet`, where the statement is part of the file, or in
            `.csv`, where it lies beside it for people and programs.
        """
        return save(self, path)

    def __repr__(self) -> str:
        title, rows = self._title_and_head()
        return "\n".join(
            [title, *align_columns(rows, right=self._numbers()), "", str(self.statement)]
        )

    def _display(self) -> Display:
        title, rows = self._title_and_head()
        head = Grid.of(rows, f"the first {len(rows) - 1} records", right=self._numbers())
        return Display(title, "public", grids=[head], note=self.statement.plain)

    def _numbers(self) -> list[int]:
        """Places of the columns that hold numbers, or codes by their places in a list."""
        columns = enumerate(self.to_frame().columns)
        kinds = [(j, "int8" if c.is_dictionary else c.kind) for j, c in columns]
        return [j for j, kind in kinds if is_whole_kind(kind) or kind.startswith("float")]

    def _title_and_head(self) -> tuple[str, list[Sequence[str]]]:
        def text(value: Any) -> str:
            if isinstance(value, float):
                return f"{value:,.6g}"
            return "" if value is None else str(value)

        table = self.to_frame()
        head = table.slice(0, _HEAD)
        columns = (map(text, column.to_pylist()) for column in head.columns)
        rows = [head.column_names, *zip(*columns, strict=True)]
        named = ", ".join(self.confidential)
        return f"Synthetic: {len(table):,} records, {named} by {self.method}", rows


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticTrial(Synthesized):
    """**Confidential.** One draw of an experiment, to be measured and thrown away.

    What a seed draws can be drawn again, and whoever knows the noise solves for the original; so a
    trial is neither shown nor written. Made by `discreet.synthesis` with `simulate=True`.

    Attributes:
      details: What the method found out on the way, such as the rank of the residuals.
    """

    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"SyntheticTrial (confidential): {', '.join(self.confidential)} by {self.method}"


def save(synthetic: Synthetic, path: str | Path) -> Path:
    """Write synthetic records; see `Synthetic.save`."""
    if not isinstance(synthetic, Synthetic):
        raise ConfidentialError("a trial cannot be written; synthesize without simulate=True.")
    target, table = Path(path), synthetic.to_frame()
    header = {
        "format": FORMAT,
        "side": "public",
        "confidential": synthetic.confidential,
        "model": synthetic.model,
        "method": synthetic.method,
        "statement": synthetic.statement.to_json(),
    }
    if release_ending(target) == CSV:
        write_with_statement(target, table, synthetic.statement, header)
        return target
    said = json.dumps(header, ensure_ascii=False).encode()
    with written_whole(target) as temporary:
        write_parquet(temporary, table, {HEADER: said})
    return target


@dataclass(frozen=True, eq=False)
class SourceRecords:
    """**Confidential.** Records in memory, and what their publication needs to know."""

    frame: Any  # of narwhals where they came in a library's, else the same as the table
    table: Frame
    data_set: DataSet
    secret: SecretLike | None = None  # the custodian's secret; a plain frame may have none
    ledger: Ledger | None = None  # where releases are entered
    withheld: tuple[str, ...] = ()  # never published: record keys, ids and persons by their role

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return list(self.table.column_names)

    def require(self, names: Sequence[str]) -> None:
        """Raise an error that names the nearest columns if one is not there."""
        check_known("column", names, self.columns)

    def with_values(self, values: Mapping[str, Real], keep: Sequence[str] | None) -> Any:
        """The records with other values in some columns, in the frame library they came in.

        The columns in `keep` stay as they are; by default all that are not withheld.
        """
        if keep is not None:
            self.require(keep)
        wanted = set(self.columns if keep is None else keep) - set(self.withheld)
        shown = [name for name in self.columns if name in values or name in wanted]
        if isinstance(self.frame, Frame):
            made = Frame({**{n: self.table.column(n) for n in self.columns}, **values})
            return made.select(shown)
        import narwhals as nw

        backend = self.frame.implementation
        new = (nw.new_series(n, c, nw.Float64, backend=backend) for n, c in values.items())
        return self.frame.with_columns(*new).select(shown).to_native()

    def frame_of(self, columns: Mapping[str, Any]) -> Any:
        """New records with some of the columns, in their order and in the same frame library."""
        ordered = {name: columns[name] for name in self.columns if name in columns}
        if isinstance(self.frame, Frame):
            return Frame(ordered)
        import narwhals as nw

        return nw.from_dict(ordered, backend=self.frame.implementation).to_native()


def read_records(
    data: Any,
    *,
    secret: Secret | str | Path | None = None,
    name: str | None = None,
    edition: str | None = None,
    ledger: Ledger | str | Path | None = None,
) -> SourceRecords:
    """The records of any source that `discreet.synthesis` takes."""
    book = open_ledger(ledger)
    if isinstance(data, UnitRecords):
        for option, value in {"secret": secret, "name": name, "edition": edition}.items():
            if value is not None:
                raise ParameterError(
                    f"{option}= goes with a plain frame; these records have roles of their own: "
                    f"`dc.open(…, {option}=…)`."
                )
        table = fetch(data.backend, data.table, data.origin)
        withheld = tuple(c for c in (data.key, data.id, data.person) if c is not None)
        book = book if book is not None else data.ledger
        return SourceRecords(table, table, data.data_set, data.secret, book, withheld)
    frame, table = _with_table(data)
    data_set = DataSet(UNNAMED if name is None else name, "1" if edition is None else edition)
    if isinstance(secret, (str, Path)):
        marks = () if book is None else book.secret_marks(data_set.name)
        secret = secret_of(secret, data_set.name, marks=marks)
    return SourceRecords(frame, table, data_set, secret, book)


def _with_table(data: Any) -> tuple[Any, Frame]:
    """Records in the library that they came in, where synthetic ones go back to, and as a frame."""
    library = type(data).__module__.partition(".")[0]
    is_arrow = library == "pyarrow" and hasattr(data, "combine_chunks")
    if not (is_pandas(data) or is_arrow or library == "polars"):
        table = read_frame(data)
        return table, table
    import narwhals as nw

    frame = nw.from_native(data.collect() if is_lazy(data) else data, eager_only=True)
    frame = nw.maybe_reset_index(frame)  # an index may hold ids, and is no column
    return frame, read_frame(frame.to_native())


def column_names_of(frame: Any) -> list[str]:
    """The names of the columns of synthetic records."""
    if isinstance(frame, Frame):
        return frame.column_names
    import narwhals as nw

    return list(nw.from_native(frame).columns)
