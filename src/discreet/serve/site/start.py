"""From what a site's file says to a site that answers, and that follows its file."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.digests import digest
from discreet.errors import DataError, DiscreetError
from discreet.progress import in_processes
from discreet.serve.build import open_records_of, origin_of
from discreet.serve.data.cache import DiskCache
from discreet.serve.data.dataset import Dataset, DatasetInfo
from discreet.serve.data.inner import POINTER, InnerSource, current_build, damaged_files, read_build
from discreet.serve.data.live import (
    FileStamps,
    GuardedFiles,
    LiveSource,
    PrivateSource,
    RecipeTables,
    edition_notices,
    file_stamps,
    files_of,
    is_private,
    names_of,
)
from discreet.serve.data.measures import measures_of
from discreet.serve.data.source import Source
from discreet.serve.policy.policy import Policy
from discreet.serve.site.config import DatasetConfig, SiteConfig, read_site
from discreet.serve.site.site import Site, SiteHolder

if TYPE_CHECKING:
    from discreet.facade.microdata import Microdata
    from discreet.release.cube import Cube

_KEPT_BYTES = 2_000_000_000  # of a data set's tables on the disk
_log = logging.getLogger("discreet.serve")


def start_site(config: SiteConfig) -> Site:
    """A site with all its data sets ready to answer."""
    return _SiteMaker().site(config)


def load_site(path: str | Path) -> SiteHolder:
    """A site from its file, with a way to make it anew when the file changes."""
    maker = _SiteMaker()

    def remake(_: Site) -> Site:
        try:
            config = read_site(path)
        except DiscreetError as error:
            error.is_public = True  # it speaks of the file alone, so it may be shown
            raise
        return maker.site(config)

    return SiteHolder(maker.site(read_site(path)), remake)


def require_working(path: str | Path) -> None:
    """Refuse a site that cannot start; it is started in a process of its own, and goes with it.

    Raises:
      DataError: What keeps it from starting.
    """
    for fault in in_processes(_fault_of, [str(path)], 1):
        if fault:
            raise DataError(fault)


def _fault_of(path: str) -> str:
    try:
        load_site(path)
    except DiscreetError as error:
        return str(error)
    return ""


class _SiteMaker:
    """Makes sites; a data set of which nothing changed stays as it is, and so does its switch."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[object, Dataset]] = {}

    def site(self, config: SiteConfig) -> Site:
        """A site with all its data sets ready to answer."""
        made = {d.name: self._dataset(config, d) for d in config.datasets}
        self._made = made
        site = Site(config, {name: dataset for name, (_, dataset) in made.items()})
        for code in config.languages:  # what a language lacks is an error now, not for a visitor
            _ = site.language(code).texts, site.in_language(code)
        return site

    def _dataset(self, config: SiteConfig, wanted: DatasetConfig) -> tuple[object, Dataset]:
        if wanted.records is not None:
            notices = edition_notices(wanted.records, config.folder)
            about = replace(wanted.about, footnotes=(*notices, *wanted.about.footnotes))
            wanted = replace(wanted, about=about)
        # What readers are told and what they may ask changes without opening the records again.
        behind = replace(wanted, about=DatasetInfo(), policy=Policy())
        build = current_build(config.cache_folder / wanted.name)
        files = _files_behind(config, wanted).now  # other records are opened anew
        stamp = (behind, origin_of(wanted, config.folder), build, config.folder, files)
        seen, before = self._made.get(wanted.name, (None, None))
        if before is None or seen != stamp:
            made = _open_dataset(config, wanted)
            if before is not None:
                before.switch.is_damaged = False
                made = replace(made, switch=before.switch)
            return stamp, made
        # What is mapped into memory is what lies on the disk.
        damaged = [] if build is None else damaged_files(build)
        before.switch.is_damaged = bool(damaged)
        if damaged:
            _log.error("%s was damaged: %s. Build it again.", build, ", ".join(damaged))
        if (before.about, before.policy) == (wanted.about, wanted.policy):
            return stamp, before
        return stamp, replace(before, about=wanted.about, policy=wanted.policy)


def _open_dataset(config: SiteConfig, dataset: DatasetConfig) -> Dataset:
    try:
        source = _open_source(config, dataset)
        offered = {v.name for v in source.variables}
        named_sums = {name: (m.title, m.mean) for name, m in dataset.measures.items()}
        sums = source.table.sums if isinstance(source, InnerSource) else {}
        measures = measures_of(named_sums, sums, source.variables)
        told = dataset.records.time if dataset.records else ()
        named = (told,) if isinstance(told, str) else told
        time = next((name for name in named if name in offered), "")
        return Dataset(
            dataset.name,
            dataset.about,
            source,
            dataset.policy,
            time=time,
            has_queue=True,
            measures=measures,
        )
    except DiscreetError as error:
        error.args = (f"data set {dataset.name!r}: {error}",)
        raise


