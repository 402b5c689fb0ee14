"""Learning rules of the published networks: the online rule, or EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PASSES, PASSES_WITH_ONE_LABEL = 500, 2000
"""Published numbers of passes over the data, and with one label per class."""


@dataclass(frozen=True)
class OnlineRule:
    """The published rule: Hebbian learning of both layers in mini-batches.

    With partial E-steps, which are not published, a row is only compared with its own fields and their neighbors; an
    epoch then takes about a tenth of the time for 10,000 fields.

    Parameters
    ----------
    max_iter : int or None, default=None
        Passes over the data. None is the published number: 2,000 if no class has more than one label, else 500.
    batch_size : int, default=25
        Rows in a mini-batch.
    learning_rate : float, default=0.2
        Rate of the first layer, in units of C / N.
    label_learning_rate : float, default=0.2
        Rate of the second layer, in units of K / N, or of K / number of labels without self-labeling.
    e_step : {"exact", "partial"}, default="exact"
        Whether a row is compared with all fields in each pass, or with a few (truncated, feed-forward networks).
    """

    max_iter: int | None = None
    batch_size: int = 25
    learning_rate: float = 0.2
    label_learning_rate: float = 0.2
    e_step: Literal["exact", "partial"] = "exact"

    def passes(self, most_labels: int) -> int:
        """Return the number of passes if the class with the most labels has `most_labels`.

        Examples
        --------
        >>> OnlineRule().passes(1), OnlineRule().passes(10), OnlineRule(max_iter=7).passes(1)
        (2000, 500, 7)
        """
        if self.max_iter is not None:
            return self.max_iter
        return PASSES_WITH_ONE_LABEL if most_labels == 1 else PASSES


@dataclass(frozen=True)
class EM:
    """Expectation maximization for the first layer, then online passes for the second (not published).

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of iterations of the first layer.
    tol : float, default=2e-3
        Learning stops when an iteration gains less than this, in nats per row. 0 disables the test.
    prior_strength : float, default=1.0
        See :class:`tnesi.PoissonMixture`.
    label_learning_rate : float, default=20.0
        Rate of the second layer, in the units of `OnlineRule`. It decreases to a quarter toward the end.
    label_max_iter : int, default=100
        Passes of the second layer.
    batch_size : int, default=25
        Rows in a mini-batch of the second layer.
    """

    max_iter: int = 100
    tol: float = 2e-3
    prior_strength: float = 1.0
    label_learning_rate: float = 20.0
    label_max_iter: int = 100
    batch_size: int = 25
