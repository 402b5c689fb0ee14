"""Column names that mark labels or an index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tnesi.data.source import DataError

LABEL_NAMES = ("label", "labels", "class", "target", "y")
INDEX_NAMES = ("", "__index_level_0__", "Unnamed: 0")


def find_label_column(names: Sequence[str], wanted: str | int | None, where: str | Path) -> int | None:
    """Return the number of the label column: `wanted`, or else the column with a usual name such as "label".

    Examples
    --------
    >>> find_label_column(["a", "Class", "b"], None, "data.csv"), find_label_column(["a", "b"], -1, "data.csv")
    (1, 1)
    """
    if wanted is None:
        found = [i for i, name in enumerate(names) if name.strip().lower() in LABEL_NAMES]
        if len(found) > 1:
            several = ", ".join(repr(names[i]) for i in found)
            raise DataError(
                "{where}: {several} could all be labels",
                advice="choose one with {label_column}",
                parameter="label_column",
                where=where,
                several=several,
            )
        return found[0] if found else None
    if isinstance(wanted, str) and wanted in names:
        return list(names).index(wanted)
    try:
        return range(len(names))[int(wanted)]
    except (ValueError, IndexError) as error:
        known = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        raise DataError(
            "{where} has no column {wanted!r}",
            advice="choose one of its {n} columns: {known}",
            parameter="label_column",
            where=where,
            wanted=wanted,
            n=len(names),
            known=known,
        ) from error
