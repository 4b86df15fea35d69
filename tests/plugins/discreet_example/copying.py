"""An engine of another package."""

from discreet.testing import NumpyEngine


class CopyingEngine(NumpyEngine):
    """Counts as the plain engine does, and keeps the number of groupings."""

    name = "copying"
    groupings = 0

    def group(self, data, variables):
        """The cells that occur."""
        CopyingEngine.groupings += 1
        return super().group(data, variables)
