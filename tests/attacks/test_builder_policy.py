"""The rules of a policy attacked as a visitor would: slices, groups, picks, filters, layers.

What a rule refuses of a crossing, no other address gives. Rules that only leave figures out say
that totals may tell them.
"""

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from discreet.serve import Dataset, Policy, Query, Refusal, Site, SiteConfig, make_app
from discreet.tables import CellStatus
from tests.attacks.builders import People, leaves, live, once
from tests.serve import sites
from tests.serve.client import Client

PEOPLE = People.drawn()
TABLE = "rows=region&columns=age"
SPARSE = {"area": "region", "max_sparsity": 0.3, "sparse_below": 8}


@cache
def census():
    return once(PEOPLE)


def under(**policy):
    """The census under another policy."""
    return replace(census(), policy=Policy(**policy))


def refusal_of(dataset, address):
    """The code of the refusal, or nothing where there is an answer."""
    try:
        dataset.answer(Query.parse(address))
    except Refusal as refusal:
        return refusal.code
    return None


def hidden_areas(dataset):
    """The areas that the table does not show, and those that it shows."""
    cube = dataset.answer(Query.parse(TABLE)).cube
    is_hidden = (cube.status == CellStatus.below_threshold).all(axis=1)
    codes = np.array(cube.axis("region").codes)
    return [str(c) for c in codes[is_hidden]], [str(c) for c in codes[~is_hidden][1:]]


def slices(*variables):
    """Every address that shows a part of a crossing: picks, pairs, filters and groups."""
    for first, second in itertools.permutations(variables, 2):
        for code in leaves(first):
            yield f"rows={second}&where.{first}={code}"
            yield f"rows={first}&columns={second}&pick.{first}={code}"
            yield f"layers={first}&rows={second}&layer.{first}={code}"
        for pair in itertools.combinations(leaves(first), 2):
            yield f"rows={first}&columns={second}&group.{first}=G|{'|'.join(pair)}"
            yield f"rows={second}&where.{first}={pair[0]}&where.{first}={pair[1]}"


def test_a_sparse_area_is_nobodys_population():
    dataset = under(**SPARSE)
    hidden, shown = hidden_areas(dataset)
    assert hidden
    assert shown
    for area in hidden:
        assert refusal_of(dataset, f"rows=age&where.region={area}") == "sparse"
        assert refusal_of(dataset, f"{TABLE}&where.region={area}") == "sparse"
    for area in shown:
        assert refusal_of(dataset, f"rows=age&where.region={area}") is None


def test_a_sparse_area_is_never_added_to_a_shown_one():
    """The sum less the shown area would be the hidden one."""
    dataset = under(**SPARSE)
    hidden, shown = hidden_areas(dataset)
    for pair in itertools.product(hidden, shown):
        where = "".join(f"&where.region={area}" for area in pair)
        for address in (f"{TABLE}&group.region=G|{'|'.join(pair)}", f"rows=age{where}"):
            assert refusal_of(dataset, address) == "sparse"
        assert refusal_of(dataset, f"{TABLE}{where}") == "sparse"
    if len(shown) > 1:
        assert refusal_of(dataset, f"{TABLE}&group.region=G|{'|'.join(shown)}") is None


@pytest.mark.parametrize(
    "rule",
    [
        {"k_anonymity": 12},
        {"sensitive": ("age",), "t_closeness": 0.02},
        {"sensitive": ("age",), "l_diversity": 5},
        {"min_mean_cell": 100},
        {"min_population": 30},
    ],
    ids=lambda rule: next(reversed(rule)),
)
def test_what_is_refused_of_a_crossing_is_refused_of_all_its_parts(rule):
    dataset = under(**rule)
    expected = refusal_of(dataset, TABLE)
    assert expected
    for address in slices("region", "age"):
        assert refusal_of(dataset, address) == expected, address
    assert refusal_of(dataset, "rows=age") is None


@pytest.mark.parametrize("picked", ["N", "N&pick.region=S&pick.region=N1", "ALL"])
def test_picking_upper_levels_alone_leaves_the_lower_ones_judged(picked):
    dataset = sites.once(Policy(k_anonymity=1000))
    assert refusal_of(dataset, f"rows=region&columns=age&pick.region={picked}") == "k_anonymity"


def test_what_a_level_leaves_out_is_judged_as_well():
    """People abroad are in no county: the total less all counties is their number."""
    open_ = sites.once().answer(Query.parse("rows=region[county]")).cube.values
    rest = open_[0] - open_[1:].sum()
    assert 0 < rest < open_.min()
    assert refusal_of(sites.once(Policy(k_anonymity=rest)), "rows=region[county]") is None
    assert refusal_of(sites.once(Policy(k_anonymity=rest + 1)), "rows=region[county]")


