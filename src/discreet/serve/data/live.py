"""Tables on the fly: a recipe goes in, a protected cube comes out. It touches records.

Tables with a privacy budget are a declared universe, each drawn once and kept.

Records are opened here for builds as well, and watched while tables are made of them.
"""

from __future__ import annotations

import glob
import math
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from discreet import __version__, registry
from discreet.design.axis import Axis
from discreet.design.formula import Term, parse
from discreet.errors import BudgetError, DataError, LedgerError, ParameterError
from discreet.facade.opening import open as open_microdata
from discreet.ledger import Ledger
from discreet.protect.editions import plan_edition
from discreet.protect.sentences import data_step
from discreet.publication.plan import is_local
from discreet.records.code_list import CodeLists
from discreet.records.connection import split_table
from discreet.records.query_engine import MOST_CELLS, CondensedCells, QueryEngine
from discreet.records.records import UnitRecords
from discreet.records.sources import name_of
from discreet.release.cube import Cube
from discreet.serve.data.cache import busy_refusal
from discreet.serve.data.price import UNDECLARED_RECORDS, Price, Rows, price_of
from discreet.serve.data.source import (
    BudgetStatus,
    DetailedVariable,
    Mode,
    OfferedVariable,
    at_detail,
    by_detail,
    crossing,
    variables_on_offer,
)
from discreet.serve.query import Query
from discreet.serve.refusals import Refusal
from discreet.tables.protected import COUNT

if TYPE_CHECKING:
    from discreet.facade.microdata import Microdata
    from discreet.facade.release import Release
    from discreet.publication import Publication
    from discreet.serve.data.cache import DiskCache
    from discreet.serve.site.config import RecordsConfig
    from discreet.tables.statement import Statement

T = TypeVar("T")
FileStamps = dict[str, tuple[int, int, int, int]]
_PATHS = (
    "codes",
    "secret",
    "random_keys",
    "metadata",
)  # entries of a site's file that are paths and nothing else
_BUDGET = ("epsilon", "delta", "relation")
_APART = (
    "source", "recode", "structural_zeros", "keys", "ledger", "mean_weight", *_BUDGET,
)  # fmt: skip


class LiveSource:
    """Tables of one recipe for whatever crossings are asked, each cell with the noise of its key.

    Variables, levels and labels are read from releases too, so a source that starts is one that
    can answer.

    Args:
      recipe: How tables are protected. Its margins name what is on offer: `region` offers every
        level, `region[province]` that one alone. The method must give a cell the same value in
        every table: other noise can be averaged away by asking for the cell in many of them.
      data: The records, or what opens them; opened again for every further connection.
      titles: Names of variables for readers.
      connections: Connections to the engine at most; one for records that are open.
      declared_records: The number of records as the office tells it, never counted.
      disk_cache: Where expensive cubes are kept on the disk, if there is a queue for them.
      keeps_all: Whether all cubes are kept there.
      files: The files of the records, as they were before.
    """

    mode: Mode = "on-the-fly"
    made_on = ""
    budget: BudgetStatus | None = None

    def __init__(
        self,
        recipe: Publication,
        data: Microdata | Callable[[], Microdata],
        titles: Mapping[str, str] | None = None,
        connections: int = 1,
        *,
        declared_records: int | None = None,
        disk_cache: DiskCache | None = None,
        keeps_all: bool = False,
        files: GuardedFiles | None = None,
    ) -> None:
        require_keyed(recipe)
        self._disk_cache, self._keeps_all = disk_cache, keeps_all
        self._tables = RecipeTables(recipe, data, connections, files, declared_records)
        self.variables, self.edition = self._tables.variables(titles), self._tables.edition
        self._tables.enter(self.variables)
        self._tables.condense(self.variables)
        # Missing keys are an error now, not for the first visitor.
        smallest = self._tables.release((self.variables[0].smallest.name,))
        self.statement, self.units = smallest.statement, (smallest.unit,)

    @property
    def is_current(self) -> bool:
        """Whether records, keys, code lists and secret are as they were opened."""
        return self._tables.is_current

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, protected cell by cell."""
        if unit not in self.units:
            raise ParameterError(f"unit {unit!r} is not published; the recipe says {self.units}.")
        if self._disk_cache is None or not (self._keeps_all or self.has(details, unit)):
            return self._tables.cube(details)
        return self._disk_cache.get((*details, unit), lambda: self._tables.cube(details))

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What the crossing costs, by code lists and declared records."""
        return self._tables.price(asked)

    def has(self, details: tuple[str, ...], unit: str) -> bool:
        """Whether the crossing lies on the disk."""
        return self._disk_cache is not None and (*details, unit) in self._disk_cache


