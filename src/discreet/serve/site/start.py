"""From what a site's file says to a site that answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.digests import digest
from discreet.errors import DiscreetError
from discreet.serve.build import made_from, records_of
from discreet.serve.data.dataset import About, Dataset
from discreet.serve.data.files import Files
from discreet.serve.data.folder import pointed, read_build
from discreet.serve.data.inner import InnerSource
from discreet.serve.data.live import LiveSource, Tables, files_of, is_private, names_of
from discreet.serve.data.private import PrivateSource
from discreet.serve.data.shelf import Shelf
from discreet.serve.data.source import Source
from discreet.serve.policy.policy import Policy
from discreet.serve.site.config import DatasetConfig, SiteConfig
from discreet.serve.site.read import read_site
from discreet.serve.site.site import Site, SiteHolder

if TYPE_CHECKING:
    from discreet.facade.microdata import Microdata


def started(config: SiteConfig) -> Site:
    """A site with all its data sets ready to answer."""
    return _Maker().site(config)


def held_site(path: str | Path) -> SiteHolder:
    """A site from its file, with a way to make it anew when the file changes."""
    maker = _Maker()
    return SiteHolder(maker.site(read_site(path)), lambda _: maker.site(_read_again(path)))


def _read_again(path: str | Path) -> SiteConfig:
    """What the file says now; an error in it speaks of the file alone, so it may be shown."""
    try:
        return read_site(path)
    except DiscreetError as error:
        error.is_public = True
        raise


class _Maker:
    """Makes sites; a data set of which nothing changed stays as it is, and so does its switch."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[object, Dataset]] = {}

    def site(self, config: SiteConfig) -> Site:
        """A site with all its data sets ready to answer."""
        made = {d.name: self._dataset(config, d) for d in config.datasets}
        self._made = made
        return Site(config, {name: dataset for name, (_, dataset) in made.items()})

    def _dataset(self, config: SiteConfig, wanted: DatasetConfig) -> tuple[object, Dataset]:
        build = pointed(config.cache_folder / wanted.name)
        behind = replace(wanted, about=About(), policy=Policy())
        files = _files(config, wanted).now  # other records are opened anew
        stamp = (behind, made_from(wanted, config.folder), build, config.folder, files)
        seen, before = self._made.get(wanted.name, (None, None))
        if before is None or seen != stamp:
            made = _dataset(config, wanted)
            return stamp, made if before is None else replace(made, switch=before.switch)
        if (before.about, before.policy) == (wanted.about, wanted.policy):
            return stamp, before
        return stamp, replace(before, about=wanted.about, policy=wanted.policy)


def _dataset(config: SiteConfig, dataset: DatasetConfig) -> Dataset:
    try:
        return Dataset(dataset.name, dataset.about, _source(config, dataset), dataset.policy)
    except DiscreetError as error:
        error.args = (f"data set {dataset.name!r}: {error}",)
        raise


def _source(config: SiteConfig, dataset: DatasetConfig) -> Source:
    folder, origin = config.cache_folder / dataset.name, made_from(dataset, config.folder)
    if dataset.mode == "release-once":
        names = dataset.variables or names_of(dataset.recipe)
        return InnerSource(read_build(folder, origin), names, dataset.labels)
    recipe, files = dataset.recipe, _files(config, dataset)
    if dataset.variables:
        recipe = recipe.of([(name,) for name in dataset.variables])

    def opened() -> Microdata:
        return records_of(config, dataset)

    if is_private(recipe):
        tables = Tables(recipe, opened, dataset.connections, files)
        return PrivateSource(tables, Shelf(folder / "private", origin), dataset.labels)
    kept = Shelf(folder / "cubes", digest(origin, files.now).hex()) if dataset.keep_cubes else None
    return LiveSource(
        recipe, opened, dataset.labels, connections=dataset.connections, shelf=kept, files=files
    )


def _files(config: SiteConfig, dataset: DatasetConfig) -> Files:
    """The files that tables on the fly are made of; what is released once needs none."""
    if dataset.mode == "release-once" or dataset.records is None:
        return Files()
    return files_of(dataset.records, config.folder)
