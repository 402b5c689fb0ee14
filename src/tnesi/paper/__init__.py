"""The paper's tables and figures: protocols and the paper's values are data, results are kept in a run folder."""

from tnesi.paper.protocol import TARGETS, Protocol, read_protocol
from tnesi.paper.reproduce import reproduce
from tnesi.paper.run_folder import RunFolder

__all__ = ["TARGETS", "Protocol", "RunFolder", "read_protocol", "reproduce"]
