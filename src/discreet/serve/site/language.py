"""Languages of a site's own: texts of pages, and labels of data sets, from the folder of its file.

`texts/nb.toml` beside `site.toml` may hold `[pages]` (the texts of pages, by section), `[texts]`
(sentences of statements), `[datasets.NAME]` (what readers are told), `[variables]`,
`[measures]` and `[codes.NAME]` (labels). It may be the file of a publication as well, whose own
sections are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from discreet.errors import DataError, UnknownNameError
from discreet.release.cube import Cube
from discreet.release.language import FOLDER, read_own
from discreet.serve.data.dataset import Dataset, DatasetInfo
from discreet.serve.data.price import Price
from discreet.serve.data.source import DetailedVariable, OfferedVariable
from discreet.serve.web.texts import DEFAULT, Texts, languages, make_texts, read_texts

_OPTIONAL = ("said",)  # a language may do without sentences of the builder, which then are English


def offered_languages(folder: Path) -> tuple[str, ...]:
    """The languages that a site in this folder can have: ours, and those with a file of its own."""
    own = sorted(path.stem for path in (folder / FOLDER).glob("*.toml"))
    return (*languages(), *(code for code in own if code not in languages()))


@dataclass(frozen=True, eq=False)
class SiteLanguage:
    """What a site says in one language.

    Attributes:
      code: The language.
      own: What the site's own file says; empty where there is none.
    """

    code: str
    own: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, code: str, folder: Path) -> SiteLanguage:
        """The language of a site whose file lies in this folder."""
        return cls(code, read_own(code, folder))

    @cached_property
    def texts(self) -> Texts:
        """The texts of pages; what a new language lacks is an error that names it."""
        english = read_texts(DEFAULT)
        ours = read_texts(self.code) if self.code in languages() else {"said": {}}
        content = _merge(ours, self.own.get("pages", {}))
        content["said"] = {**content["said"], **self.own.get("texts", {})}
        known, found = _paths(english), _paths(content)
        if further := sorted(found - known):
            raise UnknownNameError(f"text of pages in {self._file}", further[0], sorted(known))
        if lacking := sorted(known - found):
            raise DataError(
                f"{self._file} lacks {len(lacking)} texts of pages, {lacking[0]!r} of [pages] for "
                f"one; {DEFAULT}.toml of discreet.serve.web shows all of them."
            )
        return make_texts(self.code, content)

    def dataset(self, dataset: Dataset) -> Dataset:
        """A data set with its labels in this language; those that it lacks stay as they are."""
        told = self.own.get("datasets", {}).get(dataset.name, {})
        known = [f.name for f in fields(DatasetInfo)]
        for name in told:
            if name not in known:
                where = f"entry of [datasets.{dataset.name}] in {self._file}"
                raise UnknownNameError(where, name, known)
        labels, codes = self.own.get("variables", {}), self.own.get("codes", {})
        titles = self.own.get("measures", {})
        if not (told or labels or codes or titles):
            return dataset
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in told.items()}
        source = TranslatedSource(dataset, labels, codes)
        own = {f.name: getattr(dataset, f.name) for f in fields(dataset)}
        measures = dataset.measures.items()
        own |= {"about": replace(dataset.about, **given), "source": source}
        own |= {"measures": {n: replace(m, title=titles.get(n, m.title)) for n, m in measures}}
        return TranslatedDataset(**own)

    @property
    def _file(self) -> str:
        return f"{FOLDER}/{self.code}.toml"


class TranslatedDataset(Dataset):
    """A data set with other labels; its cubes are kept and waited for in its own language."""

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """A protected crossing, with labels of this language."""
        return self.source.cube(details, unit)


class TranslatedSource:
    """The protected cubes of a data set with other labels; not one figure is asked for again.

    Args:
      dataset: The data set in its own language.
      labels: Names of variables.
      codes: Labels of categories, by variable and code.
    """

    def __init__(
        self, dataset: Dataset, labels: Mapping[str, str], codes: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._dataset, self._codes = dataset, codes
        source = dataset.source
        self.mode, self.edition, self.made_on = source.mode, source.edition, source.made_on
        self.statement, self.units = source.statement, source.units
        self.variables = tuple(
            OfferedVariable(
                replace(v.axis, labels={**v.axis.labels, **codes.get(v.name, {})}),
                v.details,
                labels.get(v.name, v.title),
            )
            for v in source.variables
        )

    @property
    def budget(self) -> Any:
        """What private tables may cost and have cost."""
        return self._dataset.source.budget

    @property
    def is_current(self) -> bool:
        """Whether the files that tables are made of are those that were opened."""
        return self._dataset.source.is_current

    def price(self, asked: Sequence[DetailedVariable]) -> Price:
        """What the crossing costs."""
        return self._dataset.source.price(asked)

    def has(self, details: tuple[str, ...], unit: str) -> bool:
        """Whether the crossing was made before."""
        return self._dataset.is_at_hand(details, unit)

    def cube(self, details: tuple[str, ...], unit: str) -> Cube:
        """The crossing of these details, with labels of this language."""
        cube = self._dataset.cube(details, unit)
        for axis in cube.axes:
            own = self._codes.get(axis.name, {})
            entries = (replace(e, label=own.get(e.code, e.label)) for e in axis.entries)
            cube = cube.with_entries(axis.name, entries) if own else cube
        return cube


def _merge(ours: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Sections with what is said anew."""
    found = dict(ours)
    for name, value in own.items():
        is_section = isinstance(value, Mapping)
        found[name] = _merge(found.get(name, {}), value) if is_section else value
    return found


def _paths(content: Mapping[str, Any], before: str = "") -> set[str]:
    """The places of all texts, `table.rows`."""
    found: set[str] = set()
    for name, value in content.items():
        if not before and name in _OPTIONAL:
            continue
        if isinstance(value, Mapping):
            found |= _paths(value, f"{before}{name}.")
        else:
            found.add(f"{before}{name}")
    return found
