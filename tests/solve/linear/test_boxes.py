"""Changes along boxes against all boxes that there are."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from discreet.solve.linear.boxes import Boxes, Slack

SHAPE = (2, 3, 2)


@st.composite
def tables(draw):
    """Inner cells of three variables in some order, and the sums of chosen margins and of each."""
    every = list(product(*(range(n) for n in SHAPE)))
    cells = draw(st.lists(st.sampled_from(every), min_size=2, max_size=12, unique=True))
    margins = [(0,), (1,), (0, 1), (1, 2), (0, 2)]
    kept = draw(st.lists(st.sampled_from(margins), min_size=1, unique=True))
    sums = {}
    for row, cell in enumerate(cells):
        sums[("row", cell)] = [row]
    for margin in kept:
        for row, cell in enumerate(cells):
            name = (margin, tuple(cell[a] for a in margin))
            sums.setdefault(name, []).append(row)
    return cells, list(sums), list(sums.values()), kept


def boxes_of(cells, names, rows, margins):
    """The boxes, and inner cells × sums."""
    members = np.zeros((len(cells), len(rows)))
    for total, inside in enumerate(rows):
        members[inside, total] = 1
    place = {name: k for k, name in enumerate(names)}
    of_block = [[place[m, tuple(cell[a] for a in m)] for m in margins] for cell in cells]
    made = Boxes(
        np.array(cells),
        SHAPE,
        csr_array(members),
        np.arange(len(cells)),
        np.array(of_block),
        np.array([[a in m for a in range(len(SHAPE))] for m in margins]),
    )
    return made, members


def every_box(cells):
    """Moves of the inner cells along each box, its groups of variables, and these variables."""
    row = {cell: k for k, cell in enumerate(cells)}
    for x, y in product(cells, cells):
        differ = [a for a in range(len(SHAPE)) if x[a] != y[a]]
        for labels in product(range(len(differ)), repeat=len(differ)):
            if not differ or set(labels) != set(range(max(labels) + 1)):
                continue
            moves = np.zeros(len(cells))
            for chosen in product((False, True), repeat=max(labels) + 1):
                corner = list(x)
                for a, group in zip(differ, labels, strict=True):
                    corner[a] = y[a] if chosen[group] else x[a]
                if tuple(corner) not in row:
                    break
                moves[row[tuple(corner)]] += (-1) ** sum(chosen)
            else:
                yield moves, max(labels) + 1, set(differ)


@settings(max_examples=75, deadline=None)
@given(tables(), st.data())
def test_the_box_is_the_cheapest_with_most_groups_along_the_variables_of_the_sum(table, data):
    cells, names, rows, margins = table
    boxes, members = boxes_of(cells, names, rows, margins)
    n = len(rows)
    up, down = (
        np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), float)
        for _ in "ud"
    )
    cost = np.array(data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), float)
    total, sign = data.draw(st.integers(0, n - 1)), data.draw(st.sampled_from([1.0, -1.0]))
    usable = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))) > 0
    own = {0, 1, 2} if names[total][0] == "row" else set(names[total][0])
    costs = {}
    for moves, groups, differ in every_box(cells):
        moved = members.T @ moves
        fits = (moved <= up).all() and (-moved <= down).all() and not moved[~usable].any()
        if fits and moved[total] * sign > 0:
            rank = (-groups, not differ <= own)
            costs[rank] = min(costs.get(rank, np.inf), cost[moved != 0].sum())
    found = boxes.cheapest(total, sign, Slack(usable, up, down, cost))
    if found is None:
        assert not costs
        return
    moved = np.zeros(n)
    moved[found[0]] = found[1]
    assert moved[total] * sign > 0
    assert not moved[~usable].any()
    assert (moved <= up).all()
    assert (-moved <= down).all()
    assert np.array_equal(members.T @ moved[: len(cells)], moved)
    assert cost[found[0]].sum() == costs[min(costs)]


def test_tables_of_many_variables_or_cells_have_no_boxes():
    assert Boxes.fits((2, 3, 4))
    assert not Boxes.fits((2,) * 8)
    assert not Boxes.fits((10_000, 10_000))
