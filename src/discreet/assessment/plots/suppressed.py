"""A two-way table with the cells that are shown, sensitive, and hidden to protect others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.assessment.plots.style import PALETTE, QUIET, STRONG, altair_module, apply_style
from discreet.errors import DesignError, ParameterError, UnknownNameError

if TYPE_CHECKING:
    import altair

    from discreet.design.axis import Axis
    from discreet.suppress.pattern import Pattern


MOST_CODES = 60
_STATES = ("published", "secondary (s): protects others", "primary (p): sensitive")
_STATE_OF = {0: _STATES[0], 1: _STATES[2], 2: _STATES[1]}
_MARK = {0: "", 1: " p", 2: " s"}
_FILL = ("#ffffff", PALETTE[4], PALETTE[0])  # light, middle and dark in print without colours too
_LETTER, _ROW = 7.0, 24


def suppressed(
    pattern: Pattern, rows: str | None = None, columns: str | None = None
) -> altair.LayerChart:
    """The true values of a two-way table, with the state of every cell.

    Further variables are summed over: only cells that have a total there are drawn.

    Args:
      pattern: Which cells are suppressed.
      rows: Variable whose codes are the rows; the first when absent.
      columns: Variable whose codes are the columns; the first of the others when absent.
    """
    alt = altair_module()
    row, column = _two_axes(pattern, rows, columns)
    cells = _cells(pattern, row, column)
    down = _in_order(row, {cell["row"] for cell in cells})
    across = _in_order(column, {cell["column"] for cell in cells})
    wide = max(len(text) for cell in cells for text in (cell["text"], cell["column"]))
    base = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("column:N", sort=across, title=column.name, axis=_axis(alt, "top")),
        y=alt.Y("row:N", sort=down, title=row.name, axis=_axis(alt, "left")),
        tooltip=["row:N", "column:N", "value:Q", "state:N", "why:N"],
    )
    counts = f"{pattern.n_primary:,} primary and {pattern.n_secondary:,} secondary"
    is_whole = len(cells) == len(pattern.z)
    part = "" if is_whole else f"; {len(cells):,} of {len(pattern.z):,} cells are drawn"
    title = alt.Title("Suppressed cells", subtitle=f"{counts}{part}. True values: confidential.")
    chart: altair.LayerChart = apply_style(
        alt.layer(_boxes(alt, base), _figures(alt, base), title=title).properties(
            width=alt.Step(max(_LETTER * wide + 14, 44)), height=alt.Step(_ROW)
        )
    )
    return chart


def _two_axes(pattern: Pattern, rows: str | None, columns: str | None) -> tuple[Axis, Axis]:
    axes = {axis.name: axis for axis in pattern.design.axes}
    for name in (rows, columns):
        if name is not None and name not in axes:
            raise UnknownNameError("variable", name, [*axes])
    row = rows or next((name for name in axes if name != columns), None)
    column = columns or next((name for name in axes if name != row), None)
    if row is None or column is None or row == column:
        raise DesignError(
            "a picture of a pattern needs two different variables; the variables of this table: "
            f"{', '.join(axes) or 'none'}."
        )
    return axes[row], axes[column]


def _cells(pattern: Pattern, row: Axis, column: Axis) -> list[dict[str, Any]]:
    """What is drawn of each cell of the two variables, totals of all others."""
    found = []
    for k, state in enumerate(pattern.state.tolist()):
        codes = pattern.design.cell(k)
        if codes.keys() <= {row.name, column.name}:
            value = float(pattern.z[k])
            text = f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"
            found.append(
                {
                    "row": codes.get(row.name, row.total),
                    "column": codes.get(column.name, column.total),
                    "value": value,
                    "state": _STATE_OF[state],
                    "why": pattern.reasons.get(k, ""),
                    "text": text + _MARK[state],
                }
            )
    return found


def _in_order(axis: Axis, drawn: set[str]) -> list[str]:
    """The codes that are drawn, each above its parts, the total last."""
    if len(drawn) > MOST_CODES:
        raise ParameterError(
            f"{axis.name} has {len(drawn)} codes, and a picture is legible with at most "
            f"{MOST_CODES}. Draw a table with fewer, or list the pattern with `to_arrow()`."
        )
    leaves = axis.node_leaves
    codes = sorted(drawn - {axis.total}, key=lambda code: (leaves[code].min(), -len(leaves[code])))
    return [*codes, *(drawn & {axis.total})]


def _axis(alt: Any, orient: str) -> Any:
    return alt.Axis(orient=orient, labelAngle=0, labelLimit=0, ticks=False, domain=False)


def _boxes(alt: Any, base: Any) -> Any:
    colour = alt.Color(
        "state:N",
        scale=alt.Scale(domain=list(_STATES), range=list(_FILL)),
        legend=alt.Legend(
            title=None, orient="bottom", symbolType="square", symbolStrokeColor=QUIET
        ),
    )
    return base.mark_rect(stroke=QUIET, strokeWidth=0.75).encode(color=colour)


def _figures(alt: Any, base: Any) -> Any:
    """True values, white on the dark cells."""
    is_primary = alt.datum.state == _STATES[2]
    return base.mark_text(fontSize=12).encode(
        text="text:N", color=alt.condition(is_primary, alt.value("#ffffff"), alt.value(STRONG))
    )
