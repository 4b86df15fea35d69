"""The code lists of the invented country, region apart."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from discreet.microdata.demo.codes import CodeList, flat, nested
from discreet.microdata.demo.geography import geography
from discreet.microdata.demo.industries import SECTIONS
from discreet.microdata.demo.occupations import MAJOR_GROUPS, OCCUPATIONS

AGE_GROUPS = 20

SEX = (("F", "Female"), ("M", "Male"))
MARITAL = (
    ("NEV", "Never married"),
    ("MAR", "Married"),
    ("REG", "In a registered partnership"),
    ("SEP", "Separated"),
    ("DIV", "Divorced"),
    ("WID", "Widowed"),
)
RELATION = (
    ("REF", "Reference person"),
    ("SPO", "Spouse or partner"),
    ("CHI", "Son or daughter"),
    ("ASC", "Parent of the reference person or partner"),
    ("OTH", "Other member"),
)
EDUCATION = (
    (
        ("LOW", "Low"),
        (
            ("ED0", "Less than primary"),
            ("ED1", "Primary"),
            ("ED2", "Lower secondary"),
        ),
    ),
    (
        ("MID", "Medium"),
        (
            ("ED3", "Upper secondary, general"),
            ("ED4", "Upper secondary, vocational"),
        ),
    ),
    (
        ("HIGH", "High"),
        (
            ("ED5", "Short tertiary"),
            ("ED6", "Bachelor or equivalent"),
            ("ED7", "Master or equivalent"),
            ("ED8", "Doctorate"),
        ),
    ),
)
CITIZENSHIP = (
    (("HOME", "Home country"), (("TV", "Tarvenia"),)),
    (
        ("UNION", "Other countries of the Union"),
        (
            ("AU", "Aurelia"), ("BO", "Borduna"), ("CE", "Celestria"), ("DR", "Drovia"),
            ("EL", "Elbania"), ("FR", "Frisonia"), ("GA", "Galdor"), ("HE", "Helvar"),
            ("IL", "Illyra"), ("KA", "Karelund"), ("LO", "Lorrane"), ("MO", "Morava"),
        ),
    ),
    (
        ("OTHER", "Other countries"),
        (
            ("NB", "Nabara"), ("OR", "Orissan"), ("PA", "Pavonia"), ("QA", "Qasira"),
            ("RU", "Rusteva"), ("SA", "Samarra"), ("TA", "Tashir"), ("UL", "Ulmara"),
            ("VE", "Venda"), ("WA", "Wadira"), ("XA", "Xanadar"), ("YE", "Yelland"),
            ("ZA", "Zambria"), ("ZE", "Zenobia"), ("ZU", "Zubaran"), ("ST", "Stateless"),
            ("UN", "Unknown"),
        ),
    ),
)  # fmt: skip

OCCUPATIONS_OF = {
    code: tuple((o.code, o.label) for o in OCCUPATIONS if o.code.startswith(code))
    for code, _ in MAJOR_GROUPS
}


@cache
def code_lists() -> Mapping[str, CodeList]:
    """The code list of every coded column."""
    lists = (
        geography().codes,
        _age(),
        flat("sex", SEX),
        flat("marital", MARITAL),
        nested(
            "education",
            ("total", "education_level", "education"),
            EDUCATION,
            not_applicable="Not applicable (younger than 15)",
        ),
        nested(
            "occupation",
            ("total", "major_group", "occupation"),
            ((group, OCCUPATIONS_OF[group[0]]) for group in MAJOR_GROUPS),
            not_applicable="Not applicable (not working)",
        ),
        nested(
            "industry",
            ("total", "section", "industry"),
            (((s.code, s.label), s.divisions) for s in SECTIONS),
            not_applicable="Not applicable (not working)",
        ),
        nested("citizenship", ("total", "citizenship_group", "citizenship"), CITIZENSHIP),
        flat("relation", RELATION),
    )
    return MappingProxyType({codes.variable: codes for codes in lists})


def _age() -> CodeList:
    """Five-year groups within children, working age and old age."""
    last = AGE_GROUPS - 1
    leaves = [
        (f"Y{5 * g:02d}-{5 * g + 4:02d}", f"{5 * g} to {5 * g + 4} years") for g in range(last)
    ]
    leaves.append((f"Y{5 * last}+", f"{5 * last} years and older"))
    groups = (
        (("Y_LT15", "Younger than 15"), leaves[:3]),
        (("Y15-64", "15 to 64 years"), leaves[3:13]),
        (("Y_GE65", "65 years and older"), leaves[13:]),
    )
    return nested("age", ("total", "broad_age", "age"), groups)