def _drawn_afresh(data: Any) -> Any:
    """The records, their editions drawn afresh where the mode is left to the rule.

    On the fly a table is made when somebody asks for it, and nobody may have asked before: there
    is no earlier value to repeat.
    """
    data_set = getattr(data, "data_set", None)
    if data_set is None or data_set.mode.kind != "phased":
        return data
    if data_set.mode.every is not None:
        raise ParameterError(
            f"editions={data_set.keys!r} repeats values of an earlier edition, but on the fly "
            "tables are made when somebody asks. Use editions = 'fresh', 'renewed:0.05' or 'kept', "
            "or mode = 'release-once'."
        )
    return replace(data, data_set=replace(data_set, keys="fresh"))


class RecipeTables:
    """Releases of a recipe's crossings, over a few connections to the engine.

    Args:
      recipe: How tables are protected.
      data: The records, or what opens them.
      connections: Connections to the engine at most.
      files: The files of the records, as they were before.
      declared_records: The number of records as the office tells it.
    """

    def __init__(
        self,
        recipe: Publication,
        data: Microdata | Callable[[], Microdata],
        connections: int = 1,
        files: GuardedFiles | None = None,
        declared_records: int | None = None,
    ) -> None:
        self.recipe, self._files = recipe, files or GuardedFiles()
        self._rows, self._declared = declared_records or UNDECLARED_RECORDS, declared_records
        # Noise by key needs no inner cells: the work grows with records and published cells alone.
        self._method = method_of(recipe)  # its law takes longer to make than a small table
        self._options: dict[str, Any] = {"inner": self._method.source != "keys"}
        self._condensed: Any = None  # the records behind cells in memory
        first: Any = _drawn_afresh(data() if callable(data) else data)
        self._files.settle()
        make: Callable[[], Any] = (
            (lambda: _drawn_afresh(data())) if callable(data) else lambda: first
        )
        self._pool = ConnectionPool[Any](make, connections if callable(data) else 1, first=first)
        data_set = getattr(first, "data_set", None)
        self.edition = "1" if data_set is None else str(data_set.edition)
        self.name = "" if data_set is None else str(data_set.name)
        self.ledger = getattr(first, "ledger", None)

    def release(self, details: Sequence[str]) -> Release:
        """The protected crossing of some details.

        Raises:
          Refusal: The records are not those that were opened.
        """
        recipe = self.recipe.of(crossing(details))
        # Cells in memory are read by all at a time, and records that were counted once are not
        # opened again: keys of two million people took seconds and 150 MB, for the first visitor.
        condensed = self._condensed
        # Before, since other records must not be read; and after, since they may have been
        # exchanged while the engine read them.
        with self._pool.connection() if condensed is None else nullcontext(condensed) as data:
            self._files.check()
            table = recipe.tabulate(_without_ledger(data), **self._options)
            made = table.protect(self._method, unit=recipe.unit, ledger=self.ledger)
        self._files.check()
        return recipe.fit(made)

    @property
    def is_current(self) -> bool:
        """Whether the files of the records are those that were opened."""
        return self._files.are_as_before

    def enter(self, variables: Sequence[OfferedVariable]) -> None:
        """Enter the crossing of all that is on offer, in which every table on the fly lies.

        Raises:
          LedgerError: It differs too little from that of another edition.
        """
        if self.ledger is None:
            return
        finest = tuple(max(v.details, key=lambda d: d.cells).name for v in variables)
        recipe = replace(self.recipe.of([finest]), support="occurring")
        with self._pool.connection() as data:
            self.ledger.enter(recipe.tabulate(data))

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What a crossing costs."""
        kind: Rows = "counted" if "engine" in self._options else "records"
        return price_of(asked, kind, self._rows, holds_inner=self._options["inner"])

    def condense(self, variables: Sequence[OfferedVariable]) -> None:
        """Count the records once, where public sizes say that their cells fit into memory."""
        crossed = math.prod(len(v.axis) for v in variables)
        most = min(crossed, self._declared or crossed)
        if most > MOST_CELLS:
            return
        self._rows = most
        with self._pool.connection() as data:
            if isinstance(data, UnitRecords):
                self._files.check()
                names = [v.name for v in variables]
                self._options["engine"] = CondensedCells(QueryEngine(), data, names)
                self._condensed = data
        self._files.check()

    def statement(self, details: Sequence[str]) -> Statement:
        """What will be said of the crossing, from a trial on no records: it costs no budget."""
        recipe = self.recipe.of(crossing(details))
        with self._pool.connection() as data:
            table = recipe.tabulate(_without_ledger(data))
        method = method_of(recipe)
        empty = replace(
            table,
            published=table.published.apply_linear(np.zeros_like, table.convention),
            inner=table.inner and table.inner.apply_linear(np.zeros_like, table.convention),
        )
        trial = recipe.fit(empty.simulate(method, seed=0, unit=recipe.unit))
        plan = plan_edition(table, method)
        first = data_step(table, method, is_counted=self.ledger is not None, number=None, plan=plan)
        return replace(trial.statement.with_first_step(first), version=__version__)

    def cube(self, details: Sequence[str]) -> Cube:
        """The same as a cube."""
        return Cube.of(self.release(details))

    @property
    def unit(self) -> str:
        """What is published."""
        return self.recipe.unit or str(getattr(method_of(self.recipe), "units", (COUNT,))[0])

    def variables(self, titles: Mapping[str, str] | None) -> tuple[OfferedVariable, ...]:
        """The variables that the recipe's margins name."""
        with self._pool.connection() as data:
            axes = {name: axis_named(self.recipe, name, data) for name in names_of(self.recipe)}
        return variables_on_offer(axes, list(axes), titles)


