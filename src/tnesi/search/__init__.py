"""Searches for the best fields of a row; :mod:`tnesi.search.base` says what a search has to provide."""

from tnesi.search.base import Search
from tnesi.search.device import DeviceSearch, on_device
from tnesi.search.exact import ExactSearch, FullSearch
from tnesi.search.neighbors import NeighborSearch

SEARCHES: dict[str, type[Search]] = {kind.name: kind for kind in (ExactSearch, NeighborSearch, FullSearch)}

__all__ = ["SEARCHES", "DeviceSearch", "ExactSearch", "FullSearch", "NeighborSearch", "Search", "on_device"]
