"""20 newsgroups as word counts, straight from the archive: nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from tnesi.data.readers.sparse import CsrSource
from tnesi.data.source import Data, DataError, damaged

_MESSAGE = re.compile(r"20news-bydate-(?P<part>train|test)/(?P<group>[a-z.\-]+)/[0-9]+")
_MOST_BYTES = 2**28  # of the unpacked archive, which has a third of that
WORD = r"[a-z]{2,}"
MIN_MESSAGES = 2


def read_newsgroups(archive: Path, name: str = "20newsgroups") -> Data:
    """Return the messages in ``20news-bydate.tar.gz`` as sparse word counts, labeled with the names of the groups.

    Words are runs of two or more letters (a to z, in lower case) that are in at least two messages of the training
    part; headers, quotations and signatures count too. The test part has the same words.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    texts, groups = _read(archive)
    if not texts["train"] or not texts["test"]:
        raise DataError(
            f"{archive} has no messages in 20news-bydate-train and 20news-bydate-test", advice="download it again"
        )
    counter = CountVectorizer(token_pattern=WORD, min_df=MIN_MESSAGES, dtype=np.int32)
    train = csr_array(counter.fit_transform(texts["train"]))
    words = counter.get_feature_names_out().tolist()
    test = csr_array(counter.transform(texts["test"]))
    test_part = Data(CsrSource(test, words), np.array(groups["test"]), name=f"{name}, test part")
    return Data(CsrSource(train, words), np.array(groups["train"]), test_part, name)


def _read(archive: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the messages and their groups, for "train" and "test"."""
    texts: dict[str, list[str]] = {"train": [], "test": []}
    groups: dict[str, list[str]] = {"train": [], "test": []}
    with damaged(archive):
        with gzip.open(archive) as packed:
            content = packed.read(_MOST_BYTES)
            if packed.read(1):
                raise DataError(f"{archive} unpacks to more than the 20 newsgroups have", advice="download it again")
        with tarfile.open(fileobj=io.BytesIO(content)) as file:
            for member in file:
                match = _MESSAGE.fullmatch(member.name)
                if match and member.isreg() and (message := file.extractfile(member)):
                    texts[match["part"]].append(message.read().decode("latin-1"))
                    groups[match["part"]].append(match["group"])
    return texts, groups
