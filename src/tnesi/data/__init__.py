r"""Data of any kind, in one way: `open_data` takes arrays, files, folders and the names of data sets.

========================================  ======================================  ====================================
what                                      rows                                    labels
========================================  ======================================  ====================================
NumPy array, list, scipy sparse matrix    N x columns, or N x height x width      given as ``labels``
data frame (pandas, polars)               columns of numbers                      column [1]_
``.npy``                                  as an array; mapped, not read           a second file [2]_
``.npz``                                  ``X``, ``data``, ``x_train``, [3]_      ``y``, ``labels``, ``y_train``, [3]_
``.npz`` of ``scipy.sparse.save_npz``     of the sparse matrix                    a second file
CSV, also ``.csv.gz``; Parquet            columns of numbers; streamed            column [1]_
IDX (MNIST's format), also gzip           N x height x width; mapped if plain     ``...-labels-idx1-ubyte`` beside it
folder of images                          gray values, one size; streamed         names of the folders of the classes
Zarr array or group, format 2 or 3        as for ``.npz``; streamed               as for ``.npz``
name (see `tnesi.data.datasets.named.NAMES`)       downloaded if need be                   of the data set
========================================  ======================================  ====================================

What a file is gets recognized by its content. A file's promises are checked before anything is allocated, nothing in
a file is ever executed, and what is damaged is refused with a `DataError` that says what to do.

Labels are integers or strings, None where a row has no label.

Estimators learn from ``open_data(...).X`` or, without holding all rows in memory, from ``open_data(...).rows``; rows
that a program makes block by block are a `BlockSource`.

.. [1] The one named by ``label_column``, else the one called label, labels, class, target or y.
.. [2] ``open_data(..., labels="labels.csv")``, for every kind of data; see `tnesi.data.label_files`.
.. [3] In upper or lower case. Rows: ``X``, ``data``, ``X_train``, ``train_images``, ``images``, ``features``, ``arr_0``
   or the only array there is. Labels: ``y``, ``labels``, ``label``, ``target``, ``targets``, ``class``, ``y_train``,
   ``train_labels``, ``arr_1``. Test part: ``X_test``, ``test_images`` with ``y_test``, ``test_labels``.

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
"labels from the column 'class'"
"""

from tnesi.data.block_source import BlockSource
from tnesi.data.datasets.named import DataNotFoundError, load_named
from tnesi.data.label_files import read_labels
from tnesi.data.labels import few_labels
from tnesi.data.opening import open_data
from tnesi.data.readers.idx import read_idx
from tnesi.data.source import Data, DataError, Source

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
