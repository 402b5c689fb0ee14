"""Searches for the best fields of a row."""

from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch

TruncatedSearch = ExactSearch | NeighborSearch
"""Searches that work on grains of rows; the full search needs all rows in memory."""
Search = TruncatedSearch | FullSearch

__all__ = ["ExactSearch", "FullSearch", "NeighborSearch", "Search", "TruncatedSearch"]
