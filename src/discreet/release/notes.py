"""Notes of a release for its readers: the public text, and the methods note under headings.

Sentences come from the statement, and from its language their translations.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_UP, Decimal
from html import escape

import numpy as np

from discreet.errors import DiscreetError
from discreet.noise.matrix import TransitionMatrix
from discreet.release.formats.write import About
from discreet.release.inference.law import matrix_of
from discreet.release.language import Language
from discreet.release.uncertainty import standard_errors
from discreet.tables.protected import COUNT, PublicTable

_HEADINGS = {
    "process": "What was done",
    "values": "What is promised",
    "limits": "What is not protected",
}
_USE = "How to use the figures"
_ACCURACY = "Accuracy by size of figure"
_REFERENCES = "References"
_COLUMNS = ("count", "standard error", "per cent", "difference")
_MOST_EPSILON = 10.0  # beyond it the factor says nothing
_ADJUSTED = {"fit", "round"}  # steps that change values without noise
_NEAR = ("round:near", "round:margins")  # roundings that keep most published cells within one
_SIZES = (1, 2, 3, 5, 10, 20, 50, 100)  # figures for which accuracy is told
_ADVICE = {
    "adds-up": "Totals can be taken from the tables or summed from their parts; both are the same.",
    "need-not-add-up": "Take totals from the tables: a sum of figures is mostly further off.",
    "shown-is-true": (
        "Figures that are shown can be used as they are, and compared between editions."
    ),
    "mean-zero": "An average over many figures is nearer to the truth than most of them.",
    "private": "Small figures are mostly noise; compare large ones.",
    "clipped": "A figure of zero may stand for a small number: negative results became zero.",
}
_ZERO = "A figure of zero may stand for a few people, since small numbers can become zero."
_WHOLE = "A total is the sum of its parts, those that are not shown among them."
_MARKED = "Figures that are not shown are marked as confidential."
_HIDDEN = "An average over areas lacks those that are not shown."
_EDITION = (
    "An edition is what is published of the records at one time; a later period, or a correction, "
    "is another edition."
)
_SHARED = "A figure that stands in several of these tables is the same in each."
_WORKS = {
    "Fraser & Wooton (2005)": (
        "A proposed method for confidentialising tabular output to protect against differencing"
    ),
    "Thompson, Broadfoot & Elazar (2013)": (
        "Methodology for the automatic confidentialisation of statistical outputs from "
        "remote servers at the Australian Bureau of Statistics"
    ),
    "Shlomo, Krenzke & Li (2019)": (
        "Comparison of three post-tabular confidentiality approaches for survey "
        "weighted frequency tables"
    ),
    "Shlomo & Young (2008)": "Invariant post-tabular protection of census frequency counts",
    "Dwork & Roth (2014)": "The algorithmic foundations of differential privacy",
    "Ghosh, Roughgarden & Sundararajan (2012)": "Universally utility-maximizing privacy mechanisms",
    "Canonne, Kamath & Steinke (2020)": "The discrete Gaussian for differential privacy",
    "Giessing & Höhne (2011)": "Eliminating small cells from census counts tables",
    "Langsrud & Heldal (2018)": "An algorithm for small count rounding of tabular data",
    "Cox (1987)": "A constructive procedure for unbiased controlled rounding",
    "Fischetti & Salazar-González (2000)": (
        "Models and algorithms for optimizing cell suppression in tabular data with "
        "linear constraints"
    ),
    "Langsrud (2024)": "Secondary cell suppression by Gaussian elimination",
}
_CITED = {
    "cell-key": ("Fraser & Wooton (2005)", "Thompson, Broadfoot & Elazar (2013)"),
    "drop-add": ("Shlomo, Krenzke & Li (2019)",),
    "pram": ("Shlomo & Young (2008)", "Shlomo, Krenzke & Li (2019)"),
    "discrete-laplace": ("Dwork & Roth (2014)", "Ghosh, Roughgarden & Sundararajan (2012)"),
    "discrete-gaussian": ("Canonne, Kamath & Steinke (2020)",),
    "laplace": ("Dwork & Roth (2014)",),
    "safe": ("Giessing & Höhne (2011)",),
    "small-count-rounding": ("Langsrud & Heldal (2018)",),
    "controlled-rounding": ("Cox (1987)",),
    "suppress": ("Fischetti & Salazar-González (2000)", "Langsrud (2024)"),
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
    told = statement.methods
    if promise := _promise(release):
        told = {"process": [], "values": [], **told}
        told["values"] = [promise, *told["values"]]
    parts = [(say(_HEADINGS[about]), [*map(say, said)]) for about, said in told.items() if said]
    use = [say(text) for text in _advice(release)]
    if any("edition" in text for said in told.values() for text in said):
        use.append(say(_EDITION))
    blocks = [*parts, *([(say(_USE), use)] if use else [])]
    if accuracy := _accuracy(release, language):
        blocks.append((say(_ACCURACY), accuracy))
    cited = [work for step in statement.steps for work in _CITED.get(_method(step.name), ())]
    works = [f"{name}: {_WORKS[name]}." for name in dict.fromkeys(cited)]
    return [*blocks, *([(say(_REFERENCES), works)] if works else [])]


def headed_methods(
    release: PublicTable, language: Language
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The methods note for files of tables: no numbers, and no titles in other languages."""
    left_out = language.say(_ACCURACY), language.say(_REFERENCES)
    blocks = methods_note(release, language)
    return tuple((heading, tuple(said)) for heading, said in blocks if heading not in left_out)


