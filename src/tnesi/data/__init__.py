r"""Open data: `open_data` takes arrays, files, folders and names of data sets.

========================================  ======================================  ====================================
what                                      rows                                    labels
========================================  ======================================  ====================================
NumPy array, list, scipy sparse matrix    N x columns, or N x height x width      given as ``labels``
data frame (pandas, polars)               numeric columns                         column (1)
``.npy``                                  memory-mapped array                     a second file (2)
``.npz``                                  ``X``, ``data``, ``x_train``, (3)       ``y``, ``labels``, ``y_train``, (3)
``.npz`` of ``scipy.sparse.save_npz``     sparse matrix                           a second file
CSV, also ``.csv.gz``; Parquet            columns; streamed if numeric            column (1)
IDX (MNIST's format), also gzip           N x height x width                      ``...-labels-idx1-ubyte`` beside it
folder of images                          one size; streamed                      folder names
Zarr array or group, format 2 or 3        as in ``.npz``; streamed                as in ``.npz``
name, such as ``mnist`` (4)                downloaded if need be                   of the data set
========================================  ======================================  ====================================

Formats are recognized by content. Sizes in file headers are checked before memory is allocated, nothing in a file is
executed, and damaged files raise a `DataError`.

Labels are integers or strings, None for unlabeled rows.

Estimators accept ``open_data(...).X`` or, to read block by block, ``open_data(...).rows``. Use `BlockSource` for rows
that a program generates.

1. Given by ``label_column``, else the column called label, labels, class, target or y.
2. ``open_data(..., labels="labels.csv")``, for all formats; see `tnesi.data.label_files`.
3. In upper or lower case. Rows: ``X``, ``data``, ``X_train``, ``train_images``, ``images``, ``features``, ``arr_0``
   or the only array. Labels: ``y``, ``labels``, ``label``, ``target``, ``targets``, ``class``, ``y_train``,
   ``train_labels``, ``arr_1``. Test part: ``X_test``, ``test_images`` with ``y_test``, ``test_labels``.
4. ``tnesi.data.datasets.named.NAMES`` lists all.

Examples
--------
>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
>>> _ = path.write_text("width,height,class\n1,2,rose\n3,4,\n")
>>> data = open_data(path)
>>> data.X
array([[1, 2],
       [3, 4]], dtype=uint8)
>>> data.y
array(['rose', None], dtype=object)
>>> data.note
"labels from column 'class'"
"""

from tnesi.data.block_source import BlockSource
from tnesi.data.datasets.named import load_named
from tnesi.data.label_files import read_labels
from tnesi.data.labels import few_labels
from tnesi.data.opening import open_data
from tnesi.data.readers.idx import read_idx
from tnesi.data.source import Data, DataError, DataNotFoundError, Source

__all__ = [
    "BlockSource",
    "Data",
    "DataError",
    "DataNotFoundError",
    "Source",
    "few_labels",
    "load_named",
    "open_data",
    "read_idx",
    "read_labels",
]
