"""The custodian's ledger: what was released of which data, and what it cost."""

from discreet.accounting import Cost, Relation, Total
from discreet.ledger.ledger import AVERAGED, Ledger
from discreet.tables.sketches import Sketch

__all__ = ["AVERAGED", "Cost", "Ledger", "Relation", "Sketch", "Total"]