def method_of(recipe: Publication) -> Any:
    """The method of a recipe."""
    return registry.build("method", recipe.method.name, recipe.method.parameters)


def names_of(recipe: Publication) -> list[str]:
    """What the margins of a recipe name, `region` or `region[province]`, each once."""
    return list(dict.fromkeys(name for term in parse(recipe.margins) for name in term))


def axis_named(recipe: Publication, name: str, data: Microdata) -> Axis:
    """A variable, from a table that is thrown away; it costs no budget."""
    design = recipe.of([(name,)]).tabulate(_without_ledger(data)).design
    return design.require_variables("variables to offer").axes[0]


def _without_ledger(data: Any) -> Any:
    """The records for a table that is not entered by itself, which saves a sketch of them."""
    return data if getattr(data, "ledger", None) is None else replace(data, ledger=None)


def require_keyed(recipe: Publication) -> None:
    """Refuse a method that draws new noise for every table."""
    method = method_of(recipe)
    if method.source != "keys" or not method.claims.consistent or recipe.fitter is not None:
        raise ParameterError(
            f"method {recipe.method.name!r} with these parameters gives a cell new noise in every "
            "table, so a visitor could average it away. On the fly the table builder needs a "
            "method that takes its noise from cell keys, with margins='own' and no fit: "
            "'cell-key' does. Methods that draw for a whole table go with mode = 'release-once'."
        )


def is_private(recipe: Publication) -> bool:
    """Whether tables are drawn with a privacy budget."""
    return bool(method_of(recipe).source == "system")


def files_of(records: RecordsConfig, folder: Path) -> GuardedFiles:
    """The files that records, their keys, code lists and secret are read from."""
    named = [records.source, *([] if records.keys is None else [records.keys])]
    places = [split_table(_resolve(name, folder))[0] for name in named if is_local(name)]
    lists = [] if records.codes is None else CodeLists.files(folder / records.codes)
    secret = [] if records.secret is None else [folder / records.secret]
    drawn = [] if records.random_keys is None else [str(folder / records.random_keys)]
    return GuardedFiles([*places, *map(str, [*lists, *secret])], drawn)


def missing_files(records: RecordsConfig, folder: Path) -> list[str]:
    """Files of records, keys and secret that are named and are not here."""
    sources = [name for name in (records.source, records.keys) if name and is_local(name)]
    named = {name: split_table(_resolve(name, folder))[0] for name in sources}
    if records.secret is not None:
        named[records.secret] = str(folder / records.secret)
    return [name for name, place in named.items() if not any(_expand(place))]


def open_records(records: RecordsConfig, folder: Path) -> Microdata:
    """The records that a site's file names; paths are relative to its folder.

    Raises:
      DataError: The secret's file is missing. A new secret would be new noise for the same cells.
    """
    names = [f.name for f in fields(records) if f.name not in _APART]
    given = {name: getattr(records, name) for name in names}
    given |= {name: folder / given[name] for name in _PATHS if given[name] is not None}
    if records.secret is not None and not given["secret"].exists():
        raise DataError(
            f"there is no secret file {given['secret']}, which the site's file names. Put the one "
            "back that tables were made with; for a site without any tables yet make one: "
            f"`discreet secret make {given['secret']}`."
        )
    if records.keys is not None:
        given["keys"] = _resolve(records.keys, folder)
    if records.ledger is not None:
        budget = {name: getattr(records, name) for name in _BUDGET}
        given["ledger"] = Ledger(folder / records.ledger, **budget)
    source = _resolve(records.source, folder)
    data = open_microdata(source, **{k: v for k, v in given.items() if v is not None})
    if records.mean_weight is not None:
        data = data.with_roles(mean_weight=records.mean_weight)
    data = data.with_structural_zeros(records.structural_zeros)
    return data.recode(records.recode) if records.recode else data


