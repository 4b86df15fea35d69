"""From records to protected inner tables, ahead of serving; it touches records."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.design.formula import parse
from discreet.design.support import LARGEST_DENSE
from discreet.digests import digest
from discreet.errors import DataError, ParameterError, check_known
from discreet.progress import report
from discreet.protect.publish import open_ledger
from discreet.protect.sentences import process
from discreet.records.code_list import CodeLists
from discreet.records.secret import Secret
from discreet.serve.data.inner import (
    InnerTable,
    current_build,
    is_built,
    write_build,
)
from discreet.serve.data.live import axis_named, method_of, names_of, open_records
from discreet.serve.data.measures import tables_of
from discreet.serve.data.source import require_declared
from discreet.tables.statement import plain_data

if TYPE_CHECKING:
    from discreet.design.axis import Axis
    from discreet.facade.microdata import Microdata
    from discreet.publication import Publication
    from discreet.publication.gate import Gatekeeper
    from discreet.release.cube import Cube
    from discreet.serve.site.config import DatasetConfig, SiteConfig
    from discreet.tables.statement import Statement

# neither a larger budget, nor a declared churn, nor what the ledger compares draws a table again
_NOT_DECIDING = (
    "ledger", "epsilon", "delta", "relation", "time", "moves", "churn", "planned",
)  # fmt: skip
_SINCE_0_2 = ("mean_weight", "delimiter", "thousands", "header", "metadata", "period")
_BYTES_PER_CELL = 140  # true counts and keys, the protected cells, and working copies
_BYTES_PER_ENTRY = 8  # of a search, for each inner cell and table
_BYTES_PER_FILLED = 700  # the same for cells that are found one by one, with their codes
_BYTES_PER_PLACE = 32  # of the full crossing, on which protected cells are put


@dataclass(frozen=True)
class BuildPlan:
    """What a build will take; for the office alone, since it tells how many records there are.

    Attributes:
      name: The data set.
      inner: Cells of the full crossing.
      tables: Tables that the method looks at.
      memory: Bytes that are needed beside the program's own, as an upper estimate.
    """

    name: str
    inner: int
    tables: int
    memory: int

    @property
    def text(self) -> str:
        """The plan for people."""
        return (
            f"{self.name}: {self.inner:,} inner cells, {self.tables:,} tables, "
            f"up to {self.memory / 1e9:,.2f} GB of memory"
        )


@dataclass(frozen=True)
class FinishedBuild:
    """A built data set: its place, how many protected cells it keeps, and what is said of it."""

    name: str
    edition: str
    place: Path
    cells: int
    statement: Statement


def origin_of(dataset: DatasetConfig, folder: Path) -> str:
    """A digest of what decides about a data set's tables, and the mark of its secret.

    Publication, code lists with their hierarchies, and all that is said of the records decide; the
    ledger and its budget do not. The mark follows behind a dot where the secret is at hand: a
    machine that serves what was built elsewhere has none.
    """
    recipe, records = replace(dataset.recipe, gate=None), dataset.records  # it draws nothing
    sums = {name: measure.recipe for name, measure in dataset.measures.items()}
    lists = [Path(path) for r in (recipe, *sums.values()) for path in r.hierarchies.values()]
    wanted: Any = recipe.to_dict()
    if sums:  # builds of before stay what they are where nothing is summed
        wanted = [wanted, {name: one.to_dict() for name, one in sums.items()}]
    if records is None:
        return digest(_to_json(wanted), _read_all(lists)).hex()
    if records.codes is not None:
        lists += CodeLists.files(folder / records.codes)
    names = [f.name for f in fields(records) if f.name not in _NOT_DECIDING]
    said = {name: getattr(records, name) for name in names}
    for name in _SINCE_0_2:  # builds of 0.2 stay what they are while nothing new is said
        if said[name] is None:
            del said[name]
    origin = digest(_to_json([wanted, said]), _read_all(lists)).hex()
    if records.secret is None or not os.access(folder / records.secret, os.R_OK):
        return origin
    return f"{origin}.{Secret.from_file(folder / records.secret).mark}"


def _read_all(paths: Sequence[Path]) -> list[bytes]:
    try:
        return [path.read_bytes() for path in paths]
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}.") from error


def require_inner(recipe: Publication) -> None:
    """Refuse a recipe whose release has no inner cells, before any work is done."""
    if recipe.fitter is not None:
        return
    method = method_of(recipe)
    gives = method.name == "safe" or getattr(method, "force_inner", False)
    if not (gives or getattr(method, "margins", None) == "summed"):
        raise ParameterError(
            f"method {recipe.method.name!r} with these parameters releases no inner cells, so "
            "nothing can be summed from its release. Use safe, small-count-rounding with "
            "force_inner = true, or private noise with a [fit]; or serve on the fly (mode = "
            "'on-the-fly' in a site, --on-the-fly with records), which tells more."
        )


def inner_table(
    recipe: Publication,
    data: Microdata | Any,
    made_from: str = "",
    *,
    again: bool = False,
    keeper: Gatekeeper | None = None,
) -> InnerTable:
    """The protected inner table of a recipe, judged where somebody keeps the gate."""
    require_inner(recipe)
    made = _on_occurring_cells(recipe)
    release = made.run(data, again=again) if keeper is None else _judged(made, data, keeper, again)
    zeros = getattr(data, "structural_zeros", ())
    return InnerTable.of(release, data.data_set.edition, zeros, made_from)


def plan_build(dataset: DatasetConfig, data: Microdata) -> BuildPlan:
    """What the build of a data set takes; refuses what cannot be served before the work."""
    named = require_offered(dataset.recipe, data)
    inner = math.prod({axis.name: len(axis) for axis in named}.values())
    tables = len(parse(dataset.recipe.margins))
    return BuildPlan(dataset.name, inner, tables, _memory(dataset.recipe, data, inner, tables))


def require_offered(recipe: Publication, data: Microdata) -> list[Axis]:
    """The variables on offer; refuses what cannot be served as one release."""
    require_inner(recipe)
    named = [axis_named(recipe, name, data) for name in names_of(recipe)]
    for axis in named:
        require_declared(axis)
    return named


def _memory(recipe: Publication, data: Microdata, inner: int, tables: int) -> int:
    entries = _BYTES_PER_ENTRY * tables
    if _on_occurring_cells(recipe).support != "occurring":
        return inner * (_BYTES_PER_CELL + entries)
    records = int(recipe.of([()]).tabulate(replace(data, ledger=None)).z[0])
    lifted = inner if inner <= LARGEST_DENSE else 0
    return min(records, inner) * (_BYTES_PER_FILLED + entries) + lifted * _BYTES_PER_PLACE


def _on_occurring_cells(recipe: Publication) -> Publication:
    """The recipe on the cells that occur, where the method leaves all others empty anyway."""
    method = method_of(recipe)
    is_sparse = method.claims.keeps_zeros and recipe.fitter is None
    return replace(recipe, support="occurring") if is_sparse else recipe


def build(
    config: SiteConfig, dataset: DatasetConfig, data: Microdata, *, again: bool, accept: str = ""
) -> FinishedBuild:
    """Build a data set's inner table and make it the one that is served.

    Raises:
      GateError: The recipe has a `gate`, and attacks found more than it allows or did not finish.
    """
    report(f"building {dataset.name}", 0.0)
    keeper = _gatekeeper(config, dataset, data, accept)
    if keeper is not None:
        _pass_gate(dataset.recipe, data, keeper)
    origin = origin_of(dataset, config.folder)
    folder = config.cache_folder / dataset.name
    table = repeated_table(dataset.recipe, data, folder, origin)
    if table is None:
        table = inner_table(dataset.recipe, data, origin, again=again, keeper=keeper)
    if dataset.measures:
        table = replace(table, sums=protected_sums(dataset, data, again=again))
    place = write_build(table, folder)
    report(f"building {dataset.name}", 1.0)
    return FinishedBuild(dataset.name, table.edition, place, len(table.values), table.statement)


def _gatekeeper(
    config: SiteConfig, dataset: DatasetConfig, data: Microdata, accept: str
) -> Gatekeeper | None:
    """Who judges the method and the release, where the recipe has a `gate`."""
    if dataset.recipe.gate is None or dataset.recipe.gate.is_off:
        return None
    from discreet.publication.gate import Gatekeeper  # start-up time

    path = config.folder / "confidential" / f"{dataset.name}-{data.data_set.edition}.gate.md"
    return Gatekeeper(path, accept, open_ledger(data.ledger), data.data_set)


def _pass_gate(recipe: Publication, data: Microdata, keeper: Gatekeeper) -> None:
    """Attack the method before anything is drawn."""
    from discreet.publication.gate import judge_method  # start-up time

    recipe = _on_occurring_cells(recipe)
    keeper.check(judge_method(recipe, replace(data, ledger=None), recipe.tabulate(data)))


def _judged(recipe: Publication, data: Microdata, keeper: Gatekeeper, again: bool) -> Any:
    """The release of a recipe, in which no more people are certain than its gate allows."""
    from discreet.publication.gate import judge_release  # start-up time

    book = keeper.ledger
    before = frozenset() if book is None else book.release_numbers(data.data_set)
    release = recipe.run(data, again=again)
    after = frozenset() if book is None else book.release_numbers(data.data_set)
    keeper.check(judge_release(recipe, release), max(after - before, default=0))
    return release


def protected_sums(
    dataset: DatasetConfig, data: Microdata, *, again: bool
) -> dict[str, tuple[Cube, ...]]:
    """The protected tables of each sum, released once."""
    if data.data_set.mode.every is not None:
        raise ParameterError(
            f"editions={data.data_set.keys!r} repeats figures of an earlier edition, and sums "
            f"beside counts are of their own edition. Use editions = 'fresh' for {dataset.name!r}."
        )
    return {
        name: tables_of(measure.recipe.run(data, again=again))
        for name, measure in dataset.measures.items()
    }


def repeated_table(
    recipe: Publication, data: Microdata, folder: Path, made_from: str
) -> InnerTable | None:
    """The inner table of the edition before, if editions are phased and none is due."""
    every, named, found = data.data_set.mode.every, data.data_set, current_build(folder)
    if every is None or found is None or not found.is_dir():
        return None
    before = InnerTable.read(found)
    first, done = before.statement.steps[0], before.statement.steps[1]
    place = int(first.parameters.get("place", 0)) + 1
    is_ours = first.parameters.get("name") == named.name and before.edition != named.edition
    is_same = done.name == f"protect:{recipe.method.name}" and all(
        done.parameters.get(name, value) == plain_data(value)
        for name, value in recipe.method.parameters.items()
    )
    axes = {a.name: a for a in (axis_named(recipe, name, data) for name in names_of(recipe))}
    is_same &= {n: a.leaves for n, a in axes.items()} == {a.name: a.leaves for a in before.axes}
    if not is_ours or not is_same or place % every == 0:
        return None
    told = {
        **first.parameters,
        "edition": named.edition,
        "place": place,
        "keys": str(named.mode),
        "why": f"the tables are those of edition {before.edition}, drawn afresh every {every}",
    }
    note = process("repeated", f"All figures are those of edition {before.edition!r}.")
    step = replace(first, parameters=told, sentences=(*first.sentences, note))
    statement = replace(before.statement, steps=(step, *before.statement.steps[1:]))
    return replace(before, statement=statement, edition=named.edition, made_from=made_from)


def datasets_to_build(
    config: SiteConfig, only: Sequence[str] = (), *, stale: bool = False
) -> list[DatasetConfig]:
    """The data sets that are released once.

    Args:
      config: The site.
      only: Names of data sets; all when empty.
      stale: Leave out those that are built already.
    """
    known = {d.name: d for d in config.datasets if d.mode == "release-once"}
    check_known("data set that is released once", only, known)
    chosen = [d for name, d in known.items() if not only or name in only]

    def is_stale(dataset: DatasetConfig) -> bool:
        folder = config.cache_folder / dataset.name
        return not is_built(folder, origin_of(dataset, config.folder))

    return [d for d in chosen if not stale or is_stale(d)]


def open_records_of(
    config: SiteConfig, dataset: DatasetConfig, ledger: Path | None = None
) -> Microdata:
    """The records of a data set, opened; a ledger that is given takes the place of its own."""
    records = dataset.records
    if records is None:
        raise ParameterError(f"data set {dataset.name!r} names no records.")
    if ledger is not None:
        records = replace(records, ledger=str(ledger.absolute()))
    return open_records(records, config.folder)


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
