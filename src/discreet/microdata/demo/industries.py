"""Industries: sections and divisions, with the relative size of each section."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """One section and the names of its divisions, the largest first.

    Args:
      code: One letter.
      label: Its label.
      size: Relative number of people in it, over and above what occupations ask for.
      names: Labels of its divisions.
    """

    code: str
    label: str
    size: float
    names: tuple[str, ...]

    @property
    def divisions(self) -> tuple[tuple[str, str], ...]:
        """Code and label of each division."""
        return tuple((f"{self.code}{i:02d}", name) for i, name in enumerate(self.names, start=1))


SECTIONS = (
    Section("A", "Farming", 1.0, ("Crops and animals", "Forestry", "Fishing")),
    Section("B", "Mining", 0.8, ("Quarrying", "Ore and coal", "Mining services")),
    Section(
        "C",
        "Manufacturing",
        8.0,
        (
            "Machinery",
            "Food and drink",
            "Metal products",
            "Vehicles",
            "Chemicals",
            "Wood and paper",
            "Electronics",
            "Furniture and toys",
            "Textiles and clothing",
            "Glass and stone",
        ),
    ),
    Section("D", "Energy", 1.2, ("Electricity", "Gas", "District heat")),
    Section("E", "Water and waste", 1.2, ("Waste", "Sewerage", "Water supply", "Remediation")),
    Section(
        "F", "Construction", 4.0, ("Finishing trades", "Buildings", "Civil works", "Demolition")
    ),
    Section(
        "G",
        "Trade",
        8.0,
        ("Shops", "Wholesale", "Vehicle trade", "Mail order", "Markets and stalls"),
    ),
    Section(
        "H",
        "Transport",
        3.5,
        ("Road and rail", "Warehousing", "Post and parcels", "Air", "Water transport"),
    ),
    Section("I", "Hotels and food", 2.6, ("Restaurants", "Hotels", "Catering", "Camping sites")),
    Section(
        "J",
        "Information",
        2.4,
        ("Software", "Telecommunication", "Publishing", "Broadcasting", "Film and sound"),
    ),
    Section("K", "Finance", 2.4, ("Banking", "Insurance", "Brokerage", "Funds")),
    Section("L", "Real estate", 0.9, ("Letting", "Estate agents", "Development")),
    Section(
        "M",
        "Professional services",
        4.0,
        ("Law and accounts", "Engineering", "Consulting", "Research", "Advertising", "Veterinary"),
    ),
    Section(
        "N",
        "Support services",
        3.0,
        ("Cleaning and grounds", "Staffing", "Security", "Travel agencies", "Rental and leasing"),
    ),
    Section(
        "O", "Public administration", 4.5, ("General government", "Defence", "Social insurance")
    ),
    Section(
        "P", "Education", 3.5, ("Schools", "Nursery schools", "Universities", "Adult education")
    ),
    Section("Q", "Health and social work", 6.0, ("Health care", "Social care", "Nursing homes")),
    Section("R", "Arts and leisure", 1.0, ("Sport", "Arts", "Libraries and museums", "Gambling")),
    Section("S", "Other services", 1.3, ("Personal care", "Associations", "Repair")),
    Section("T", "Households and bodies", 0.5, ("Private households", "International bodies")),
)

DEFENCE = "O02"
