"""The family of Neural Simpletrons by name, with the parameters published for MNIST.

All are settings of :class:`tnesi.SimpletronClassifier`; any parameter can be changed in the call, for instance
``t_nesi(solver="em", row_sum="auto")`` for the same network learned by EM.

============================ ========== ============== =========
name                         truncation self-labeling recurrent
============================ ========== ============== =========
ff_nesi                      no         no             no
ff_plus_nesi                 no         yes            no
r_nesi                       no         no             yes
r_plus_nesi                  no         yes            yes
t_nesi                       yes        yes            no
truncated_recurrent_nesi     yes        yes            yes
============================ ========== ============== =========

The first four are of Forster, Sheikh and Lücke, `t_nesi` is of Forster and Lücke (2017); the last one is
unpublished. The published runs with one label per class made 2,000 iterations: pass ``max_iter=2000``.

Examples
--------
>>> from tnesi.paper import presets
>>> presets.t_nesi().truncation
15
>>> presets.ff_plus_nesi(n_components=2000, random_state=0).n_components
2000
"""

from __future__ import annotations

from typing import Any

from tnesi.estimators.simpletron_classifier import SimpletronClassifier

__all__ = ["ff_nesi", "ff_plus_nesi", "r_nesi", "r_plus_nesi", "t_nesi", "truncated_recurrent_nesi"]

_PUBLISHED: dict[str, Any] = {
    "n_components": 10_000,
    "row_sum": 900,
    "solver": "hebbian",
    "max_iter": 500,
    "tol": 0.0,
    "prior_strength": 0.0,
    "batch_size": 25,
    "learning_rate": 0.2,
    "label_method": "hebbian",
    "label_learning_rate": 0.2,
    "threshold": 0.6,
}


def _preset(changes: dict[str, Any], **settings: Any) -> SimpletronClassifier:
    return SimpletronClassifier(**{**_PUBLISHED, **settings, **changes})


def ff_nesi(**changes: Any) -> SimpletronClassifier:
    """Feed-forward, not truncated; the second layer learns from labeled rows only."""
    return _preset(changes, truncation=None, self_labeling=False, recurrent=False)


def ff_plus_nesi(**changes: Any) -> SimpletronClassifier:
    """Feed-forward, not truncated, with self-labeling."""
    return _preset(changes, truncation=None, self_labeling=True, recurrent=False)


def r_nesi(**changes: Any) -> SimpletronClassifier:
    """Recurrent, not truncated; the second layer learns from labeled rows only."""
    return _preset(changes, truncation=None, self_labeling=False, recurrent=True)


def r_plus_nesi(**changes: Any) -> SimpletronClassifier:
    """Recurrent, not truncated, with self-labeling."""
    return _preset(changes, truncation=None, self_labeling=True, recurrent=True)


def t_nesi(**changes: Any) -> SimpletronClassifier:
    """Feed-forward, truncated, with self-labeling: the paper's network."""
    return _preset(changes, truncation=15, self_labeling=True, recurrent=False)


def truncated_recurrent_nesi(**changes: Any) -> SimpletronClassifier:
    """Recurrent, truncated, with self-labeling."""
    return _preset(changes, truncation=15, self_labeling=True, recurrent=True)
