"""The custodian's ledger: what was released of which data, and what it cost."""

from discreet.accounting import Cost, Relation, Total
from discreet.ledger.entries import Sketch
from discreet.ledger.ledger import Ledger

__all__ = ["Cost", "Ledger", "Relation", "Sketch", "Total"]
