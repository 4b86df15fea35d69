"""Whether an edition of some records may stand beside the others of its data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.errors import LedgerError
from discreet.ledger.sketch import Sketch
from discreet.tables.data_set import DataSet

OTHER_DATA = (
    "Give the data a new edition if they changed, or a name of their own if they are other data."
)


@dataclass(frozen=True)
class Edition:
    """What is known of an edition; `None` where nothing is.

    Attributes:
      keys: Whether record keys are kept in the next edition or redrawn.
      mark: The mark of the secret behind them.
      sketch: Sketch of the records.
    """

    keys: str | None = None
    mark: str | None = None
    sketch: Sketch | None = None

    def joined(self, new: Edition, data_set: DataSet) -> Edition:
        """What both know together; an error where they contradict each other."""
        for what, here, there in (
            ("way of making record keys", self.keys, new.keys),
            ("secret", self.mark, new.mark),
            ("set of records", self.sketch, new.sketch),
        ):
            if here is not None and there is not None and here != there:
                raise LedgerError(
                    f"{shown(data_set)} was entered with another {what}. {OTHER_DATA}"
                )
        return Edition(self.keys or new.keys, self.mark or new.mark, self.sketch or new.sketch)


def shown(data_set: DataSet) -> str:
    """The data set in an error's words."""
    return f"edition {data_set.edition!r} of data set {data_set.name!r}"


def check_kept_keys(new: Edition, others: Mapping[str, Edition], data_set: DataSet) -> None:
    """Refuse keys that are said to be kept but come from another secret than before."""
    for name, other in others.items():
        is_kept = new.keys == other.keys == "kept"
        if is_kept and new.mark and other.mark and new.mark != other.mark:
            raise LedgerError(
                f"the record keys of {shown(data_set)} are said to be kept, but its secret is not "
                f"that of edition {name!r}. Use that secret, or keys='redrawn'."
            )


def check_changed(
    sketch: Sketch, others: Mapping[str, Edition], data_set: DataSet, min_changed: int
) -> None:
    """Refuse records that differ too little from those of an earlier edition."""
    for name, other in others.items():
        if other.sketch is None:
            continue
        changed = sketch.changed_since(other.sketch)
        if changed < min_changed:
            raise LedgerError(
                f"{shown(data_set)} differs from edition {name!r} by about {changed:.0f} records, "
                f"fewer than min_changed={min_changed}: a comparison of their tables could show "
                "who changed, and how. Publish less often, so that more records change between "
                "editions, or open the ledger with a smaller min_changed."
            )
