"""Records on their way in and out: Microdata, pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.arrays import Real
from discreet.errors import ParameterError, UnknownNameError
from discreet.frames import open_frame
from discreet.ledger import Ledger
from discreet.microdata.backend import fetch
from discreet.microdata.records import UnitRecords
from discreet.microdata.secret import Secret
from discreet.tables.data_set import UNNAMED, DataSet, SecretLike

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Records:
    """**Confidential.** Records in memory, and what their publication needs to know.

    Attributes:
      frame: The records as a narwhals frame.
      table: The same in Arrow.
      data_set: Name and edition.
      secret: The custodian's secret; a plain frame may have none.
      ledger: Where releases are entered.
      withheld: Columns that are never published: record keys, ids and persons by their role.
    """

    frame: Any
    table: pa.Table
    data_set: DataSet
    secret: SecretLike | None = None
    ledger: Ledger | None = None
    withheld: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return list(self.table.column_names)

    def require(self, names: Sequence[str]) -> None:
        """Raise an error that names the nearest columns if one is not there."""
        for name in names:
            if name not in self.columns:
                raise UnknownNameError("column", name, self.columns)

    def with_values(self, values: Mapping[str, Real], keep: Sequence[str] | None) -> Any:
        """The records with other values in some columns, in the frame library they came in.

        The columns in `keep` stay as they are; by default all that are not withheld.
        """
        import narwhals as nw

        if keep is not None:
            self.require(keep)
        wanted = set(self.columns if keep is None else keep) - set(self.withheld)
        shown = [name for name in self.columns if name in values or name in wanted]
        backend = self.frame.implementation
        made = [
            nw.new_series(name, column, nw.Float64, backend=backend)
            for name, column in values.items()
        ]
        return self.frame.with_columns(*made).select(shown).to_native()

    def frame_of(self, columns: Mapping[str, Any]) -> Any:
        """New records with some of the columns, in their order and in the same frame library."""
        import narwhals as nw

        ordered = {name: columns[name] for name in self.columns if name in columns}
        return nw.from_dict(ordered, backend=self.frame.implementation).to_native()


def read_records(
    data: Any,
    *,
    secret: Secret | str | Path | None = None,
    name: str | None = None,
    edition: str | None = None,
    ledger: Ledger | str | Path | None = None,
) -> Records:
    """The records of any source that `discreet.synthesize` takes."""
    book = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
    if isinstance(data, UnitRecords):
        return _of_microdata(data, book, {"secret": secret, "name": name, "edition": edition})
    import narwhals as nw

    frame = open_frame(data)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    frame = nw.maybe_reset_index(frame)  # an index may hold ids, and is no column
    if isinstance(secret, (str, Path)):
        secret = Secret.from_file(secret)
    data_set = DataSet(UNNAMED if name is None else name, "1" if edition is None else edition)
    return Records(frame, frame.to_arrow(), data_set, secret, book)


def _of_microdata(data: UnitRecords, ledger: Ledger | None, given: Mapping[str, Any]) -> Records:
    import narwhals as nw

    for option, value in given.items():
        if value is not None:
            raise ParameterError(
                f"{option}= goes with a plain frame; these records have roles of their own: "
                f"`dc.open(…, {option}=…)`."
            )
    table = fetch(data.backend, data.table, data.origin)
    withheld = tuple(c for c in (data.key, data.id, data.person) if c is not None)
    book = ledger if ledger is not None else data.ledger
    frame = nw.from_native(table, eager_only=True)
    return Records(frame, table, data.data_set, data.secret, book, withheld)
