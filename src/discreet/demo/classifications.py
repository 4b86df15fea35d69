"""Code lists of the invented country, region apart, and which of their codes exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from discreet.demo.geography import NOT_APPLICABLE, CodeList, flat_codes, geography, nested_codes

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
    (("LOW", "Low"), (
        ("ED0", "Less than primary"), ("ED1", "Primary"), ("ED2", "Lower secondary"),
    )),
    (("MID", "Medium"), (
        ("ED3", "Upper secondary, general"), ("ED4", "Upper secondary, vocational"),
    )),
    (("HIGH", "High"), (
        ("ED5", "Short tertiary"), ("ED6", "Bachelor or equivalent"),
        ("ED7", "Master or equivalent"), ("ED8", "Doctorate"),
    )),
)  # fmt: skip
CITIZENSHIP = (
    (("HOME", "Home country"), (("TV", "Tarvenia"),)),
    (("UNION", "Other countries of the Union"), (
        ("AU", "Aurelia"), ("BO", "Borduna"), ("CE", "Celestria"), ("DR", "Drovia"),
        ("EL", "Elbania"), ("FR", "Frisonia"), ("GA", "Galdor"), ("HE", "Helvar"),
        ("IL", "Illyra"), ("KA", "Karelund"), ("LO", "Lorrane"), ("MO", "Morava"),
    )),
    (("OTHER", "Other countries"), (
        ("NB", "Nabara"), ("OR", "Orissan"), ("PA", "Pavonia"), ("QA", "Qasira"),
        ("RU", "Rusteva"), ("SA", "Samarra"), ("TA", "Tashir"), ("UL", "Ulmara"),
        ("VE", "Venda"), ("WA", "Wadira"), ("XA", "Xanadar"), ("YE", "Yelland"),
        ("ZA", "Zambria"), ("ZE", "Zenobia"), ("ZU", "Zubaran"), ("ST", "Stateless"),
        ("UN", "Unknown"),
    )),
)  # fmt: skip
MAJOR_GROUPS = (
    ("OC0", "Armed forces"),
    ("OC1", "Managers"),
    ("OC2", "Professionals"),
    ("OC3", "Technicians"),
    ("OC4", "Clerical support"),
    ("OC5", "Services and sales"),
    ("OC6", "Farming, forestry and fishery"),
    ("OC7", "Craft and trades"),
    ("OC8", "Plant operators and drivers"),
    ("OC9", "Elementary occupations"),
)


@dataclass(frozen=True)
class Occupation:
    """One occupation."""

    code: str  # the first three characters are the major group
    label: str
    size: float  # relative number of people in it
    skill: float  # typical education, on the scale of the education codes, 0 to 8
    women: float  # share of women
    rural: float  # how much more common it is in the country than in the capital (log scale)
    sections: str  # industry sections in which most of its people work


OCCUPATIONS = (
    Occupation("OC01", "Officers", 0.2, 6.0, 0.12, -0.4, "O"),
    Occupation("OC02", "Other ranks", 0.5, 3.5, 0.12, 0.3, "O"),
    Occupation("OC11", "Directors and senior officials", 0.7, 6.8, 0.27, -1.0, "OKM"),
    Occupation("OC12", "Administrative and commercial managers", 2.2, 6.3, 0.38, -0.8, "KMN"),
    Occupation("OC13", "Production managers", 2.0, 5.5, 0.22, 0.0, "CFH"),
    Occupation("OC14", "Hotel, shop and restaurant managers", 1.4, 4.2, 0.44, 0.1, "IG"),
    Occupation("OC21", "Scientists and engineers", 3.6, 7.0, 0.29, -0.8, "MC"),
    Occupation("OC22", "Health professionals", 3.0, 7.0, 0.69, -0.2, "Q"),
    Occupation("OC23", "Teaching professionals", 5.2, 6.8, 0.72, 0.0, "P"),
    Occupation("OC24", "Business professionals", 4.3, 6.4, 0.51, -1.1, "KM"),
    Occupation("OC25", "Software and network professionals", 2.8, 6.2, 0.18, -1.3, "J"),
    Occupation("OC26", "Lawyers, writers and artists", 2.6, 6.9, 0.58, -1.2, "MR"),
    Occupation("OC31", "Engineering technicians", 4.0, 4.9, 0.17, 0.0, "CFD"),
    Occupation("OC32", "Health technicians", 3.5, 5.0, 0.80, 0.1, "Q"),
    Occupation("OC33", "Business associates", 6.0, 4.8, 0.54, -0.5, "KGL"),
    Occupation("OC34", "Social, cultural and sport associates", 1.9, 4.8, 0.61, -0.2, "RQS"),
    Occupation("OC35", "Computer and media technicians", 1.1, 4.6, 0.17, -0.9, "J"),
    Occupation("OC41", "General clerks", 4.5, 3.9, 0.79, -0.2, "ON"),
    Occupation("OC42", "Customer service clerks", 2.3, 3.8, 0.69, -0.4, "KIH"),
    Occupation("OC43", "Accounting and stock clerks", 3.4, 3.8, 0.55, 0.0, "GHK"),
    Occupation("OC44", "Other clerks", 1.0, 3.5, 0.62, -0.1, "OH"),
    Occupation("OC51", "Personal service workers", 4.3, 3.3, 0.62, 0.0, "IS"),
    Occupation("OC52", "Sales workers", 6.1, 3.2, 0.68, 0.0, "G"),
    Occupation("OC53", "Care workers", 4.6, 3.2, 0.88, 0.2, "QT"),
    Occupation("OC54", "Protective services", 1.7, 3.6, 0.20, -0.1, "ON"),
    Occupation("OC61", "Market gardeners and crop growers", 1.9, 2.7, 0.27, 2.2, "A"),
    Occupation("OC62", "Animal farmers", 1.1, 2.8, 0.29, 2.6, "A"),
    Occupation("OC63", "Forestry and fishery workers", 0.4, 2.6, 0.07, 2.8, "A"),
    Occupation("OC71", "Builders", 3.9, 3.1, 0.03, 0.5, "F"),
    Occupation("OC72", "Metal and machinery workers", 3.4, 3.5, 0.04, 0.5, "CG"),
    Occupation("OC73", "Precision, print and handicraft workers", 0.6, 3.5, 0.30, 0.0, "C"),
    Occupation("OC74", "Electricians", 1.9, 3.7, 0.03, 0.2, "FDC"),
    Occupation("OC75", "Food, wood and textile workers", 1.6, 2.9, 0.33, 0.8, "C"),
    Occupation("OC81", "Plant and machine operators", 2.4, 2.7, 0.29, 0.7, "CBE"),
    Occupation("OC82", "Assemblers", 0.9, 2.8, 0.36, 0.5, "C"),
    Occupation("OC83", "Drivers", 4.1, 2.7, 0.06, 0.3, "HE"),
    Occupation("OC91", "Cleaners and helpers", 4.2, 1.8, 0.83, -0.1, "NTI"),
    Occupation("OC92", "Farm labourers", 0.6, 1.6, 0.34, 2.4, "A"),
    Occupation("OC93", "Labourers in industry and transport", 2.5, 2.1, 0.24, 0.3, "CFH"),
    Occupation("OC94", "Kitchen, street and refuse workers", 1.6, 1.8, 0.52, -0.3, "IEG"),
)


@dataclass(frozen=True)
class Section:
    """One section and the names of its divisions, the largest first."""

    code: str
    label: str
    size: float  # relative number of people in it, over and above what occupations ask for
    names: tuple[str, ...]  # labels of its divisions

    @property
    def divisions(self) -> tuple[tuple[str, str], ...]:
        """Code and label of each division."""
        return tuple((f"{self.code}{i:02d}", name) for i, name in enumerate(self.names, start=1))


SECTIONS = (
    Section("A", "Farming", 1.0, ("Crops and animals", "Forestry", "Fishing")),
    Section("B", "Mining", 0.8, ("Quarrying", "Ore and coal", "Mining services")),
    Section("C", "Manufacturing", 8.0, (
        "Machinery", "Food and drink", "Metal products", "Vehicles", "Chemicals", "Wood and paper",
        "Electronics", "Furniture and toys", "Textiles and clothing", "Glass and stone",
    )),
    Section("D", "Energy", 1.2, ("Electricity", "Gas", "District heat")),
    Section("E", "Water and waste", 1.2, ("Waste", "Sewerage", "Water supply", "Remediation")),
    Section("F", "Construction", 4.0, (
        "Finishing trades", "Buildings", "Civil works", "Demolition",
    )),
    Section("G", "Trade", 8.0, (
        "Shops", "Wholesale", "Vehicle trade", "Mail order", "Markets and stalls",
    )),
    Section("H", "Transport", 3.5, (
        "Road and rail", "Warehousing", "Post and parcels", "Air", "Water transport",
    )),
    Section("I", "Hotels and food", 2.6, ("Restaurants", "Hotels", "Catering", "Camping sites")),
    Section("J", "Information", 2.4, (
        "Software", "Telecommunication", "Publishing", "Broadcasting", "Film and sound",
    )),
    Section("K", "Finance", 2.4, ("Banking", "Insurance", "Brokerage", "Funds")),
    Section("L", "Real estate", 0.9, ("Letting", "Estate agents", "Development")),
    Section("M", "Professional services", 4.0, (
        "Law and accounts", "Engineering", "Consulting", "Research", "Advertising", "Veterinary",
    )),
    Section("N", "Support services", 3.0, (
        "Cleaning and grounds", "Staffing", "Security", "Travel agencies", "Rental and leasing",
    )),
    Section("O", "Public administration", 4.5, (
        "General government", "Defence", "Social insurance",
    )),
    Section("P", "Education", 3.5, (
        "Schools", "Nursery schools", "Universities", "Adult education",
    )),
    Section("Q", "Health and social work", 6.0, ("Health care", "Social care", "Nursing homes")),
    Section("R", "Arts and leisure", 1.0, ("Sport", "Arts", "Libraries and museums", "Gambling")),
    Section("S", "Other services", 1.3, ("Personal care", "Associations", "Repair")),
    Section("T", "Households and bodies", 0.5, ("Private households", "International bodies")),
)  # fmt: skip
DEFENCE = "O02"


@cache
def code_lists() -> Mapping[str, CodeList]:
    """The code list of every coded column."""
    occupations = (
        (group, [(o.code, o.label) for o in OCCUPATIONS if o.code.startswith(group[0])])
        for group in MAJOR_GROUPS
    )
    divisions = (((s.code, s.label), s.divisions) for s in SECTIONS)
    lists = (
        geography().codes,
        _age(),
        flat_codes("sex", SEX),
        flat_codes("marital", MARITAL),
        nested_codes(
            "education",
            ("total", "education_level", "education"),
            EDUCATION,
            not_applicable="Not applicable (younger than 15)",
        ),
        nested_codes(
            "occupation",
            ("total", "major_group", "occupation"),
            occupations,
            not_applicable="Not applicable (not working)",
        ),
        nested_codes(
            "industry",
            ("total", "section", "industry"),
            divisions,
            not_applicable="Not applicable (not working)",
        ),
        nested_codes("citizenship", ("total", "citizenship_group", "citizenship"), CITIZENSHIP),
        flat_codes("relation", RELATION),
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
    return nested_codes("age", ("total", "broad_age", "age"), groups)


Impossible = Mapping[str, frozenset[str]]


def structural_zeros() -> tuple[Impossible, ...]:
    """Declared structural zeros.

    Each one maps two variables to sets of leaf codes: no person has a code of the first set
    together with a code of the second.
    """
    children, older = _leaves("age", "Y_LT15"), _leaves("age", "Y15-64", "Y_GE65")
    military, none = _leaves("occupation", "OC0"), frozenset({NOT_APPLICABLE})
    return (
        # People younger than 15 are unmarried sons and daughters without a degree or work.
        {"age": children, "marital": _but("marital", "NEV")},
        {"age": children, "relation": _but("relation", "CHI")},
        {"age": children, "education": _but("education", NOT_APPLICABLE)},
        {"age": children, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"age": children, "industry": _but("industry", NOT_APPLICABLE)},
        # Degrees take time, and everybody of 15 or older has a level of education.
        {"age": older, "education": none},
        {"age": frozenset({"Y15-19"}), "education": _leaves("education", "HIGH")},
        {"age": frozenset({"Y20-24"}), "education": frozenset({"ED8"})},
        {"education": none, "marital": _but("marital", "NEV")},
        {"education": none, "relation": _but("relation", "CHI")},
        {"education": none, "occupation": _but("occupation", NOT_APPLICABLE)},
        {"education": none, "industry": _but("industry", NOT_APPLICABLE)},
        # Who works has an occupation and an industry; soldiers serve in defence until 65.
        {"occupation": none, "industry": _but("industry", NOT_APPLICABLE)},
        {"occupation": _but("occupation", NOT_APPLICABLE), "industry": none},
        {"occupation": military, "industry": _but("industry", DEFENCE)},
        {"occupation": military, "age": _leaves("age", "Y_GE65")},
    )


def _leaves(variable: str, *under: str) -> frozenset[str]:
    return code_lists()[variable].leaves_under(*under)


def _but(variable: str, *codes: str) -> frozenset[str]:
    """All leaves of a variable but these."""
    return frozenset(code_lists()[variable].leaves) - set(codes)
