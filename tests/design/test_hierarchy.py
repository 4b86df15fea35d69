"""The tree itself: walking, cutting, checking, and errors that name the code."""

import pickle
import re
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from discreet import Hierarchy
from discreet.design import MISSING
from discreet.errors import CodeError, ParameterError, UnknownNameError

#            Total
#     A        B        C
#  A1   A2          C1
# A11            C11
UNEQUAL = {"Total": {"A": {"A1": ["A11"], "A2": []}, "B": [], "C": {"C1": ["C11"]}}}


@pytest.fixture
def tree():
    return Hierarchy.from_dict(UNEQUAL)


def named(tree):
    names = ("country", "region", "county", "town")
    return replace(tree, labels={"A": "Alpha", "C11": "Gamma"}, level_names=names)


def test_codes_stand_depth_first_however_they_were_given():
    shuffled = {"A11": "A1", "C": "Total", "A": "Total", "A2": "A", "A1": "A", "B": "Total"}
    tree = Hierarchy("Total", shuffled)
    assert list(tree.parents) == ["C", "A", "A2", "A1", "A11", "B"]
    assert tree.leaves == ("C", "A2", "A11", "B")


def test_walking_an_unequal_tree(tree):
    assert tree.codes == ("Total", "A", "A1", "A11", "A2", "B", "C", "C1", "C11")
    assert tree.leaves == ("A11", "A2", "B", "C11")
    assert tree.depth == 3
    assert not tree.is_balanced
    assert tree.children("A") == ("A1", "A2")
    assert tree.children("B") == ()
    assert tree.depth_of("Total") == 0
    assert tree.depth_of("C11") == 3
    assert [tree.codes_at(d) for d in range(4)] == [
        ("Total",),
        ("A", "B", "C"),
        ("A1", "A2", "C1"),
        ("A11", "C11"),
    ]
    assert tree.ancestor_at(0) == dict.fromkeys(tree.leaves, "Total")
    assert tree.ancestor_at(2) == {"A11": "A1", "A2": "A2", "C11": "C1"}
    assert tree.ancestor_at(3) == {"A11": "A11", "C11": "C11"}
    assert tree.descendants("A") == ("A1", "A11", "A2")
    assert tree.descendants("B") == ()
    assert tree.leaves_of("A") == ("A11", "A2")
    assert tree.leaves_of("B") == ("B",)
    assert tree.leaf_span("C") == (3, 4)
    assert "C1" in tree
    assert "C2" not in tree


def test_balanced_trees_say_so():
    assert Hierarchy.flat("abc").is_balanced
    assert Hierarchy.from_dict({"T": {"A": ["a"], "B": ["b", "c"]}}).is_balanced


def test_one_leaf_and_no_leaf():
    one = Hierarchy.flat(["only"])
    assert (one.leaves, one.depth, one.is_balanced) == (("only",), 1, True)
    none = Hierarchy("Total", {})
    assert (none.leaves, none.depth, none.is_balanced) == ((), 0, True)
    assert none.leaf_span("Total") == (0, 0)
    assert none.to_dict() == {"Total": []}


def test_codes_become_text():
    tree = Hierarchy.flat([1, 2.0, True, None])
    assert tree.leaves == ("1", "2", "true", MISSING)
    assert Hierarchy(0, {1: 0, 11: 1}).parents == {"1": "0", "11": "1"}


def test_levels_by_name_and_number(tree):
    tree = named(tree)
    assert tree.level("county") == 2
    assert tree.level(3) == 3
    assert tree.level(np.int64(1)) == 1
    with pytest.raises(UnknownNameError, match="Did you mean 'county'"):
        tree.level("conty")
    for wrong in (4, -1):
        with pytest.raises(UnknownNameError):
            tree.level(wrong)
    with pytest.raises(UnknownNameError):
        tree.codes_at(4)


def test_pruning_keeps_the_codes_above(tree):
    pruned = named(tree).prune(["A2", "B"])
    assert pruned.to_dict() == {"Total": {"A": ["A2"], "B": []}}
    assert pruned.labels == {"A": "Alpha"}
    assert pruned.level_names == ("country", "region", "county")
    with pytest.raises(CodeError, match="'A' is a group"):
        tree.prune(["A"])


def test_grouping_cuts_below_a_level(tree):
    grouped = named(tree).grouped("region")
    assert grouped.leaves == ("A", "B", "C")
    assert grouped.labels == {"A": "Alpha"}
    assert grouped.level_names == ("country", "region")
    assert tree.grouped(2).leaves == ("A1", "A2", "B", "C1")
    assert tree.grouped(3) == tree
    assert tree.grouped(0).leaves == ()


def test_several_codes_may_mean_the_total(tree):
    tree = replace(tree, total_aliases=("_T", "Total", "T", "T"))
    assert tree.total_aliases == ("_T", "T")
    assert tree.total_codes == ("Total", "_T", "T")
    assert tree.prune(["B"]).total_aliases == ("_T", "T")
    with pytest.raises(CodeError, match="'A1' is a code of the tree"):
        replace(tree, total_aliases=("A1",))