def _promise(release: PublicTable) -> str:
    """What a private release promises about one record, in a sentence without symbols."""
    privacy = release.statement.privacy
    # where margins are known as they are, a record added or removed is not covered
    if privacy is None or not release.statement.says("private") or privacy.epsilon > _MOST_EPSILON:
        return ""
    factor = math.ceil(100 * math.exp(privacy.epsilon)) / 100  # upwards, so that it holds
    said = f"No conclusion from these figures is more than {factor:.2f} times as likely with one "
    said += f"{privacy.unit} as without"
    if privacy.delta:  # in per cent and upwards: 1e-09 is a number for programs
        share = 100 * Decimal(repr(privacy.delta))
        share = share.quantize(Decimal(1).scaleb(share.adjusted()), ROUND_UP)
        said += f", but for a chance of {share:f} %"
    return f"{said}. The promise is about one {privacy.unit}, which this note also calls a unit."


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
    found += [_MARKED, _WHOLE, _HIDDEN] if is_true else []
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
    said = [
        "The table shows how far a count of a given size is typically changed, up or down.",
        "Differences below those of the last column, between two figures or of one figure between "
        "two editions, can come from the changes alone.",
    ]
    if release.statement.says("private"):
        said.append(
            "About nineteen of twenty figures are off by less than twice the standard error."
        )
    if release.statement.says("clipped"):
        said.append(
            "The table is about changes before negative results became zero; counts that are small "
            "beside the standard error are off by less."
        )
    if any(step.parameters.get("margins") == "summed" for step in release.statement.steps):
        said.append(
            "The table is about the finest figures; totals are sums of them, and are off by more."
        )
    if was_fitted:
        said.append(
            "Fitting afterwards changes figures further, and makes most of them more accurate."
        )
    if any(step.name in _NEAR for step in release.statement.steps):
        said.append("Rounding to whole numbers then changes most figures by less than one.")
    head = "| " + " | ".join(map(language.word, _COLUMNS)) + " |"
    # two figures that are off by as much differ by the root of two times that
    listed = [
        f"| {n} | {number(f'{e:.1f}')} | {100 * e / n:.0f} | {math.ceil(math.sqrt(8) * e - 1e-9)} |"
        for n, e in rows
    ]
    return [*map(say, said), head, *listed]


def _errors(release: PublicTable) -> list[tuple[int, float]]:
    """Standard errors by size of figure, from the law of the noise or from what it was told.

    Of a release that was fitted or rounded they are those of its noise, before that.
    """
    noisy = _as_noised(release)
    if release.unit == COUNT:  # the law of others is in steps of a grid
        with suppress(DiscreetError):
            matrix = matrix_of(noisy)
            return [(n, _deviation(matrix, n)) for n in _SIZES]
    if not release.statement.says("private"):
        return []
    largest = _private_error(noisy)
    if release.precision is not None and noisy.statement is release.statement:
        errors = standard_errors(release)
        largest = float(errors[np.isfinite(errors)].max(initial=0.0))
    return [(n, largest) for n in _SIZES] if largest > 0 else []


def _as_noised(release: PublicTable) -> PublicTable:
    """The release with the statement it had before it was fitted or rounded."""
    steps = release.statement.steps
    drawn = [k for k, step in enumerate(steps) if step.name.startswith("protect:")]
    later = {step.name.partition(":")[0] for step in steps[drawn[-1] + 1 :]} if drawn else set()
    if not later & _ADJUSTED:
        return release
    before = replace(release.statement, steps=steps[: drawn[-1] + 1])
    return replace(release, statement=before)


def _private_error(noisy: PublicTable) -> float:
    """The standard error of one draw for every cell, where it is told by budget and sensitivity."""
    step, privacy = noisy.statement.steps[-1], noisy.statement.privacy
    is_plain = not any(step.parameters.get(name) for name in ("split", "known", "grid"))
    if privacy is None or privacy.unit != "record" or noisy.unit != COUNT or not is_plain:
        return 0.0
    if privacy.rho is not None:
        return math.sqrt(privacy.sensitivity / (2 * privacy.rho))
    return math.sqrt(2) * privacy.sensitivity / privacy.epsilon


def _deviation(matrix: TransitionMatrix, count: int) -> float:
    """The root of the mean squared change of a count, from the law of its moves."""
    return math.sqrt(float(matrix.probabilities(count) @ matrix.deviations**2))


def notes_files(release: PublicTable, about: About, language: Language) -> dict[str, bytes]:
    """The notes in a language: public as Markdown; methods as Markdown, HTML and DOCX."""
    title, code = about.title, language.code
    imprint = " · ".join(text for text in (about.imprint, about.licence, about.contact) if text)
    above = [text for text in (*about.notices, imprint) if text]
    blocks: list[Block] = [("", above), *methods_note(release, language)]
    said = [text for text in about.footnotes if text not in about.notices]
    public = [*above, public_note(release, language), *said]
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
        body += [f"<h2>{escape(heading)}</h2>"] if heading else []
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
