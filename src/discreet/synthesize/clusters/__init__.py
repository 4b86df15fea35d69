"""Clusters of similar rows, and rows that lie far out."""

from discreet.synthesize.clusters.microaggregation import mdav

__all__ = ["mdav"]
