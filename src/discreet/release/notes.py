"""Notes of a release for its readers: the public text, and the methods note under headings.

Sentences come from the statement, and from its language their translations.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from html import escape

import numpy as np

from discreet.errors import DiscreetError
from discreet.noise.matrix import TransitionMatrix
from discreet.release.formats.write import About
from discreet.release.inference.law import matrix_of
from discreet.release.language import Language
from discreet.release.uncertainty import standard_errors
from discreet.tables.protected import PublicTable

_HEADINGS = {
    "process": "What was done",
    "values": "What is promised",
    "limits": "What is not protected",
}
_USE = "How to use the figures"
_ACCURACY = "Accuracy by size of figure"
_REFERENCES = "References"
_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)  # figures for which accuracy is told
_ADVICE = {
    "adds-up": "Totals can be taken from the tables or summed from their parts; both are the same.",
    "need-not-add-up": "Take totals from the tables; sums of many figures add up their changes.",
    "shown-is-true": "Figures that are shown can be used as counts.",
    "mean-zero": "Averages over many figures are nearly right; single small figures are not.",
    "moves-at-most": "Do not read differences between small figures that are within the change.",
    "private": "Small figures are mostly noise; compare large ones.",
    "clipped": "A figure of zero may stand for a small number: negative results became zero.",
}
_ZERO = "A figure of zero may stand for a few people, since small numbers can become zero."
_WHOLE = "A total is the sum of its parts, those that are not shown among them."
_SHARED = "A figure that stands in several of these tables is the same in each."
_CITED = {
    "cell-key": "Fraser & Wooton (2005); Thompson, Broadfoot & Elazar (2013)",
    "drop-add": "Shlomo, Krenzke & Li (2019)",
    "pram": "Shlomo & Young (2008); Shlomo, Krenzke & Li (2019)",
    "discrete-laplace": "Dwork & Roth (2014); Ghosh, Roughgarden & Sundararajan (2012)",
    "discrete-gaussian": "Canonne, Kamath & Steinke (2020)",
    "laplace": "Dwork & Roth (2014)",
    "safe": "Giessing & Höhne (2011)",
    "small-count-rounding": "Langsrud & Heldal (2018)",
    "controlled-rounding": "Cox (1987)",
    "suppress": "Fischetti & Salazar-González (2000); Langsrud (2024)",
}
Block = tuple[str, list[str]]
"""A heading and its paragraphs; rows of a table begin with a bar."""


def public_note(release: PublicTable, language: Language) -> str:
    """The text for everybody, in a few sentences."""
    said = dict.fromkeys(s.plain for s in release.statement.sentences if s.plain)
    return " ".join(map(language.say, said))


def methods_note(release: PublicTable, language: Language) -> list[Block]:
    """The text for methodologists under headings."""
    statement, say = release.statement, language.say
    parts = [
        (say(_HEADINGS[about]), [*map(say, said)]) for about, said in statement.methods.items()
    ]
    use = [say(text) for text in _advice(release)]
    blocks = [*parts, *([(say(_USE), use)] if use else [])]
    if accuracy := _accuracy(release, language):
        blocks.append((say(_ACCURACY), accuracy))
    cited = [_CITED[name] for step in statement.steps if (name := _method(step.name)) in _CITED]
    return [*blocks, *([(say(_REFERENCES), [f"{'; '.join(cited)}."])] if cited else [])]


def _advice(release: PublicTable) -> list[str]:
    """What readers may do with the figures, as far as the statement says what they are."""
    says = release.statement.says
    found = [text for kind, text in _ADVICE.items() if says(kind)]
    is_true = says("shown-is-true")
    shows_empty = any(
        s.text.startswith("Which cells are empty") for s in release.statement.sentences
    )
    if says("never-published") and not is_true and not shows_empty:
        found.append(_ZERO)
    found += [_WHOLE] if is_true else []
    design = release.design.over_variables
    return [*found, *([_SHARED] if found and design and len(design.tables) > 1 else [])]


def _method(step: str) -> str:
    return step.partition(":")[2]


def _accuracy(release: PublicTable, language: Language) -> list[str]:
    """The standard error of figures by their size, where the law of the noise is public."""
    rows = _errors(release)
    if not rows:
        return []
    say, number = language.say, language.number
    was_fitted = any(step.name.startswith("fit:") for step in release.statement.steps)
    said = ["The table shows how far a count of a given size is changed on average."]
    if release.statement.says("private"):
        said.append(
            "About nineteen of twenty figures are off by less than twice the standard error."
        )
    if was_fitted:
        said.append(
            "Fitting afterwards changes figures further, and makes most of them more accurate."
        )
    head = "| " + " | ".join(map(language.word, ("count", "standard error", "per cent"))) + " |"
    listed = [f"| {n} | {number(f'{error:.1f}')} | {100 * error / n:.0f} |" for n, error in rows]
    return [*map(say, said), head, *listed]


def _errors(release: PublicTable) -> list[tuple[int, float]]:
    """Standard errors by size of figure, from the law of the noise or from what it was told."""
    try:
        matrix = matrix_of(release)
        return [(n, _deviation(matrix, n)) for n in _SIZES]
    except DiscreetError:
        pass
    if release.precision is None or not release.statement.says("private"):
        return []
    errors = standard_errors(release)
    largest = errors[np.isfinite(errors)].max(initial=0.0)
    return [(n, float(largest)) for n in _SIZES] if largest > 0 else []


def _deviation(matrix: TransitionMatrix, count: int) -> float:
    """The root of the mean squared change of a count, from the law of its moves."""
    return math.sqrt(float(matrix.probabilities(count) @ matrix.deviations**2))


def notes_files(release: PublicTable, about: About, language: Language) -> dict[str, bytes]:
    """The notes in a language: public as Markdown; methods as Markdown, HTML and DOCX."""
    title, code, blocks = about.title, language.code, methods_note(release, language)
    public = [public_note(release, language), *about.footnotes]
    return {
        f"note.{code}.md": _markdown(title, [("", public)]).encode(),
        f"methods.{code}.md": _markdown(title, blocks).encode(),
        f"methods.{code}.html": _html(title, blocks, code).encode(),
        f"methods.{code}.docx": _docx(title, blocks),
    }


def _markdown(title: str, blocks: Sequence[Block]) -> str:
    lines = [f"# {title}", ""]
    for heading, paragraphs in blocks:
        lines += [f"## {heading}", ""] if heading else []
        rows = [p for p in paragraphs if p.startswith("|")]
        for paragraph in paragraphs:
            if not paragraph.startswith("|"):
                lines += [paragraph, ""]
        if rows:
            lines += [rows[0], "|---" * (rows[0].count("|") - 1) + "|", *rows[1:], ""]
    return "\n".join(lines)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def _html(title: str, blocks: Sequence[Block], language: str) -> str:
    body = [f"<h1>{escape(title)}</h1>"]
    for heading, paragraphs in blocks:
        body.append(f"<h2>{escape(heading)}</h2>")
        body += [f"<p>{escape(p)}</p>" for p in paragraphs if not p.startswith("|")]
        rows = [_cells(p) for p in paragraphs if p.startswith("|")]
        if rows:
            lines = ["".join(f"<th>{escape(c)}</th>" for c in rows[0])]
            lines += ["".join(f"<td>{escape(c)}</td>" for c in row) for row in rows[1:]]
            body.append("<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>")
    head = f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
    style = "body{max-width:42em;margin:2em auto;font-family:sans-serif;line-height:1.5}"
    style += "td,th{padding:.2em 1em;text-align:right}"
    return (
        f"{head}<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = (
    '<?xml version="1.0" encoding="UTF-8"?><Types '
    'xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default '
    'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS = (
    '<?xml version="1.0" encoding="UTF-8"?><Relationships '
    'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)


def _docx(title: str, blocks: Sequence[Block]) -> bytes:
    """A document of Word: a ZIP file with three small XML files, so that no library is needed."""
    body = [_heading(title, 0)]
    for heading, paragraphs in blocks:
        body += [_heading(heading, 1)] if heading else []
        body += [_paragraph(p) for p in paragraphs if not p.startswith("|")]
        rows = [_cells(p) for p in paragraphs if p.startswith("|")]
        body += [_word_table(rows), _paragraph("")] if rows else []
    document = (
        f'<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="{_WORD}"><w:body>'
        f"{''.join(body)}{_PAGE}</w:body></w:document>"
    )
    target = io.BytesIO()
    files = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONS,
        "word/document.xml": document,
    }
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            # a fixed date, so that equal notes are equal files
            archive.writestr(zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0)), text)
    return target.getvalue()


_PAGE = '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/></w:sectPr>'  # A4, in twentieths of a point


def _heading(text: str, level: int) -> str:
    """A heading, which stays with what follows and is listed in the document's outline."""
    place = f'<w:keepNext/><w:spacing w:before="120" w:after="120"/><w:outlineLvl w:val="{level}"/>'
    return _paragraph(text, f'<w:b/><w:sz w:val="{32 - 6 * level}"/>', place)


def _paragraph(text: str, look: str = "", place: str = '<w:spacing w:after="120"/>') -> str:
    """A paragraph: how its text looks, and how it stands on the page."""
    run = f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'
    return f"<w:p><w:pPr>{place}</w:pPr>{run}</w:p>"


def _word_table(rows: Sequence[Sequence[str]]) -> str:
    """A table of numbers: names over them, each row in one piece, all on one page."""
    wide = '<w:tcPr><w:tcW w:w="2000" w:type="dxa"/></w:tcPr>'
    stand = '<w:keepNext/><w:spacing w:after="0"/><w:jc w:val="right"/>'
    lines = []
    for k, row in enumerate(rows):
        look = "<w:b/>" if k == 0 else ""
        cells = "".join(f"<w:tc>{wide}{_paragraph(c, look, stand)}</w:tc>" for c in row)
        lines.append(f"<w:tr><w:trPr><w:cantSplit/></w:trPr>{cells}</w:tr>")
    edge = "".join(f'<w:{side} w:val="single" w:sz="4"/>' for side in ("top", "bottom"))
    return f"<w:tbl><w:tblPr><w:tblBorders>{edge}</w:tblBorders></w:tblPr>{''.join(lines)}</w:tbl>"
