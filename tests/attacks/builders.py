"""Table builders that attacks are run on, and visitors who do nothing but ask."""

import itertools

import numpy as np

from discreet import Table
from discreet.publication import Choice, Publication
from discreet.release import Cube
from discreet.serve import Dataset, DatasetInfo, InnerSource, InnerTable, LiveSource, Policy, Query
from tests.attacks.victims import SECRET

SIZES = {"region": 6, "age": 4, "sex": 2}
NAMES = tuple(SIZES)
ONCE = Publication("region*age*sex", Choice("safe", {}))
LIVE = Publication("region*age*sex", Choice("cell-key", {"D": 5, "V": 3, "js": 2}))
WIDE = Policy(max_variables=3, max_cells=10_000)


class People:
    """Persons with keys, counted as an engine would: what `Publication.tabulate` needs."""

    def __init__(self, codes, ids=None, edition="1"):
        self.codes = np.asarray(codes)
        self.ids = np.arange(self.codes.shape[1]) if ids is None else ids
        self.edition, self.asked = edition, 0

    @classmethod
    def drawn(cls, n=400, seed=1):
        """People whose cells are small, many of them ones."""
        rng = np.random.default_rng(seed)
        chances = [1.0 / np.arange(1, size + 1) for size in SIZES.values()]
        return cls([rng.choice(len(p), n, p=p / p.sum()) for p in chances])

    def without(self, k, edition="2"):
        """Everybody but one person, in another edition."""
        rest = np.delete(np.arange(len(self.ids)), k)
        return People(self.codes[:, rest], self.ids[rest], edition)

    def moved(self, k):
        """The same people, one of them in another cell: a neighbouring data set."""
        codes = self.codes.copy()
        codes[0, k] = (codes[0, k] + 1) % SIZES["region"]
        return People(codes, self.ids, self.edition)

    @property
    def counts(self):
        """The truth: the number of people in every inner cell."""
        flat = np.ravel_multi_index(tuple(self.codes), tuple(SIZES.values()))
        return np.bincount(flat, minlength=np.prod(list(SIZES.values()))).reshape(*SIZES.values())

    def cell(self, k):
        """The codes of one person."""
        return {name: f"{name}{c}" for name, c in zip(NAMES, self.codes[:, k], strict=True)}

    def tabulate(self, margins, *, hierarchies=None, support="all", inner=True):
        self.asked += 1
        cells = list(itertools.product(*(range(n) for n in SIZES.values())))
        keys = np.zeros(len(cells), dtype=np.int64)
        flat = np.ravel_multi_index(tuple(self.codes), tuple(SIZES.values()))
        np.add.at(keys, flat, SECRET.keys_for_ids(self.ids))
        frame = {name: [f"{name}{c[k]}" for c in cells] for k, name in enumerate(NAMES)}
        frame |= {"n": self.counts.ravel(), "key": keys % 2**32}
        table = Table.from_counts(
            frame, "n", margins, key="key", declared=True, name="census", edition=self.edition
        )
        return table.with_secret(SECRET)


class Visitor:
    """Somebody who asks a data set whatever it answers."""

    def __init__(self, dataset):
        self.dataset = dataset

    def ask(self, address) -> Cube:
        """The figures of a table."""
        return self.dataset.answer(Query.parse(address)).cube

    def figure(self, address, **codes):
        """One figure of a table; variables left out are totals."""
        cube = self.ask(address)
        place = tuple(0 if a.name not in codes else a.place(codes[a.name]) for a in cube.axes)
        return cube.values[place]


def once(people, recipe=ONCE, policy=WIDE):
    """A data set that is released once: the default."""
    table = InnerTable.of(recipe.run(recipe.tabulate(people)), people.edition)
    return Dataset("census", DatasetInfo(title="Census"), InnerSource(table), policy)


def live(people, recipe=LIVE, policy=WIDE):
    """A data set that is served on the fly."""
    return Dataset("census", DatasetInfo(title="Census"), LiveSource(recipe, people), policy)


def leaves(name):
    """The codes of a variable."""
    return [f"{name}{k}" for k in range(SIZES[name])]
