"""Draw the same number of labels from each class, as in the paper."""

from __future__ import annotations

import numpy as np

from tnesi.errors import InvalidParameterError
from tnesi.types import Array


def few_labels(y: object, per_class: int, rng: np.random.Generator, unlabeled: object = -1) -> Array:
    """Keep `per_class` random labels of each class (all of them, if there are fewer).

    All other rows get the marker `unlabeled`. The result is an integer array if `y` and the marker are integers, else
    an object array.

    Examples
    --------
    >>> few_labels(np.array([0, 1, 0, 1, 1]), 1, np.random.default_rng(0))
    array([-1, -1,  0,  1, -1])
    >>> few_labels(["a", "b", None, "b"], 1, np.random.default_rng(0), unlabeled=None)
    array(['a', None, None, 'b'], dtype=object)
    """
    from tnesi.labeling.labels import encode_labels  # imports scikit-learn, which takes a second

    if per_class < 1:
        raise InvalidParameterError("{per_class} must be at least 1", parameter="per_class")
    codes, classes = encode_labels(y, unlabeled)
    whole = classes.dtype.kind in "iu" and isinstance(unlabeled, (int, np.integer))
    few = np.full(codes.shape, unlabeled, np.int64 if whole else object)
    for k, name in enumerate(classes.tolist()):
        members = np.flatnonzero(codes == k)
        few[rng.choice(members, min(per_class, members.size), replace=False)] = name
    return few
