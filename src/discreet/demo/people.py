"""The people of the invented country, block by block: as a census, as a survey, as files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np

from discreet import parquet
from discreet.arrays import Array, Mask, Real, Whole
from discreet.columns import Column
from discreet.demo.classifications import (
    AGE_GROUPS,
    CITIZENSHIP,
    DEFENCE,
    OCCUPATIONS,
    SECTIONS,
    Occupation,
    code_lists,
)
from discreet.demo.geography import AREAS, CAPITAL, PROVINCES, geography, zipf
from discreet.demo.households import (
    AGES,
    LAYOUT,
    NO_UNION,
    REF,
    SIZES,
    SPOUSE,
    Households,
    draw_households,
    law,
    member_age,
    member_marital,
    member_sex,
    sigmoid,
)
from discreet.errors import whole
from discreet.files import written_whole
from discreet.frames import Frame
from discreet.randomness import stream

HOUSEHOLDS_PER_BLOCK = 32_768
FIVE_YEAR_GROUP = np.minimum(np.arange(101) // 5, AGE_GROUPS - 1)
Block = dict[str, Array]
HOME = 0
WORKING_AGE = 15
EDUCATION_LEVELS = 9
NO_EDUCATION = EDUCATION_LEVELS
NOT_WORKING = len(OCCUPATIONS)
# Ages at which the life stages begin that matter for work: school, start, middle, late, retired.
STAGES = np.searchsorted([15, 25, 45, 60, 65, 75], AGES, side="right")
# Household ages at which the share of foreigners changes.
CITIZEN_AGES = np.searchsorted([35, 65], AGES, side="right")
PROFILES = 12
# Least age for each level of education.
LEAST_AGE = np.array([15, 15, 15, 17, 17, 20, 21, 23, 26])
# Education at low, middle and high standing, for people born around the middle of the range.
BY_STANDING = np.array(
    [
        [0.030, 0.085, 0.290, 0.110, 0.390, 0.035, 0.045, 0.014, 0.001],
        [0.006, 0.022, 0.120, 0.150, 0.430, 0.085, 0.125, 0.058, 0.004],
        [0.002, 0.007, 0.040, 0.140, 0.190, 0.090, 0.270, 0.225, 0.036],
    ]
)
# Share at work by life stage, for men.
AT_WORK = np.array([0.0, 0.36, 0.86, 0.82, 0.56, 0.11, 0.015])
RETIRED = 5
# Sampling fraction of each province: small ones need more for figures of their own.
FRACTION = np.array([0.02, 0.022, 0.024, 0.026, 0.028, 0.032, 0.036, 0.05])
BROAD_AGES = np.searchsorted([3, 13], np.arange(20), side="right")


def block(seed: int, number: int) -> Block:
    """The people of block `number`: one array for each column, codes as positions in their lists.

    Members of a household stand together, the reference person first. Ids are counted within the
    block, from zero.
    """
    rng = stream(seed, f"demo:{number}")
    households = draw_households(HOUSEHOLDS_PER_BLOCK, rng)
    size = SIZES[households.composition]
    home = np.repeat(np.arange(HOUSEHOLDS_PER_BLOCK), size)
    start = np.cumsum(size) - size
    relation = LAYOUT[households.composition[home], np.arange(len(home)) - start[home]]
    age = member_age().draw(rng, relation, households.age[home])
    sex = member_sex().draw(rng, relation, households.sex[home])
    union = np.where(relation <= SPOUSE, households.union[home], NO_UNION)
    marital = member_marital().draw(rng, union, sex, age)
    columns = {"age": FIVE_YEAR_GROUP[age], "age_years": age, "sex": sex, "marital": marital}
    columns |= _attributes(households, home, columns, rng)
    return columns | {"household_id": home, "household_size": size[home], "relation": relation}


def _attributes(households: Households, home: Whole, who: Block, rng: np.random.Generator) -> Block:
    """Citizenship, education, occupation and industry, given place, age and sex."""
    place = geography()
    district = place.district[households.municipality]
    shared = _household_citizenship().draw(rng, district, CITIZEN_AGES[households.age])
    citizenship = _citizenship().draw(rng, shared[home])
    area = place.area[households.municipality][home]
    education = _education().draw(rng, who["age_years"], area, households.standing[home])
    is_foreign = (citizenship != HOME).astype(np.int64)
    stage = STAGES[who["age_years"]]
    occupation = _occupation().draw(rng, education, who["sex"], stage, is_foreign, area)
    industry = _industry().draw(rng, occupation, (district * 5 % PROFILES)[home])
    return {
        "region": households.municipality[home],
        "citizenship": citizenship,
        "education": education,
        "occupation": occupation,
        "industry": industry,
    }


def _uneven(name: str, shape: tuple[int, ...], sigma: float) -> Real:
    """Lasting irregularities of the country: log-normal factors that no seed changes."""
    return np.exp(sigma * stream(0, f"demo:country:{name}").normal(size=shape))


def _foreign_mix() -> Real:
    """Relative frequency of each foreign citizenship: a few large groups, a long tail."""
    union, other = (len(leaves) for _, leaves in CITIZENSHIP[1:])
    return np.concatenate(
        [0.45 * np.arange(1.0, union + 1) ** -1.3, 0.55 * np.arange(1.0, other + 1) ** -1.5]
    )


@law
def _household_citizenship() -> Real:
    """Weights of citizenship, by district and age class of the reference person."""
    place = geography()
    districts = len(place.district_area)
    foreign = np.array([0.22, 0.14, 0.08, 0.04])[place.district_area]
    mix = _foreign_mix() * _uneven("citizenship", (districts, len(_foreign_mix())), 1.8)
    for province in range(1, len(PROVINCES)):
        mix[place.district_province == province, province - 1] *= 4.0
    mix /= mix.sum(axis=1, keepdims=True)
    share = np.minimum(0.6, foreign[:, None] * np.array([1.35, 1.0, 0.4]))
    abroad = share[..., None] * mix[:, None, :]
    return np.concatenate([1 - share[..., None], abroad], axis=-1)


@law
def _citizenship() -> Real:
    """Weights of a person's citizenship, by that of the household."""
    mix = np.concatenate([[0.0], _foreign_mix() / _foreign_mix().sum()])
    table = 0.82 * np.eye(len(mix)) + 0.03 * mix
    table[:, HOME] += 0.15
    table[HOME] = 0.018 * mix
    table[HOME, HOME] = 0.982
    return table


