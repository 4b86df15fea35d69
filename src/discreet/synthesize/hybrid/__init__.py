"""Hybrid microdata: fits kept within pieces of clusters, clusters, their groups and all rows."""

from discreet.synthesize.hybrid.method import hybrid

__all__ = ["hybrid"]
