"""Warn about table columns in different units."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.stats import entropy

from tnesi.data.source import Data

_LOOKED_AT = 2000
_MOST_COLUMNS = 100
"""Wider tables hold word counts and the like, in which a few columns naturally make up most of a row."""


def unequal_columns(data: Data) -> str | None:
    """Return a warning if a few columns dominate the rows of a table, else None.

    Only proportions within a row count, so a column in grams hides one in meters. The effective number of columns is
    the exponential of the entropy of the mean row; the warning is given if it is below half of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from tnesi.data import open_data
    >>> table = pd.DataFrame({"mass_g": [4100, 3700], "bill_mm": [45, 39], "depth_mm": [17, 18]})
    >>> unequal_columns(open_data(table))[:26]
    "'mass_g' dominates the row"
    >>> unequal_columns(open_data(table / table.max())) is None
    True
    """
    names, n = data.rows.feature_names, data.rows.n_features
    if names is None or data.rows.image_shape is not None or not 2 < n < _MOST_COLUMNS:
        return None
    rows = next(iter(data.rows.parts(_LOOKED_AT)))
    if sparse.issparse(rows):  # such as word counts
        return None
    rows = np.maximum(rows, 0).astype(np.float64)
    rows = rows[rows.any(axis=1)]
    rows /= rows.max(axis=1, keepdims=True)  # avoids overflow
    share = (rows / rows.sum(axis=1, keepdims=True)).sum(axis=0) / max(len(rows), 1)
    if not len(rows) or np.exp(entropy(share)) >= n / 2:
        return None
    largest = int(share.argmax())
    return (
        f"{names[largest][:40]!r} dominates the rows ({100 * share[largest]:.0f} % of their sum), so most columns "
        "hardly count: scale columns in different units first"
    )
