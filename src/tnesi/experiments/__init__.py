"""The paper's tables and figures: protocols and the paper's values are data, results are kept in a run folder."""

from tnesi.experiments.protocol import TARGETS, Protocol, read_protocol
from tnesi.experiments.reproduce import reproduce
from tnesi.experiments.run_folder import RunFolder

__all__ = ["TARGETS", "Protocol", "RunFolder", "read_protocol", "reproduce"]
