"""Records that would come out as they went in, or mirrored: found, merged or refused."""

from discreet.synthesize.safety.clusters import unsafe_clusters
from discreet.synthesize.safety.sets import UnsafeRowsError

__all__ = ["UnsafeRowsError", "unsafe_clusters"]
