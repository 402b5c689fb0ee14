"""Drawing a few labels, as the paper does: the same number from every class."""

from __future__ import annotations

from typing import Any

import numpy as np

from tnesi.types import Array


def few_labels(y: Any, per_class: int, rng: np.random.Generator, unlabeled: Any = -1) -> Array:
    """Return `y` with only `per_class` randomly chosen labels of each class left (all, where there are fewer).

    Rows that lose their label, or have none (None, NaN, the marker), get the marker `unlabeled`. The result holds
    integers where `y` and the marker do, and objects otherwise.

    Examples
    --------
    >>> few_labels(np.array([0, 1, 0, 1, 1]), 1, np.random.default_rng(0))
    array([-1, -1,  0,  1, -1])
    >>> few_labels(["a", "b", None, "b"], 1, np.random.default_rng(0), unlabeled=None)
    array(['a', None, None, 'b'], dtype=object)
    """
    from tnesi.labeling.labels import encode_labels  # pulls in scikit-learn, which takes a second

    if per_class < 1:
        raise ValueError(f"per_class is {per_class}: keep at least one label per class")
    codes, classes = encode_labels(y, unlabeled)
    whole = classes.dtype.kind in "iu" and isinstance(unlabeled, (int, np.integer))
    few = np.full(codes.shape, unlabeled, np.int64 if whole else object)
    for k, name in enumerate(classes.tolist()):
        members = np.flatnonzero(codes == k)
        few[rng.choice(members, min(per_class, members.size), replace=False)] = name
    return few
