"""Files of τ-ARGUS for tables as users hold them, and jobs, `.arb`, that are run.

Metadata `.rda`, tables `.tab` and a-priori files `.hst` are those of `discreet.suppress.argus`;
hierarchies `.hrc` are read by `Hierarchy.from_hrc`. What every command of a job means stands in
`discreet.suppress.argus.batch`; the page on coming from τ-ARGUS puts them beside our calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np

from discreet.display.bars import shows_progress
from discreet.errors import DataError, DiscreetError
from discreet.facade.release import Release
from discreet.facade.table import Table
from discreet.files import EVERYONE, OWNER_ONLY, write_text
from discreet.progress import report
from discreet.protect import ControlledRounding
from discreet.records.secret import Secret, secret_of
from discreet.suppress import argus
from discreet.suppress.argus import (  # noqa: F401  (what this room hands on)
    APriori,
    AprioriCells,
    ArgusTable,
    Metadata,
    Variable,
    batch,
    read_apriori,
    read_metadata,
    read_rows,
)
from discreet.suppress.argus.jobs import INDICATOR, JobTable, make_table
from discreet.suppress.argus.outputs import OutputCells, jj_text, output_text
from discreet.suppress.argus.safety import TableJob
from discreet.suppress.argus.tables import tree_of, write_table
from discreet.suppress.decimals import Decimals
from discreet.suppress.pattern import Pattern, watched_patterns
from discreet.suppress.suppress import Suppress
from discreet.tables.protected import CellStatus, Method
from discreet.tables.truth import TrueTable

__all__ = [*argus.__all__, "BatchResult", "run_batch"]
Given = ParamSpec("Given")

_OPTIMAL_CELLS = 150  # the integer program took minutes on larger tables of sums
_NOTES = {
    "GH": "GH (hypercube): suppressed by intervals of the whole table; bound and size have no use.",
    "MOD": "MOD (modular): suppressed by intervals of the whole table; the time limit is not used.",
    "NET": "NET (network): suppressed by intervals of the whole table.",
    "OPT": "OPT (optimal): the cheapest pattern of the whole table; the time limit is not used.",
    "RND": "RND (controlled rounding): zero-restricted, to the multiples next to each count.",
    "CTA": "CTA (adjustment): decimal numbers that add up stand in place of hidden cells.",
}
_TOO_LARGE = (
    f"OPT (optimal): more than {_OPTIMAL_CELLS} cells, so suppressed by intervals, without the "
    'proof that nothing is cheaper; secondary="optimal" in Python tries it.'
)


@dataclass(frozen=True, eq=False)
class ProtectedTable:
    """A table of a job after `<SUPPRESS>`.

    Attributes:
      release: What may be published; of linked tables, all of them.
      made: **Confidential.** The true table.
      pattern: **Confidential.** Which cells are hidden and why; `None` after rounding.
      method: What protected it.
    """

    release: Release
    made: JobTable
    pattern: Pattern | None
    method: Method


@dataclass(eq=False)
class BatchResult:
    """What a job made.

    Attributes:
      files: The files that were written, in their order.
      log: What was done, line by line. **Confidential**: it counts sensitive cells.
      tables: The protected tables by their number.
    """

    files: list[Path] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    tables: dict[int, ProtectedTable] = field(default_factory=dict)


@shows_progress("running the batch")
def run_batch(
    path: str | Path, *, secret: str | Path | Secret | None = None, show_kinds: bool = False
) -> BatchResult:
    """Run a τ-ARGUS batch file; files that it names lie beside it unless their paths say otherwise.

    Files of types 1 to 4 are public: they show nothing of hidden cells, and do not tell sensitive
    ones from those that protect them. Types 5 and 6 hold true values and can be read by their owner
    only, as can the log.

    Args:
      path: The `.arb` file.
      secret: The custodian's secret or its file, for rounding and adjustment, which draw.
      show_kinds: Whether statuses tell primary (3) from secondary (11) suppressions; the files can
        then be read by their owner only, and must not be published.

    Raises:
      DataError: A command or a file cannot be read; the message has the line.
    """
    steps = batch.read_batch(path)
    given = None if secret is None else secret_of(secret, Path(path).stem)
    job = _Run(Path(path).parent, given, show_kinds)
    for done, step in enumerate(steps):
        report(f"line {step.line} of {Path(path).name}", done / len(steps))
        try:
            job.take(step)
        except DiscreetError as error:
            said = str(error)
            # Errors of other files name lines of their own, so the line of the job comes first.
            is_placed = said.startswith(f"line {step.line}: ")
            text = said if is_placed else f"line {step.line} of {Path(path).name}: {said}"
            job.result.log.append(text)
            job.write_log()
            raise DataError(text) from error
    job.write_log()
    return job.result


class _Run:
    """The state of a job between its commands."""

    def __init__(self, folder: Path, secret: Secret | None, show_kinds: bool) -> None:
        self.folder, self.secret, self.show_kinds = folder, secret, show_kinds
        self.result = BatchResult()
        self.log_file: Path | None = None
        self.clear(None)

    def clear(self, step: batch.Clear | None) -> None:
        """Forget data and tables."""
        self.data: tuple[Path, bool] | None = None
        self.metadata: Path | None = None
        self.jobs: list[TableJob] = []

    def take(self, step: batch.Step) -> None:
        """Do what one command says."""
        actions: dict[type, Callable[[Any], None]] = {
            batch.OpenFile: self.open,
            batch.TableSpec: self.specify,
            batch.SafetyRule: self.add_rules,
            batch.ReadData: self.read,
            batch.Recode: self.recode,
            batch.UseApriori: lambda s: self.job(s).apriori.append((s, self.folder / s.path)),
            batch.SuppressTable: self.suppress,
            batch.WriteTable: self.write,
            batch.Clear: self.clear,
            batch.Ignored: lambda s: self.say(s, f"<{s.word}> {s.text} has no effect here."),
        }
        actions[type(step)](step)

    def say(self, step: batch.Step, text: str) -> None:
        """Enter a line in the log."""
        self.result.log.append(f"line {step.line}: {text}")

    def job(self, step: batch.Recode | batch.UseApriori) -> TableJob:
        """The table that a command is about."""
        if not 1 <= step.table <= len(self.jobs):
            raise DataError(
                f"line {step.line}: there are {len(self.jobs)} tables, no {step.table}."
            )
        return self.jobs[step.table - 1]

    def open(self, step: batch.OpenFile) -> None:
        """Remember a file; metadata lie beside the data under the same name unless named."""
        path = self.folder / step.path
        if step.kind == "log":
            self.log_file = path
        elif step.kind == "metadata":
            self.metadata = path
        else:
            self.data, self.metadata = (path, step.kind == "records"), None

    def specify(self, step: batch.TableSpec) -> None:
        """Remember a table."""
        if self.data is None:
            raise DataError(f"line {step.line}: name the data first, e.g. <OPENMICRODATA>.")
        path, is_records = self.data
        metadata = self.metadata or path.with_suffix(".rda")
        self.jobs.append(TableJob(step, path, is_records, metadata))

    def add_rules(self, step: batch.SafetyRule) -> None:
        """Rules belong to the table before."""
        if not self.jobs:
            raise DataError(f"line {step.line}: <SAFETYRULE> follows a <SPECIFYTABLE>.")
        self.jobs[-1].rule = step

    def read(self, step: batch.ReadData) -> None:
        """Tables are made when they are suppressed, since recodings come after this command."""
        if not self.jobs:
            raise DataError(f"line {step.line}: no table is specified.")

    def recode(self, step: batch.Recode) -> None:
        """Remember a recoding."""
        job = self.job(step)
        if step.variable not in job.spec.variables:
            raise DataError(
                f"line {step.line}: table {step.table} is not spanned by {step.variable!r}, but by "
                f"{', '.join(job.spec.variables)}."
            )
        job.recodes.append(step)

    def suppress(self, step: batch.SuppressTable) -> None:
        """Protect a table, or all of them at once."""
        numbers = [step.table] if step.table else list(range(1, len(self.jobs) + 1))
        if not self.jobs or not 0 <= step.table <= len(self.jobs):
            raise DataError(
                f"line {step.line}: there are {len(self.jobs)} tables, no {step.table}."
            )
        made = make_table([self.jobs[n - 1] for n in numbers])
        table = Table.wrap(made.table)
        if self.secret is not None:
            table = table.with_secret(self.secret)
        method = self._method(step, made)
        for note in made.notes:
            self.say(step, note)
        with watched_patterns() as patterns:
            release = table.protect(method)
        pattern = patterns[-1] if patterns else None
        found = ProtectedTable(release, made, pattern, method)
        self.result.tables |= dict.fromkeys(numbers, found)
        if pattern is not None:
            self.say(
                step,
                f"{pattern.n_primary:,} primary and {pattern.n_secondary:,} secondary suppressions "
                f"among {len(pattern.z):,} cells.",
            )

    def _method(self, step: batch.SuppressTable, made: JobTable) -> Method:
        """What stands for a way of τ-ARGUS."""
        is_large = made.table.design.n_published > _OPTIMAL_CELLS
        self.say(step, _TOO_LARGE if step.way == "OPT" and is_large else _NOTES[step.way])
        if step.way == "RND":
            if made.table.contributions is not None:
                raise DataError(
                    f"line {step.line}: controlled rounding is for counts; sums are suppressed "
                    "(MOD) or adjusted (CTA)."
                )
            rounding: Method = ControlledRounding(int([*step.numbers, 0][0]) or 3)
            return rounding
        secondary = "optimal" if step.way == "OPT" and not is_large else "interval"
        decimals = Decimals() if step.way == "CTA" else None
        return Suppress(secondary=secondary, decimals=decimals, **made.arguments)

    def write(self, step: batch.WriteTable) -> None:
        """Write a table that was protected."""
        found = self.result.tables.get(step.table)
        if found is None:
            raise DataError(
                f"line {step.line}: table {step.table} is not protected; <SUPPRESS> comes first."
            )
        path = self.folder / step.path
        job = self.jobs[step.table - 1]
        if step.kind in (5, 6):
            self._write_true(step, path, found, [self.jobs[step.table - 1]])
            return
        cells = output_cells(found, job.spec, show_kinds=self.show_kinds)
        is_public = cells.state is None
        text = output_text(cells, step.kind, status=step.has("AS"), skip_empty=step.has("SE"))
        write_text(path, text, EVERYONE if is_public else OWNER_ONLY)
        self.result.files.append(path)
        side = "public" if is_public else "confidential: it tells primary from secondary cells"
        self.say(step, f"{path.name}: {len(cells.codes):,} cells ({side}).")
        if is_public:
            beside = path.with_name(f"{path.name}.statement.txt")
            self.result.files.append(write_text(beside, f"{found.release.statement.text}\n"))

    def _write_true(
        self, step: batch.WriteTable, path: Path, found: ProtectedTable, jobs: list[TableJob]
    ) -> None:
        """Types 5 and 6, with true values."""
        if found.pattern is None:
            raise DataError(
                f"line {step.line}: a rounded table has no statuses; write type 1 to 4."
            )
        if step.kind == 6:
            write_text(path, jj_text(found.pattern), OWNER_ONLY)
            written = [path]
        else:
            # One table of a linked set is made again by itself; its cells have the same states.
            made = make_table(jobs)
            states = by_cell(found.pattern.design, found.pattern.state, jobs[0].spec)
            own = [states[codes] for codes in by_cell(made.table.design, None)]
            empty = made.table.z == 0
            letters = np.where(empty, "E", np.array(["S", "U", "M"])[np.array(own)])
            files = write_table(made.table, path, status=letters, metadata=made.metadata)
            written = list(files.values())
        self.result.files += written
        self.say(step, f"{path.name}: true values (confidential, owner only).")

    def write_log(self) -> None:
        """Write the log where the job asks for one."""
        if self.log_file is not None:
            text = "".join(f"{line}\n" for line in self.result.log)
            write_text(self.log_file, text, OWNER_ONLY)
            self.result.files.append(self.log_file)


def by_cell(design: Any, values: Any, spec: batch.TableSpec | None = None) -> dict[Any, Any]:
    """Values of published cells by their codes; for one table, of cells that are totals besides."""
    names = None if spec is None else spec.variables
    columns = [np.array(codes, dtype=object)[index] for index, codes in design.published_codes()]
    axes = [axis.name for axis in design.axes]
    inside = np.ones(design.n_published, dtype=bool)
    for axis, column in zip(design.axes, columns, strict=True):
        if names is not None and axis.name not in names:
            is_response = spec is not None and axis.name == INDICATOR
            kept = [spec.response] if spec is not None and is_response else [*axis.total_codes]
            inside &= np.isin(column, kept)
    shown = [columns[axes.index(name)] for name in names or axes]
    places = np.flatnonzero(inside).tolist()
    cells = (tuple(str(column[k]) for column in shown) for k in places)
    return dict(
        zip(cells, places if values is None else np.asarray(values)[places].tolist(), strict=True)
    )


def output_cells(
    found: ProtectedTable, spec: batch.TableSpec, *, show_kinds: bool = False
) -> OutputCells:
    """The cells of one table, totals first and in the order of hierarchies."""
    release, table, names = found.release, found.made.table, spec.variables
    values = by_cell(release.design, release.z, spec)
    hidden = by_cell(release.design, release.hidden, spec)
    counts = by_cell(table.design, table.z, spec)
    rank = {}
    for axis in release.design.axes:
        order = [axis.total, *tree_of(axis).parents]
        rank[axis.name] = {code: place for place, code in enumerate(order)}
    cells = sorted(values, key=lambda c: [rank[n].get(x, 0) for n, x in zip(names, c, strict=True)])
    state = None
    if show_kinds and found.pattern is not None:
        states = by_cell(found.pattern.design, found.pattern.state, spec)
        state = np.array([states[cell] for cell in cells], dtype=np.int8)
    status = release.status
    is_decimal = status is not None and bool((status == CellStatus.decimal).any())
    return OutputCells(
        names,
        cells,
        "frequency" if spec.has_counts else spec.response,
        np.array([values[cell] for cell in cells]),
        np.array([hidden[cell] for cell in cells], dtype=bool),
        np.array([counts[cell] == 0 for cell in cells], dtype=bool),
        state,
        max(found.made.decimals, 2) if is_decimal else found.made.decimals,
    )


def _with_verbs(read: Callable[Given, ArgusTable[TrueTable]]) -> Callable[Given, ArgusTable[Table]]:
    """The reader of a file, whose table can then be protected and saved."""

    @wraps(read)
    def read_for_users(*args: Given.args, **options: Given.kwargs) -> ArgusTable[Table]:
        found = read(*args, **options)
        return replace(found, table=Table.wrap(found.table))  # type: ignore[return-value]

    return read_for_users


read_table = _with_verbs(argus.read_table)
