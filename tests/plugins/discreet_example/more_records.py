"""A measure of records of another package."""

from dataclasses import dataclass

from discreet.assessment.measure import EVERYTHING
from discreet.assessment.microdata.record_sets import ORIGINAL, SYNTHETIC, RecordMeasure


@dataclass(frozen=True)
class MoreRecords(RecordMeasure):
    """How many synthetic records there are for each original one."""

    name = "more-records"
    kind = "utility"
    range = EVERYTHING

    def __call__(self, original, synthetic):
        """Take the measure."""
        sets = self.sets(original, synthetic)
        return self.score(sets.sizes[SYNTHETIC] / sets.sizes[ORIGINAL], sets.on)