def edition_notices(records: RecordsConfig, folder: Path) -> tuple[str, ...]:
    """What readers are told of an edition that was corrected or withdrawn.

    The ledger's reasons stay with the office: some were entered for itself alone.
    """
    if records.ledger is None or not (folder / records.ledger).is_file():
        return ()
    name, edition = records.name or name_of(records.source, records.source), records.edition
    found = []
    for row in Ledger(folder / records.ledger).rows():
        if row.get("name") != name or row.get("decision") not in ("corrected", "withdrawn"):
            continue
        if row["decision"] == "withdrawn" and row["edition"] == edition:
            found.append("This edition was withdrawn.")
        elif row["edition"] == edition:
            found.append(f"Edition {row['about']} has taken the place of this edition.")
        elif row["about"] == edition:
            found.append(f"This edition replaces edition {row['edition']}.")
    return tuple(dict.fromkeys(found))


def _resolve(source: str, folder: Path) -> str:
    """A file beside the site's file; addresses of servers and tables beside records stay."""
    return str(folder / source) if is_local(source) else source


class GuardedFiles:
    """Files as they were before they were opened.

    Two tables of different records in one edition differ by whoever came or left, so nothing new is
    made once a file is another one.

    Args:
      names: Files, folders, and patterns of files.
      made: Files that the first opening makes where they are not there.
    """

    def __init__(self, names: Sequence[str] = (), made: Sequence[str] = ()) -> None:
        self._names, self._made = tuple(names), tuple(made)
        self._seen = file_stamps(self._names)

    @property
    def now(self) -> FileStamps:
        """All files as they are at the moment."""
        return file_stamps((*self._names, *self._made))

    def settle(self) -> None:
        """Take note of what the first opening has made."""
        came = file_stamps(self._made)
        self.check()
        self._names, self._made = (*self._names, *self._made), ()
        self._seen |= came

    @property
    def are_as_before(self) -> bool:
        """Whether no file was changed, exchanged, added or removed."""
        return file_stamps(self._names) == self._seen

    def check(self) -> None:
        """Refuse to go on with other files.

        Raises:
          Refusal: A file was changed, exchanged, added or removed.
        """
        if not self.are_as_before:
            message = "The records of this data set are being exchanged, so no new table is made."
            raise Refusal(
                "records_changed", message, "Tables that were made before; others later.", 503
            )


def file_stamps(names: Iterable[str]) -> FileStamps:
    """Device, inode, size and time of every file that the names mean."""
    found: FileStamps = {}
    for path in (path for name in names for path in _expand(name)):
        try:
            status = os.stat(path)
        except OSError:  # it goes at this moment, or is a link to nothing
            continue
        found[path] = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return found


def _expand(name: str) -> Iterator[str]:
    """A file by its name, what lies in a folder, or what fits a pattern."""
    if os.path.isfile(name):  # most are, and every table asks for all of them twice
        return iter([name])
    if Path(name).is_dir():
        name = f"{glob.escape(name)}/**"
    elif Path(name).exists():
        name = glob.escape(name)
    return glob.iglob(name, recursive=True)


class ConnectionPool(Generic[T]):
    """Connections that are opened when they are needed and used again.

    Args:
      make: Opens a connection.
      size: Most connections at a time.
      first: A connection that is open already.
      patience: Seconds that a question waits for one.
    """

    def __init__(
        self,
        make: Callable[[], T],
        size: int,
        *,
        first: T | None = None,
        patience: float = 60.0,
    ) -> None:
        self._make, self._free = make, queue.LifoQueue[T]()
        self._room, self._patience = threading.Semaphore(size), patience
        if first is not None:
            self._free.put(first)

    @contextmanager
    def connection(self) -> Iterator[T]:
        """A connection for the block.

        Raises:
          Refusal: None became free for too long.
        """
        if not self._room.acquire(timeout=self._patience):
            raise busy_refusal()
        try:
            try:
                connection = self._free.get_nowait()
            except queue.Empty:
                connection = self._make()
            try:
                yield connection
            finally:
                self._free.put(connection)
        finally:
            self._room.release()


