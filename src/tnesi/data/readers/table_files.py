"""Tables with columns of any kind in files, read in blocks as often as needed: Parquet, CSV and JSON lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tnesi.data.optional import needed
from tnesi.data.readers.parquet import open_parquet
from tnesi.data.source import DataError, check_room, damaged

_BATCH_ROWS = 2**13


class TableFile(ABC):
    """A file with a table.

    Attributes
    ----------
    path : Path
    names : list of str
        Of all columns; they need not be distinct.
    types : list of pyarrow.DataType
    n_rows : int
    note : str
        Remark on the encoding of the file.
    """

    path: Path
    names: list[str]
    types: list[Any]
    n_rows: int
    note: str = ""

    @abstractmethod
    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Yield record batches with some columns of all rows, named by their numbers."""

    def tables(self, columns: Sequence[int], names: Sequence[str]) -> Iterator[Any]:
        """Yield Arrow tables with some columns of all rows, under these names."""
        arrow = needed("pyarrow", "reading tables")
        n_rows = 0
        with damaged(self.path):
            for batch in self.batches(columns):
                n_rows += batch.num_rows
                yield arrow.table(batch.columns, names=list(names))
        if n_rows != self.n_rows:
            raise DataError(
                "{path} had {n_rows} rows and now has {now}",
                advice="open it again",
                path=self.path,
                n_rows=self.n_rows,
                now=n_rows,
            )

    def column(self, number: int, row_bytes: int) -> list[Any]:
        """Return the values of a column, which take `row_bytes` of memory each."""
        check_room(self.n_rows * row_bytes, f"a column of {self.n_rows} rows")
        return [value for table in self.tables([number], ["0"]) for value in table.column(0).to_pylist()]


class ParquetTable(TableFile):
    """A table in a Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_parquet(path) as file:
            self.names = [str(name) for name in file.schema_arrow.names]
            self.types = [file.schema_arrow.field(i).type for i in range(len(self.names))]
            self.n_rows = int(file.metadata.num_rows)

    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        with open_parquet(self.path) as file:
            stored = file.schema_arrow.names
            wanted = [stored[i] for i in columns]
            for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
                yield batch.select(wanted)