@law
def _education() -> Real:
    """Weights of education, by age, area and standing; children have none yet."""
    level = np.arange(EDUCATION_LEVELS)
    cohort = np.exp(np.outer(np.clip(48 - AGES, -45, 20) / 45.0, level - 4.0) * 0.62)
    reached = sigmoid((AGES[:, None] - LEAST_AGE - 2.5) / 1.3) * (AGES[:, None] >= LEAST_AGE)
    centre = np.exp(np.outer([0.10, 0.04, -0.02, -0.06], level - 4.0))
    table = np.zeros((len(AGES), AREAS, len(BY_STANDING), EDUCATION_LEVELS + 1))
    table[..., :EDUCATION_LEVELS] = (
        BY_STANDING * (cohort * reached)[:, None, None, :] * centre[:, None, :]
    )
    table[AGES < WORKING_AGE] = np.eye(EDUCATION_LEVELS + 1)[NO_EDUCATION]
    return table


@law
def _occupation() -> Real:
    """Weights of occupation, by education, sex, life stage, home or foreign, and area."""
    shape = (EDUCATION_LEVELS + 1, 2, len(AT_WORK), 2, AREAS, len(OCCUPATIONS) + 1)
    kinds = np.stack([_kind_of_work(o) for o in OCCUPATIONS], axis=-1)
    kinds *= _uneven("occupation", (*shape[:2], 1, 2, AREAS, len(OCCUPATIONS)), 0.5)
    kinds[:, :, RETIRED:, ..., _is_military()] = 0
    kinds /= kinds.sum(axis=-1, keepdims=True)
    at_work = _at_work()[..., None, None]
    table = np.concatenate([at_work * kinds, (1 - at_work) * np.ones((*shape[:-1], 1))], axis=-1)
    table[NO_EDUCATION] = np.eye(shape[-1])[NOT_WORKING]
    return table


def _kind_of_work(o: Occupation) -> Real:
    """Weight of one occupation among those at work, in the order of `_occupation`'s axes."""
    level = np.append(np.arange(EDUCATION_LEVELS), 2.0)
    fit = np.exp(-(((level - o.skill) / 1.25) ** 2)) + 0.004
    sex = np.array([o.women, 1 - o.women])
    senior = np.array([1.0, -1.1, 0.0, 0.25, 0.35, 0.5, 0.5]) * (o.code[2] == "1")
    foreign = np.array([0.0, 0.22 * (3.5 - o.skill)])
    rural = o.rural * np.linspace(-1.3, 1.1, AREAS)
    factors = (fit, sex, np.exp(senior), np.exp(foreign), np.exp(rural))
    return o.size * np.asarray(np.einsum("a,b,c,d,e->abcde", *factors), dtype=np.float64)