def test_a_small_population_is_not_had_by_picks_or_layers():
    dataset = sites.once(Policy(min_population=300))
    filtered = "rows=age&where.region=N1-1&where.sex=F"
    assert refusal_of(dataset, filtered) == "small_population"
    for same in (
        "rows=region&columns=age&layers=sex&pick.region=N1-1&pick.sex=F",
        "layers=region&layers=sex&rows=age&layer.region=N1-1&layer.sex=F",
        "rows=age&columns=region&where.sex=F",
    ):
        assert refusal_of(dataset, same) == "small_population"


@pytest.mark.parametrize("shown", ["rows=region", "rows=age", "rows=region&columns=age"])
def test_a_filter_of_several_categories_is_a_group(shown):
    pair = "where.age=age0&where.age=age3"
    fixed = {"age": {"Ends": ["age0", "age3"]}}
    assert refusal_of(under(groups="own"), f"{shown}&{pair}") is None
    assert refusal_of(under(groups="none"), f"{shown}&{pair}") == "own_groups"
    assert refusal_of(under(groups="none"), f"{shown}&where.age=age0") is None
    dataset = under(groups="fixed", fixed_groups=fixed)
    assert refusal_of(dataset, f"{shown}&{pair}") is None
    assert refusal_of(dataset, f"{shown}&where.age=age0&where.age=age1") == "own_groups"


@pytest.mark.parametrize("policy", [{"threshold": 12}, SPARSE], ids=["threshold", "sparsity"])
@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "some can be worked out from totals"), ("nb", "noen kan regnes ut fra totalene")],
)
def test_a_table_says_when_totals_may_tell_what_is_left_out(policy, language, words):
    client = Client(make_app(Site(SiteConfig(languages=("en", "nb")), {"census": under(**policy)})))
    for path in ("/d/census/table", "/d/census/table.csv-metadata.json"):
        assert words in client.get(f"{path}?{TABLE}&lang={language}").text


def test_groups_do_not_enlarge_a_table():
    """Sixty groups of each of three variables would be a quarter of a million cells."""
    many = "&".join(f"group.{v}=g{k}|{v}0" for v in ("region", "age", "sex") for k in range(60))
    assert refusal_of(census(), f"{TABLE}&layers=sex&{many}") == "too_many_groups"
    most = "&".join(f"group.age=g{k}|age0" for k in range(4))
    cube = census().answer(Query.parse(f"{TABLE}&{most}")).cube
    assert cube.values.shape == (7, 5)
    assert refusal_of(census(), f"{TABLE}&{most}&group.age=g4|age0") == "too_many_groups"


@pytest.mark.parametrize(
    "label", ["Women", "women", " WOMEN ", "F", "f", "Wo\u200bmen", "Ｗomen", "Total", "t"]
)
def test_a_group_cannot_pass_for_a_category_that_it_is_not(label):
    assert refusal_of(sites.once(), f"rows=sex&group.sex={label}|M") == "unreadable_group"


def test_a_group_may_be_named_like_the_category_that_it_is():
    assert refusal_of(sites.once(), "rows=sex&group.sex=Women|F") is None
    assert refusal_of(sites.once(), "rows=region&group.region=Høytland|N1-1|N1-2") is None
    assert refusal_of(sites.once(), "rows=region&group.region=Høytland|N1-1") == "unreadable_group"


@pytest.mark.parametrize("ending", ["", ".csv-metadata.json", ".json"])
def test_a_table_tells_what_its_groups_add_up(ending):
    client = Client(make_app(sites.small_site()))
    text = client.get(f"/d/once/table{ending}?rows=age&group.age=Not+old|0-14|15-64").text
    assert "Not old: 0-14, 15-64" in text


def test_what_is_offered_on_the_fly_is_answered_when_taken():
    people = People.drawn()
    dataset = live(people, policy=Policy(k_anonymity=45))
    for known in ("rows=region", "rows=age", "rows=sex", "rows=region&columns=sex"):
        refusal_of(dataset, known)
    made = people.asked
    with pytest.raises(Refusal) as caught:
        dataset.answer(Query.parse(TABLE))
    assert people.asked == made + 1
    assert [label for label, _ in caught.value.offers] == ["without region"]
    for _, query in caught.value.offers:
        assert dataset.answer(query)


def test_differences_are_judged_within_the_largest_crossing_allowed():
    asked = []

    class Noted(Dataset):
        def cube(self, details, unit):
            cube = super().cube(details, unit)
            asked.append(cube.values.size)
            return cube

    small = sites.once(Policy(max_cells=9, min_difference=1))
    dataset = Noted(small.name, small.about, small.source, small.policy)
    for chosen in ("where.region=N", "group.region=G|N|S", "where.region=N&where.region=S"):
        assert dataset.answer(Query.parse(f"rows=region[part]&{chosen}"))
    assert max(asked) <= 9
