"""Which fields a row looks at."""

from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch

Search = ExactSearch | NeighborSearch | FullSearch

__all__ = ["ExactSearch", "FullSearch", "NeighborSearch", "Search"]
