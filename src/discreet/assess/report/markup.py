"""Pieces of HTML; every text is escaped here and nowhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

Cell = str | tuple[str, str]
"""A text, or a text with a remark in small print under it."""

_MATH = re.compile(r":math:`([^`]*)`")
_SIGNS = {
    r"\mathrm": "",
    r"\varepsilon": "ε",
    r"\tfrac12": "½",
    r"\beta": "β",
    r"\tau": "τ",
    r"\sum": "Σ",
    r"\sqrt": "√",
    r"\max": "max ",
}


def text(value: object) -> str:
    """Escaped text."""
    return html.escape(str(value))


def paragraph(value: str, css: str = "") -> str:
    """A paragraph of text."""
    return f"<p{_class(css)}>{text(value)}</p>"


def bullets(lines: Iterable[str]) -> str:
    """A list of texts."""
    return "<ul>" + "".join(f"<li>{text(line)}</li>" for line in lines) + "</ul>"


def section(title: str, *parts: str) -> str:
    """A section with a heading."""
    return f"<section><h2>{text(title)}</h2>{''.join(parts)}</section>"


def figure(svg: str, caption: str) -> str:
    """A picture with its caption."""
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>"


def grid(header: Sequence[str], rows: Iterable[Sequence[Cell]], numbers: int = 0) -> str:
    """A table; the last `numbers` columns hold numbers."""
    first = len(header) - numbers
    css = ["" if j < first else "number" for j in range(len(header))]
    head = "".join(f"<th{_class(c)}>{text(h)}</th>" for h, c in zip(header, css, strict=True))
    body = "".join(f"<tr>{_cells(row, css)}</tr>" for row in rows)
    return _scrolling(f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    body = "".join(f'<tr><th scope="row">{text(a)}</th><td>{text(b)}</td></tr>' for a, b in rows)
    return _scrolling(f"<tbody>{body}</tbody>")


def _scrolling(content: str) -> str:
    return f'<div class="wide"><table>{content}</table></div>'


def _cells(row: Sequence[Cell], css: Sequence[str]) -> str:
    pairs = zip(row, css, strict=True)
    return "".join(f"<td{_class(c)}>{_cell(value)}</td>" for value, c in pairs)


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return text(value)
    main, small = value
    return f"{text(main)}<small>{text(small)}</small>"


def plain_words(line: str) -> str:
    r"""A line of a docstring without mark-up.

    >>> plain_words(r"Mean absolute deviation, :math:`\sum|f - g|/n`.")
    'Mean absolute deviation, Σ|f - g|/n.'
    """
    return _MATH.sub(lambda found: _formula(found[1]), line).replace("`", "")


def _formula(source: str) -> str:
    for sign, shown in _SIGNS.items():
        source = source.replace(sign, shown)
    return source.replace("{", "").replace("}", "").replace("\\", "")


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""
