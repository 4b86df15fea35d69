"""Occupations: codes, labels and what the model needs to know about each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Occupation:
    """One occupation.

    Args:
      code: Its code; the first three characters are the major group.
      label: Its label.
      size: Relative number of people in it.
      skill: Typical education, on the scale of the education codes, 0 to 8.
      women: Share of women.
      rural: How much more common it is in the country than in the capital (log scale).
      sections: Industry sections in which most of its people work.
    """

    code: str
    label: str
    size: float
    skill: float
    women: float
    rural: float
    sections: str


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