def _is_military() -> Whole:
    return np.flatnonzero([o.code.startswith("OC0") for o in OCCUPATIONS])


def _at_work() -> Real:
    """Share at work, by education, sex and life stage and home or foreign."""
    level = np.append(np.arange(EDUCATION_LEVELS), 0)
    schooling = 0.71 + 0.05 * level
    sex = np.array([0.91, 1.0])
    foreign = np.array([1.0, 0.88])
    share = np.einsum("a,b,c,d->abcd", schooling, sex, AT_WORK, foreign)
    return np.asarray(np.minimum(share, 0.96), dtype=np.float64)


@law
def _industry() -> Real:
    """Weights of industry, by occupation and economic profile of the district."""
    codes = code_lists()["industry"].leaves
    letters = np.array([code[0] for code in codes[:-1]])
    sizes = np.concatenate([s.size * zipf(len(s.names), 1.2) for s in SECTIONS])
    usual = np.array([np.isin(letters, list(o.sections)) for o in OCCUPATIONS])
    weights = sizes * np.where(usual, 18.0, 0.12)
    weights = weights * _uneven("work", weights.shape, 1.1)
    weights = weights[:, None, :] * _uneven("profile", (PROFILES, len(letters)), 1.3)
    weights[_is_military()] = np.array(codes[:-1]) == DEFENCE
    table = np.zeros((len(OCCUPATIONS) + 1, PROFILES, len(codes)))
    table[:-1, :, :-1] = weights
    table[NOT_WORKING, :, -1] = 1
    return table


def with_weights(people: Block, rng: np.random.Generator) -> Block:
    r"""The people of sampled households, with weights.

    With the design weight :math:`d_i = 1/f_p` of province :math:`p` and strata :math:`h` of
    province, sex and broad age, :math:`w_i = d_i \, N_h / \sum_{j \in h} d_j`; a last factor for
    each province makes good for strata in which nobody was sampled.
    """
    province = geography().province[people["region"]]
    taken = _answers(people, province, rng)
    stratum = (province * 2 + people["sex"]) * 3 + BROAD_AGES[people["age"]]
    weight = 1 / FRACTION[province[taken]]
    weight = _calibrate(weight, stratum, taken, len(PROVINCES) * 6)
    weight = _calibrate(weight, province, taken, len(PROVINCES))
    chosen = {name: values[taken] for name, values in people.items()}
    return chosen | {"weight": weight}


def _answers(people: Block, province: Whole, rng: np.random.Generator) -> Mask:
    """Whether a person's household is sampled and answers."""
    is_reference = people["relation"] == REF
    in_capital = geography().area[people["region"]] == CAPITAL
    answers = 0.88 - 0.12 * in_capital - 0.10 * (people["household_size"] == 1)
    chance = (FRACTION[province] * answers)[is_reference]
    household_of = np.cumsum(is_reference) - 1
    return np.asarray((rng.random(len(chance)) < chance)[household_of])


def _calibrate(weight: Real, group: Whole, taken: Mask, groups: int) -> Real:
    """Weights scaled so that they sum to the number of people in each group that has any."""
    population = np.bincount(group, minlength=groups)
    estimate = np.bincount(group[taken], weight, minlength=groups)
    factor = population / np.where(estimate > 0, estimate, 1)
    return weight * factor[group[taken]]


CHUNK = 1_000_000
_ROWS_PER_GROUP = 122_880  # what DuckDB reads in one thread
SCHEMA = {
    "person_id": "int64", "household_id": "int64", "household_size": "int16",
    "relation": "string", "region": "string", "age": "string", "age_years": "int16",
    "sex": "string", "marital": "string", "education": "string", "occupation": "string",
    "industry": "string", "citizenship": "string",
}  # fmt: skip
SURVEY_SCHEMA = {**SCHEMA, "weight": "float64"}
_TYPES = {"string": "int16"}  # places in the list of codes


def generate(persons: int, seed: int, chunk: int = CHUNK) -> Iterator[Frame]:
    """The people of the invented country, in frames of `chunk` rows (the last may be shorter).

    The country (places, codes, distributions) is always the same; the seed draws its people.
    Members of a household stand together, the reference person first.

    Promise: the rows depend on `persons` and `seed` only, not on `chunk`. A smaller census is
    the beginning of a larger one, except that its last household may be cut short, in which case
    `household_size` there counts the members that remain.
    Cost: linear in `persons`; memory for one chunk.

    Args:
      persons: Number of people, at least 1.
      seed: Whole number of at least 0.
      chunk: Rows of each frame, at least 1.
    """
    return _stream(persons, seed, chunk, SCHEMA, lambda people, _: people)


