"""Searches for the best fields of a row."""

from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch

Search = ExactSearch | NeighborSearch | FullSearch

__all__ = ["ExactSearch", "FullSearch", "NeighborSearch", "Search"]
