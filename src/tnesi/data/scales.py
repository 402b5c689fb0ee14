"""Whether the columns of a table are measured in units that can be compared."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.stats import entropy

from tnesi.data.source import Data

_LOOKED_AT = 2000
_MOST_COLUMNS = 100
"""Tables of more columns are word counts and the like, where few of them make up most of a row by nature."""


def unequal_columns(data: Data) -> str | None:
    """Return a warning if few of the columns of a table make up nearly all of its rows, None if they do not.

    Only the proportions within a row count: what is measured in grams hides what is measured in meters. Half of the
    columns would do, were they of one size (the exponential of the entropy of the mean row tells how many).

    Examples
    --------
    >>> import pandas as pd
    >>> from tnesi.data import open_data
    >>> table = pd.DataFrame({"mass_g": [4100, 3700], "bill_mm": [45, 39], "depth_mm": [17, 18]})
    >>> unequal_columns(open_data(table))[:35]
    "'mass_g' makes up 98 % of each row,"
    >>> unequal_columns(open_data(table / table.max())) is None
    True
    """
    names, n = data.rows.feature_names, data.rows.n_features
    if names is None or data.rows.image_shape is not None or not 2 < n < _MOST_COLUMNS:
        return None
    rows = next(iter(data.rows.parts(_LOOKED_AT)))
    if sparse.issparse(rows):  # word counts and the like
        return None
    rows = np.maximum(rows, 0).astype(np.float64)
    rows = rows[rows.any(axis=1)]
    rows /= rows.max(axis=1, keepdims=True)  # sums of numbers near the largest there are would be infinite
    share = (rows / rows.sum(axis=1, keepdims=True)).sum(axis=0) / max(len(rows), 1)
    if not len(rows) or np.exp(entropy(share)) >= n / 2:
        return None
    largest = int(share.argmax())
    return (
        f"{names[largest][:40]!r} makes up {100 * share[largest]:.0f} % of each row, and most columns hardly count: if "
        "they are in different units, bring them to one scale first"
    )
