"""By which names columns of tables are known to be labels, or an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tnesi.data.source import DataError

LABEL_NAMES = ("label", "labels", "class", "target", "y")
INDEX_NAMES = ("", "__index_level_0__", "Unnamed: 0")


def find_label_column(names: Sequence[str], wanted: str | int | None, where: str | Path) -> int | None:
    """Return the number of the column of labels: the one that is wanted, else the one that has the name of one.

    Examples
    --------
    >>> find_label_column(["a", "Class", "b"], None, "data.csv"), find_label_column(["a", "b"], -1, "data.csv")
    (1, 1)
    """
    if wanted is None:
        found = [i for i, name in enumerate(names) if name.strip().lower() in LABEL_NAMES]
        if len(found) > 1:
            several = " and ".join(repr(names[i]) for i in found)
            raise DataError(f"{where}: {several} could all be labels: say which is with label_column")
        return found[0] if found else None
    if isinstance(wanted, str) and wanted in names:
        return list(names).index(wanted)
    try:
        return range(len(names))[int(wanted)]
    except (ValueError, IndexError) as error:
        known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            f"{where} has no column {wanted!r} for the labels; its {len(names)} columns: {known}"
        ) from error