class PrivateSource:
    """A declared universe of private tables.

    Each table of the universe is drawn when it is first needed; its cost is entered in the ledger
    before, and the cube is kept on the disk, so that it is never drawn again. Questions are
    answered from the smallest table that has their variables: smaller tables cost nothing.

    Args:
      tables: Draws tables of a recipe whose margins are the universe.
      disk_cache: Where drawn tables are kept.
      titles: Names of variables for readers.
    """

    mode: Mode = "on-the-fly"
    made_on = ""

    def __init__(
        self, tables: RecipeTables, disk_cache: DiskCache, titles: Mapping[str, str] | None = None
    ) -> None:
        if tables.ledger is None:
            raise ParameterError(
                "private noise on the fly spends a budget, and nothing keeps it. Name the "
                "custodian's ledger: ledger = 'ledger.db' beside the records."
            )
        self._tables, self._disk_cache, self._ledger = tables, disk_cache, tables.ledger
        self.variables: tuple[OfferedVariable, ...] = tables.variables(titles)
        self._asked = by_detail(self.variables)
        terms = parse(tables.recipe.margins)
        # A table that another one contains costs nothing: it is read from the larger one.
        largest = [t for t in terms if t and not any({*t} < {*other} for other in terms)]
        in_order = list(self._asked).index
        self.universe: list[Term] = [tuple(sorted(term, key=in_order)) for term in largest]
        self.edition, self.units = tables.edition, (tables.unit,)
        self.statement: Statement = tables.statement(self.universe[0])

    @property
    def budget(self) -> BudgetStatus:
        """What tables may cost and have cost."""
        name = self._tables.name
        spent = self._ledger.spent(name)
        limit = self._ledger.budget_of(name) or self._ledger.budget  # kept with the first table
        drawn = sum(_key(term) in self._disk_cache for term in self.universe)
        if limit is None:
            return BudgetStatus(spent.epsilon_at(0.0), None, 0.0, drawn, len(self.universe))
        try:
            proved = spent.under(limit.relation.change).epsilon_at(limit.delta)
        except LedgerError:  # something was entered that has no finite cost under the budget
            proved = math.inf
        return BudgetStatus(proved, limit.epsilon, limit.delta, drawn, len(self.universe))

    @property
    def is_current(self) -> bool:
        """Whether records, code lists and secret are as they were opened."""
        return self._tables.is_current

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, taken from a table of the universe."""
        cube = self._draw(self._find_covering(details))
        wanted = {asked.name: asked for asked in map(self._asked.__getitem__, details)}
        for axis in cube.axes:
            if axis.name in wanted:
                cube = at_detail(cube, wanted[axis.name])
            else:
                variable = next(v for v in self.variables if v.name == axis.name)
                cube = cube.at(axis.name, variable.axis.total)
        return cube

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What drawing the table of the universe costs that the crossing is taken from."""
        term = self._find_covering([one.detail.name for one in asked])
        return self._tables.price([self._asked[name] for name in term])

    def has(self, details: tuple[str, ...], unit: str) -> bool:
        """Whether that table was drawn."""
        return _key(self._find_covering(details)) in self._disk_cache

    def _draw(self, term: Term) -> Cube:
        """A table of the universe, drawn once and for all: a second draw would cost again."""
        try:
            return self._disk_cache.get(_key(term), lambda: self._tables.cube(term))
        except BudgetError as error:
            allowed = "Tables that were drawn before."
            raise Refusal("budget_spent", error.public(), allowed, 403) from None

    def _find_covering(self, details: Sequence[str]) -> Term:
        """The smallest table of the universe that has these details."""
        asked = self._asked
        fitting = [
            term
            for term in self.universe
            if all(d in term or asked[d].name in term for d in details)
        ]
        if fitting:
            return min(fitting, key=lambda t: math.prod(asked[name].detail.cells for name in t))
        offers = [
            (
                " by ".join(asked[name].label_inside for name in term),
                Query(rows=term[:1], columns=term[1:]),
            )
            for term in self.universe
        ]
        listed = "; ".join(label for label, _ in offers)
        message = "This crossing is not among the tables that the privacy budget was planned for."
        allowed = f"Tables: {listed}; and parts of them."
        raise Refusal("not_planned", message, allowed, offers=offers)


def _key(term: Term) -> tuple[str, ...]:
    return ("drawn", *term)
