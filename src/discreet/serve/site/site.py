"""The site that answers: data sets by name, and a holder that exchanges it for a new one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from discreet.serve.data.dataset import Dataset
from discreet.serve.refusals import no_such
from discreet.serve.site.config import SiteConfig
from discreet.serve.site.language import SiteLanguage


@dataclass(frozen=True, eq=False)
class Site:
    """What an application answers for.

    Attributes:
      config: What the site's file says.
      datasets: The data sets by name, in the order of the catalogue.
    """

    config: SiteConfig
    datasets: Mapping[str, Dataset]

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", MappingProxyType(dict(self.datasets)))

    @property
    def title(self) -> str:
        """Heading of the pages."""
        return self.config.title

    @property
    def failures(self) -> list[str]:
        """What keeps tables of some data set from being made, by name."""
        faults = {dataset.fault for dataset in self.datasets.values()}
        return [what for what in ("build", "records") if what in faults]

    def language(self, code: str) -> SiteLanguage:
        """What the site says in one of its languages."""
        if code not in self._languages:
            self._languages[code] = SiteLanguage.read(code, self.config.folder)
        return self._languages[code]

    def in_language(self, code: str) -> Site:
        """The site with the labels of its data sets in one of its languages."""
        if code not in self._sites:
            said = self.language(code)
            datasets = {name: said.dataset(found) for name, found in self.datasets.items()}
            is_same = all(datasets[name] is found for name, found in self.datasets.items())
            self._sites[code] = self if is_same else replace(self, datasets=datasets)
        return self._sites[code]

    @cached_property
    def _languages(self) -> dict[str, SiteLanguage]:
        return {}

    @cached_property
    def _sites(self) -> dict[str, Site]:
        return {}

    def dataset(self, name: str) -> Dataset:
        """The data set of this name."""
        if name not in self.datasets:
            known = self.datasets
            raise no_such("data set", name, known, "Data sets", code="unknown_dataset", status=404)
        return self.datasets[name]


class SiteHolder:
    """The site of the moment; a request keeps the one it started with.

    Args:
      site: The first site.
      remake: Makes the site anew from its file; nothing can be reloaded when absent.
    """

    def __init__(self, site: Site, remake: Callable[[Site], Site] | None = None) -> None:
        self._current, self._remake = site, remake
        self._prepare: list[Callable[[Site], None]] = []
        self._lock = threading.Lock()

    @property
    def current(self) -> Site:
        """The site that new requests get."""
        return self._current

    def prepare_by(self, prepare: Callable[[Site], None]) -> None:
        """Have every site prepared before it gets requests, the present one at once."""
        with self._lock:
            self._prepare.append(prepare)
            prepare(self._current)

    def reload(self) -> Site:
        """Make the site anew; requests under way finish on the old one.

        When the new site cannot be made, the old one stays and the error is raised.
        """
        with self._lock:
            if self._remake is not None:
                made = self._remake(self._current)
                for prepare in self._prepare:
                    prepare(made)
                self._current = made
            return self._current


def as_holder(site: Site | SiteHolder) -> SiteHolder:
    """A holder of the site."""
    return site if isinstance(site, SiteHolder) else SiteHolder(site)


def current_site(request: Any) -> Site:
    """The site that a request started with."""
    found: Site = request.state.site
    return found
