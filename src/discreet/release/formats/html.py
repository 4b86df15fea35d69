"""HTML: one table element with its notes, to be put into a page."""

from __future__ import annotations

from html import escape

from discreet.release.cube import Cube
from discreet.release.formats.write import PLAIN, Options
from discreet.release.layout import TableLayout


class HtmlWriter:
    """A table as a piece of HTML, headings marked as such."""

    name, title = "html", "HTML"
    ending, media_type = ".html", "text/html; charset=utf-8"

    def write(self, cube: Cube, options: Options = PLAIN) -> bytes:
        """The file's content."""
        chosen = options.with_defaults("wide", "labels")
        table = TableLayout.of_file(cube, chosen)
        caption = f"<caption>{escape(chosen.about.title or chosen.measure_of(cube))}</caption>"
        body = f"<thead>{_head(table, cube, chosen)}</thead><tbody>{_body(table, chosen)}</tbody>"
        notes = "".join(
            f"<p>{escape(heading)}: {escape(text)}</p>"
            for heading, text in chosen.about.said(cube)
            if heading != chosen.about.word("Title")
        )
        return f"<table>{caption}{body}</table>{notes}\n".encode()


def _head(table: TableLayout, cube: Cube, options: Options) -> str:
    *upper, last = zip(*table.headings(options, cube.unit), strict=True)
    stub = table.stub_names(options.labels)
    lines = [*(([""] * len(stub), texts) for texts in upper), (stub, last)]
    rows = ("".join(_heading(text, "col") for text in (*left, *right)) for left, right in lines)
    return "".join(f"<tr>{row}</tr>" for row in rows)


def _body(table: TableLayout, options: Options) -> str:
    return "".join(
        "<tr>"
        + "".join(_heading(text, "row") for text in heads)
        + "".join(f"<td>{escape(str(figure))}</td>" for figure in figures)
        + "</tr>"
        for heads, figures in table.lines(options.labels)
    )


def _heading(text: str, scope: str) -> str:
    return f'<th scope="{scope}">{escape(text)}</th>' if text else "<td></td>"