def survey(persons: int, seed: int, chunk: int = CHUNK) -> Iterator[Frame]:
    """A household survey of the census `generate(persons, seed)`: some of its rows, and `weight`.

    Whole households are drawn, more of them in small provinces; single people and the capital
    answer less often. Weights are calibrated to province by sex by broad age within each block of
    32,768 households, so they sum to the population of each province.

    Promise: the rows are rows of that census with the same ids; weights are positive.
    Cost: that of the census.
    """

    def sample(people: Block, number: int) -> Block:
        return with_weights(people, stream(seed, f"demo:survey:{number}"))

    return _stream(persons, seed, chunk, SURVEY_SCHEMA, sample)


def _stream(
    persons: int,
    seed: int,
    chunk: int,
    schema: Mapping[str, str],
    select: Callable[[Block, int], Block],
) -> Iterator[Frame]:
    """Checks at once, then works block by block."""
    for name, value in (("persons", persons), ("chunk", chunk)):
        whole(name, value, 1)
    stream(seed, "demo")  # refuses what is no seed
    blocks = (
        {name: people[name].astype(_TYPES.get(kind, kind)) for name, kind in schema.items()}
        for people in (select(b, k) for k, b in enumerate(_blocks(persons, seed)))
    )
    return (_frame(block, schema) for block in _in_chunks(blocks, chunk))


def _blocks(persons: int, seed: int) -> Iterator[Block]:
    """Blocks with ids that run through, counted from 1, up to `persons` rows in all."""
    done = 0
    for number in count():
        people = block(seed, number)
        rows = min(len(people["household_id"]), persons - done)
        if rows < len(people["household_id"]):
            # A household that is cut has the size of what remains of it.
            people = {name: values[:rows] for name, values in people.items()}
            is_last = people["household_id"] == people["household_id"][-1]
            people["household_size"][is_last] = is_last.sum()
        people["household_id"] += number * HOUSEHOLDS_PER_BLOCK + 1
        people["person_id"] = np.arange(done + 1, done + rows + 1)
        yield people
        done += rows
        if done == persons:
            return


def _in_chunks(blocks: Iterable[Block], chunk: int) -> Iterator[Block]:
    """Cuts a stream of blocks into those of `chunk` rows."""
    pending: list[Block] = []
    room = chunk
    for block in blocks:
        rows = _rows(block)
        while rows >= room:
            yield _joined([*pending, _sliced(block, 0, room)])
            block, pending, rows, room = _sliced(block, room, rows), [], rows - room, chunk
        if rows:
            pending.append(block)
            room -= rows
    if pending:
        yield _joined(pending)


def _rows(block: Block) -> int:
    return len(block["person_id"])


def _sliced(block: Block, start: int, end: int) -> Block:
    return {name: values[start:end] for name, values in block.items()}


def _joined(blocks: Sequence[Block]) -> Block:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _frame(block: Block, schema: Mapping[str, str]) -> Frame:
    """Columns in Arrow; those of codes share one list over all blocks."""
    is_coded = {name: kind == "string" for name, kind in schema.items()}
    return Frame(
        {
            name: Column.of_codes(values, _leaf_codes(name)) if is_coded[name] else values
            for name, values in block.items()
        }
    )


@cache
def _leaf_codes(variable: str) -> Column:
    return Column(code_lists()[variable].leaves, "string")


def write_parquet(
    path: str | os.PathLike[str],
    persons: int,
    seed: int,
    *,
    rows_per_group: int = _ROWS_PER_GROUP,
    sample: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Path:
    """Writes the census, or the survey sample of it, to a Parquet file.

    Promise: the file is complete or not there; when anything interrupts the work, an older file
    of that name is left as it was.
    Cost: memory for one row group, whatever the number of people.

    Args:
      path: File to write; its folder must exist.
      persons: Number of people in the census.
      seed: Whole number of at least 0.
      rows_per_group: About how many rows a row group has.
      sample: Write `survey(persons, seed)`, with weights, instead of the census.
      progress: Called with a number of rows whenever so many more are written.
    """
    whole("rows_per_group", rows_per_group, 1)
    frames = (survey if sample else generate)(persons, seed, rows_per_group)

    def told() -> Iterator[Frame]:
        for frame in frames:
            yield frame
            if progress is not None:
                progress(len(frame))

    with written_whole(Path(path)) as part:
        parquet.write_parquet(part, told(), rows_per_group=rows_per_group)
    return Path(path)
