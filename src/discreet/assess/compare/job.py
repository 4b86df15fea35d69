"""What a comparison consists of, and the work on some of its draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.assess.compare.contestants import Contestant, label_of, law_of
from discreet.assess.compare.fingerprint import digest, table_digest
from discreet.assess.compare.judge import Judge, Row
from discreet.assess.compare.trial import Sampler
from discreet.assess.measure import Measure
from discreet.facade.table import Table
from discreet.solve.fit import Fitter

if TYPE_CHECKING:
    import pyarrow as pa

_WORDS = ("stage", "fitter", "fit", "measure", "kind", "on", "direction", "note")


@dataclass(frozen=True, eq=False)
class Job:
    """**Confidential.** A table, the methods that protect it, and what judges them.

    Attributes:
      table: The true table.
      contestants: The methods with their labels.
      fitters: What recovers inner cells.
      measures: What is measured.
      options: Options of the measures.
      seed: Root of all streams.
    """

    table: Table
    contestants: tuple[Contestant, ...]
    fitters: tuple[Fitter, ...]
    measures: tuple[Measure, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1

    @cached_property
    def judge(self) -> Judge:
        """What judges every draw."""
        return Judge(self.table, self.measures, self.fitters, self.options)

    @cached_property
    def samplers(self) -> tuple[Sampler, ...]:
        """The source of every contestant's draws."""
        return tuple(Sampler(self.table, c.method, self.seed) for c in self.contestants)

    def run(self, k: int, draws: Sequence[int]) -> pa.Table:
        """Scores of some draws of contestant `k`."""
        import pyarrow as pa

        return pa.Table.from_pylist(list(self._rows(k, draws)), schema=schema())

    def _rows(self, k: int, draws: Sequence[int]) -> Iterator[Row]:
        law = law_of(self.contestants[k].method)
        for i in draws:
            for row in self.judge(self.samplers[k](i), law):
                yield {"replicate": i, **row}

    def description(self) -> dict[str, Any]:
        """Digests of everything the scores depend on, by what it is."""
        return {
            "version": __version__,
            "table": table_digest(self.table),
            "unit": self.table.unit,
            "seed": self.seed,
            "fitters": [f"{label_of(f)} {digest(f)}" for f in self.fitters],
            "measures": [f"{m.name} {digest(m)}" for m in self.measures],
            "options": digest(dict(self.options)),
        }

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("judge", "samplers")}


def schema() -> pa.Schema:
    """Columns of the scores of single draws."""
    import pyarrow as pa

    words = [(name, pa.string()) for name in _WORDS]
    return pa.schema([("replicate", pa.int32()), *words, ("value", pa.float64())])
