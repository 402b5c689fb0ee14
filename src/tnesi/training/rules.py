"""Learning rules of the published networks: the online rule, or EM."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OnlineRule:
    """The published rule: Hebbian learning of both layers in mini-batches.

    Parameters
    ----------
    max_iter : int, default=500
        Passes over the data. The published runs with one label per class use 2,000.
    batch_size : int, default=25
        Rows in a mini-batch.
    learning_rate : float, default=0.2
        Rate of the first layer, in units of C / N.
    label_learning_rate : float, default=0.2
        Rate of the second layer, in units of K / N, or of K / number of labels without self-labeling.
    """

    max_iter: int = 500
    batch_size: int = 25
    learning_rate: float = 0.2
    label_learning_rate: float = 0.2


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