def test_hierarchies_are_values(tree):
    same = Hierarchy.from_dict(UNEQUAL)
    assert tree == same
    assert hash(tree) == hash(same)
    assert pickle.loads(pickle.dumps(tree)) == tree
    other_order = Hierarchy("Total", dict(reversed(Hierarchy.flat("ab").parents.items())))
    assert other_order != Hierarchy.flat("ab")
    assert tree != named(tree)
    assert tree != "Total"
    assert repr(tree) == "Hierarchy('Total', 4 leaves, depth 3)"


def test_the_given_mapping_is_copied():
    given = {"A": "Total"}
    tree = Hierarchy("Total", given)
    given["B"] = "Total"
    assert tree.leaves == ("A",)


@pytest.mark.parametrize(
    ("root", "parents", "message"),
    [
        ("", {"A": ""}, "the root has an empty code"),
        ("T", {"": "T"}, "an empty code stands under 'T'"),
        ("T", {" ": "T"}, "an empty code stands under 'T'"),
        ("T", {1: "T", "1": "T"}, "code '1' is listed twice under 'T'"),
        ("T", {1: "T", "A": "T", "1": "A"}, "code '1' stands under 'T' and under 'A'"),
        ("T", {"A": "T", "T": "A"}, "code 'T' is the root and cannot stand under 'A'"),
        ("T", {"A": "T", "B1": "B"}, "parent 'B' of code 'B1' is neither a code itself"),
        ("T", {"A": "A"}, "circle: 'A' under 'A'"),
        (
            "T",
            {"Z": "B", "A": "B", "B": "C", "C": "A"},
            "circle: 'B' under 'C' under 'A' under 'B'",
        ),
    ],
)
def test_malformed_trees_are_refused_by_code(root, parents, message):
    with pytest.raises(CodeError, match=re.escape(message)):
        Hierarchy(root, parents)


def test_labels_and_level_names_must_fit(tree):
    with pytest.raises(CodeError, match="code 'A12', which is not in the hierarchy; nearest"):
        replace(tree, labels={"A12": "?"})
    with pytest.raises(ParameterError, match="4 different names"):
        replace(tree, level_names=("country", "region"))
    with pytest.raises(ParameterError, match="4 different names"):
        replace(tree, level_names=("country", "region", "region", "town"))


def test_codes_of_the_data_must_be_leaves(tree):
    tree.check(["A11", "B", "B"], "region")
    eight = Hierarchy.flat([f"A{i}" for i in range(1, 9)])
    with pytest.raises(CodeError) as missing:
        eight.check(["A1", "A9"], "region")
    assert str(missing.value) == (
        "code 'A9' of variable 'region' is not in the hierarchy; nearest: 'A8', 'A7'; "
        "add it to the hierarchy or recode it"
    )
    with pytest.raises(
        CodeError, match=r"'A' of variable 'region' is a group .* \(of 'A1', 'A2'\)"
    ):
        tree.check(["A"], "region")
    with pytest.raises(CodeError, match="'Total'.* is a group"):
        tree.check(["Total"], "region")
    with pytest.raises(CodeError, match=re.escape(repr(MISSING))):
        tree.check([None], "region")


@pytest.mark.parametrize("walk", ["children", "depth_of", "descendants", "leaves_of", "leaf_span"])
def test_walking_from_an_unknown_code_names_the_nearest(tree, walk):
    with pytest.raises(CodeError, match="code 'C12' is not in the hierarchy; nearest: 'C11'"):
        getattr(tree, walk)("C12")


def _chain(n):
    return {f"c{i}": f"c{i - 1}" if i else "Total" for i in range(n)}


def _caterpillar(n):
    return _chain(n // 2) | {f"leaf{i}": f"c{i}" for i in range(n // 2)}


def _bushy(n):
    return {f"c{i}": f"c{i // 10}" if i >= 10 else "Total" for i in range(n)}


@pytest.mark.slow
@pytest.mark.parametrize("shape", [_chain, _caterpillar, _bushy])
def test_large_trees_of_any_shape_cost_linear_time(shape):
    parents = shape(20_000)
    start = time.perf_counter()
    tree = Hierarchy("Total", parents)
    middle = tree.depth // 2
    assert len(tree.parents) == 20_000
    assert tree.leaf_span("Total") == (0, len(tree.leaves))
    assert len(tree.ancestor_at(middle)) <= len(tree.leaves)
    assert Hierarchy.from_dict(tree.to_dict()) == tree
    elapsed = time.perf_counter() - start
    assert elapsed < 10  # quadratic work on 20,000 codes takes most of a minute


def test_importing_hierarchies_loads_no_frame_library():
    program = (
        "import sys, discreet.design.hierarchy; "
        "heavy = {'pyarrow', 'narwhals', 'pandas', 'polars', 'pysdmx', 'lxml'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert run.stdout.strip() == "[]"
