"""Trees of unequal depth against a slow reference, and back and forth through every format."""

from dataclasses import replace

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Hierarchy

ANY_TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=3)
WORDS = st.text("abcÖ1 +(", min_size=1, max_size=3).map(str.strip).filter(bool)
IDS = st.text("abAB019_@$-", min_size=1, max_size=3)


@st.composite
def trees(draw, codes=ANY_TEXT, labelled=False):
    """A root and up to twelve codes, each under the root or under an earlier code."""
    drawn = draw(st.lists(codes.filter(str.strip), min_size=2, max_size=13, unique=True))
    root, *below = drawn
    parents = {
        code: draw(st.sampled_from([root, *below[:position]]))
        for position, code in enumerate(below)
    }
    tree = Hierarchy(root, parents)
    if not labelled:
        return tree
    labels = draw(st.dictionaries(st.sampled_from(drawn), WORDS))
    labels = {code: label for code, label in labels.items() if label != code}
    names = tuple(f"level {depth}" for depth in range(tree.depth + 1))
    return replace(tree, labels=labels, level_names=names if draw(st.booleans()) else ())


def path_to_root(tree, code):
    path = [code]
    while path[-1] != tree.root:
        path.append(tree.parents[path[-1]])
    return path


@given(trees())
def test_walking_agrees_with_climbing_from_every_code(tree):
    paths = {code: path_to_root(tree, code) for code in tree.codes}
    leaves = [code for code in tree.parents if code not in tree.parents.values()]
    assert list(tree.leaves) == leaves
    assert tree.depth == max(len(path) for path in paths.values()) - 1
    assert tree.is_balanced == (len({len(paths[leaf]) for leaf in leaves}) == 1)
    for code, path in paths.items():
        assert tree.depth_of(code) == len(path) - 1
        assert list(tree.descendants(code)) == [c for c in paths if code in paths[c][1:]]
        assert list(tree.leaves_of(code)) == [leaf for leaf in leaves if code in paths[leaf]]
        assert list(tree.children(code)) == [c for c in paths if paths[c][1:2] == [code]]
    for depth in range(tree.depth + 1):
        assert list(tree.codes_at(depth)) == [c for c in paths if len(paths[c]) == depth + 1]
        climbed = {leaf: paths[leaf][-1 - depth] for leaf in leaves if len(paths[leaf]) > depth}
        assert tree.ancestor_at(depth) == climbed


@given(trees(labelled=True), st.data())
def test_pruning_and_grouping_keep_paths(tree, data):
    keep = data.draw(st.sets(st.sampled_from(tree.leaves)))
    pruned = tree.prune(keep)
    assert pruned.leaves == tuple(leaf for leaf in tree.leaves if leaf in keep)
    grouped = tree.grouped(data.draw(st.integers(0, tree.depth)))
    for part in (pruned, grouped):
        for code in part.codes:
            assert path_to_root(part, code) == path_to_root(tree, code)


@given(trees())
def test_dict_round_trip(tree):
    assert Hierarchy.from_dict(tree.to_dict()) == tree


@given(trees(labelled=True))
def test_parent_child_round_trip(tree):
    table = tree.to_parent_child()
    label = "label" if tree.labels else None
    back = Hierarchy.from_parent_child(table, label=label)
    assert back == replace(tree, level_names=())
    pairs = list(zip(*(table[name].to_pylist() for name in ("child", "parent")), strict=True))
    assert Hierarchy.from_parent_child(pairs) == replace(tree, labels={}, level_names=())


@given(trees())
def test_columns_round_trip(tree):
    table = tree.to_columns()
    assert table.num_rows == len(tree.leaves)
    back = Hierarchy.from_columns(table, table.column_names, root=tree.root)
    assert back.level_names == (tree.root, *table.column_names)
    assert replace(back, level_names=()) == tree
    assert back.to_columns() == table


@given(trees(WORDS))
def test_hrc_round_trip(tree):
    assert Hierarchy.from_hrc(tree.to_hrc(), root=tree.root) == tree
    assert Hierarchy.from_hrc(tree.to_hrc(leading="->"), tree.root, leading="->") == tree


@given(trees(st.text("ab", min_size=6, max_size=6)))
def test_digits_find_the_prefixes(tree):
    leaves = [leaf for leaf in tree.leaves if leaf != tree.root]
    found = Hierarchy.from_digits(leaves, "2 1 3")
    assert set(found.leaves) == set(leaves)
    for leaf in leaves:
        assert path_to_root(found, leaf) == [leaf, leaf[:3], leaf[:2], "Total"]


@pytest.mark.parametrize("suffix", [".xml", ".json"])
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees(IDS, labelled=True))
def test_sdmx_round_trip(tmp_path, suffix, tree):
    path = tmp_path / f"codes{suffix}"
    tree.to_sdmx(path, "CL_ANY", "ME")
    assert Hierarchy.from_sdmx(path) == tree
    assert Hierarchy.from_sdmx(path, "CL_ANY") == tree
    assert Hierarchy.read(path) == tree


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=trees(WORDS, labelled=True))
def test_file_round_trips(tmp_path, tree):
    bare = replace(tree, labels={}, level_names=())
    tree.to_hrc(tmp_path / "t.hrc")
    assert Hierarchy.read(tmp_path / "t.hrc", root=tree.root) == bare
    pq.write_table(tree.to_parent_child().to_arrow(), tmp_path / "t.parquet")
    assert Hierarchy.read(tmp_path / "t.parquet") == tree
    pa_csv.write_csv(tree.to_parent_child().to_arrow(), tmp_path / "t.csv")
    assert Hierarchy.read(tmp_path / "t.csv") == tree
    pa_csv.write_csv(tree.to_columns().to_arrow(), tmp_path / "c.csv")
    read = Hierarchy.read(tmp_path / "c.csv", root=tree.root)
    assert read.parents == tree.parents
    assert read.leaves == tree.leaves
