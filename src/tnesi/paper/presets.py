"""The family of Neural Simpletrons by name, with the parameters published for MNIST.

All return a :class:`tnesi.paper.NeuralSimpletron`; pass any parameter to change it, for instance
``t_nesi(rule=EM(), row_sum="auto")`` for the same network learned by EM.

name                         truncation self-labeling recurrent
============================ ========== ============= =========
ff_nesi                      no         no            no
ff_plus_nesi                 no         yes           no
r_nesi                       no         no            yes
r_plus_nesi                  no         yes           yes
t_nesi                       yes        yes           no
truncated_recurrent_nesi     yes        yes           yes
============================ ========== ============= =========
=======
==================================== ========== ============= =========
name                                 truncation self-labeling recurrent
==================================== ========== ============= =========
ff_nesi                              no         no            no
ff_plus_nesi                         no         yes           no
r_nesi                               no         no            yes
r_plus_nesi                          no         yes           yes
t_nesi                               yes        yes           no
truncated_recurrent_nesi             yes        yes           yes
r_plus_nesi_with_inferred_feedback   no         yes           yes
==================================== ========== ============= =========

The first four are from Forster, Sheikh and Lücke, `t_nesi` is from Forster and Lücke (2017); the last two are
unpublished. All make the published number of passes: 500, or 2,000 if no class has more than one label.

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

from tnesi.estimators.neural_simpletron import NeuralSimpletron
from tnesi.training.rules import OnlineRule

__all__ = [
    "ff_nesi",
    "ff_plus_nesi",
    "r_nesi",
    "r_plus_nesi",
    "r_plus_nesi_with_inferred_feedback",
    "t_nesi",
    "truncated_recurrent_nesi",
]


def ff_nesi(**changes: Any) -> NeuralSimpletron:
    """Feed-forward, not truncated; the second layer learns from labeled rows only."""
    return NeuralSimpletron(**{"rule": OnlineRule(), "truncation": None, "self_labeling": False, **changes})


def ff_plus_nesi(**changes: Any) -> NeuralSimpletron:
    """Feed-forward, not truncated, with self-labeling."""
    return NeuralSimpletron(**{"rule": OnlineRule(), "truncation": None, **changes})


def r_nesi(**changes: Any) -> NeuralSimpletron:
    """Recurrent, not truncated; the second layer learns from labeled rows only."""
    return NeuralSimpletron(
        **{"rule": OnlineRule(), "truncation": None, "self_labeling": False, "recurrent": True, **changes}
    )


def r_plus_nesi(**changes: Any) -> NeuralSimpletron:
    """Recurrent, not truncated, with self-labeling; only given labels act on the first layer."""
    return NeuralSimpletron(**{"rule": OnlineRule(), "truncation": None, "recurrent": True, **changes})


def r_plus_nesi_with_inferred_feedback(**changes: Any) -> NeuralSimpletron:
    """`r_plus_nesi` in which inferred labels act on the first layer as well; not published."""
    return r_plus_nesi(**{"inferred_feedback": True, **changes})


def t_nesi(**changes: Any) -> NeuralSimpletron:
    """Feed-forward, truncated, with self-labeling: the paper's network."""
    return NeuralSimpletron(**{"rule": OnlineRule(), **changes})


def truncated_recurrent_nesi(**changes: Any) -> NeuralSimpletron:
    """Recurrent, truncated, with self-labeling."""
    return NeuralSimpletron(**{"rule": OnlineRule(), "recurrent": True, **changes})