def _open_source(config: SiteConfig, dataset: DatasetConfig) -> Source:
    folder, origin = config.cache_folder / dataset.name, origin_of(dataset, config.folder)
    if dataset.mode == "release-once":
        names = dataset.variables or names_of(dataset.recipe)
        return InnerSource(read_build(folder, origin), names, dataset.labels)
    recipe, files = dataset.recipe, _files_behind(config, dataset)
    if dataset.variables:
        recipe = recipe.of([(name,) for name in dataset.variables])

    def open_again() -> Microdata:
        return open_records_of(config, dataset)

    connections, declared = dataset.connections, dataset.declared_records
    if is_private(recipe):
        tables = RecipeTables(recipe, open_again, connections, files, declared)
        return PrivateSource(tables, DiskCache(folder / "private", origin), dataset.labels)
    return LiveSource(
        recipe,
        open_again,
        dataset.labels,
        connections,
        declared_records=declared,
        disk_cache=_kept_cubes(config, dataset, files),
        keeps_all=dataset.keep_cubes,
        files=files,
    )


def _kept_cubes(config: SiteConfig, dataset: DatasetConfig, files: GuardedFiles) -> DiskCache:
    """Where tables on the fly are kept; those of other records are never found there."""
    folder, origin = config.cache_folder / dataset.name, origin_of(dataset, config.folder)
    return DiskCache(folder / "cubes", digest(origin, files.now).hex(), _KEPT_BYTES)


def make_queued_cube(path: str, name: str, unit: str, *details: str) -> None:
    """Make a table and keep it on the disk: the work of a process of its own, for the queue.

    The ledger knows the records already, from the site that runs.
    """
    stop_with_parent()
    config = read_site(path)
    dataset = next(d for d in config.datasets if d.name == name)
    files = _files_behind(config, dataset)
    if is_private(dataset.recipe):
        _open_source(config, dataset).cube(details, unit)
        return

    def make() -> Cube:
        tables = RecipeTables(dataset.recipe, lambda: open_records_of(config, dataset), 1, files)
        return tables.cube(details)

    _kept_cubes(config, dataset, files).get((*details, unit), make)


def stop_with_parent() -> None:
    """Stop this process when the one that started it is gone, however that ended."""
    # Asked of multiprocessing first: a parent that was killed while this process started has
    # already given it away, and whoever took it is not to be watched.
    known = multiprocessing.parent_process()
    parent = os.getppid() if known is None else known.pid

    def watch() -> None:
        # Asked for, since a parent that is killed sends no signal.
        while os.getppid() == parent:
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent watch").start()


def _files_behind(config: SiteConfig, dataset: DatasetConfig) -> GuardedFiles:
    """The files that tables on the fly are made of; what is released once needs none."""
    if dataset.mode == "release-once" or dataset.records is None:
        return GuardedFiles()
    return files_of(dataset.records, config.folder)


class SiteWatcher:
    """Looks at the files of a site every few seconds and exchanges the site when they change.

    Requests under way finish on the site they started with. A file that cannot be used leaves the
    old site in place; the log says so.

    Args:
      holder: The site.
      path: Its file.
      seconds: How often the files are looked at.
    """

    def __init__(self, holder: SiteHolder, path: str | Path, seconds: float = 2.0) -> None:
        self._holder, self._path, self._seconds = holder, Path(path), seconds
        self._seen = self._stamp()
        self._asked, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="site watch")

    def start(self) -> SiteWatcher:
        """Begin to look, and take SIGHUP where signals can be taken."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and hasattr(signal, "SIGHUP"):  # Windows has none
            signal.signal(signal.SIGHUP, lambda *_: self._asked.set())
        self._thread.start()
        return self

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._asked.set()
        self._thread.join(10 * self._seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            is_asked = self._asked.wait(self._seconds)
            self._asked.clear()
            if self._stop.is_set():
                return
            now = self._stamp()
            if is_asked or now != self._seen:
                self._seen = now
                self._reload()

    def _reload(self) -> None:
        try:
            read_site(self._path)  # what it says about itself may be logged as it is
        except DiscreetError as error:
            _log.error("the site stays as it was: %s", error)
            return
        try:
            self._holder.reload()
        except Exception as error:  # its text may show codes of the records
            _log.error("the site stays as it was: %s; see discreet serve", type(error).__name__)
        else:
            _log.warning("the site was read again")

    def _stamp(self) -> FileStamps:
        """When the files were last written."""
        folder = self._holder.current.config.cache_folder
        pointers = [folder / name / POINTER for name in self._holder.current.datasets]
        return file_stamps(map(str, (self._path, *pointers)))
