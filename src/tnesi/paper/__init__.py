"""The published networks, and the tables and figures of the papers; protocols are data, results go to a run folder."""

from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.paper.protocol import TARGETS, Protocol, read_protocol
from tnesi.paper.reproduce import reproduce
from tnesi.paper.run_folder import RunFolder
from tnesi.training.rules import EM, OnlineRule

__all__ = [
    "EM",
    "TARGETS",
    "NeuralSimpletron",
    "OnlineRule",
    "Protocol",
    "RunFolder",
    "read_protocol",
    "reproduce",
]
