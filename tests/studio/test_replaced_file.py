"""A project file that is removed, replaced or overwritten while open accepts no more answers and loses none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tnesi.studio.store import DiskError, Store

Stores = Callable[..., Store]


@pytest.mark.parametrize("content", [b"", b"nonsense" * 1000])
def test_a_file_that_was_overwritten_keeps_no_answers(stores: Stores, content: bytes) -> None:
    store = stores()
    store.label(1, "cat").result()
    store.path.write_bytes(content)
    with pytest.raises(DiskError, match="was removed or replaced"):
        store.label(2, "dog").result()
    assert store.view.labels == {1: "cat"}


def test_a_file_that_was_copied_over_is_noticed_whatever_its_size(stores: Stores) -> None:
    store = stores()
    store.label(1, "cat").result()
    backup = store.path.read_bytes()
    store.label(2, "cat").result()
    assert len(store.path.read_bytes()) == len(backup)
    store.path.write_bytes(backup)
    with pytest.raises(DiskError, match="was removed or replaced"):
        store.label(3, "dog").result()
    assert store.view.labels == {1: "cat", 2: "cat"}


def test_a_file_is_in_place_while_it_is_written(stores: Stores) -> None:
    store = stores()
    writing = threading.Thread(target=lambda: store.keep_model(bytes(20_000_000), ""))
    writing.start()
    while writing.is_alive():
        assert store.in_place()
    writing.join()


def test_a_file_replaced_during_a_write_is_not_written_again(stores: Stores, tmp_path: Path) -> None:
    store = stores()
    store.label(1, "cat").result()
    (tmp_path / "other.sqlite").write_bytes(store.path.read_bytes())
    store._do(lambda: (tmp_path / "other.sqlite").replace(store.path)).result()
    assert not store.in_place()
    for _ in range(3):
        with pytest.raises(DiskError, match="was removed or replaced"):
            store.label(2, "dog").result()
    assert store.view.labels == {1: "cat"}


@pytest.mark.parametrize("replaced", [False, True])
def test_a_removed_file_accepts_no_answers(stores: Stores, tmp_path: Path, replaced: bool) -> None:
    store = stores()
    store.label(1, "cat").result()
    store.path.rename(tmp_path / "elsewhere.sqlite")
    if replaced:
        store.path.write_bytes(b"")
    with pytest.raises(DiskError, match=r"was removed or replaced.*--labels"):
        store.label(2, "dog").result()
    assert store.view.labels == {1: "cat"}
    store.path.unlink(missing_ok=True)
    (tmp_path / "elsewhere.sqlite").rename(store.path)
    store.label(2, "dog").result()
    assert store.view.labels == {1: "cat", 2: "dog"}


def test_a_backup_that_was_put_back_is_not_harmed_by_what_came_after_it(stores: Stores, tmp_path: Path) -> None:
    store = stores()
    for row in range(50):
        store.label(row, "cat").result()
    backup = store.path.read_bytes()
    for row in [*range(100)] * 5:
        store.label(row, "dog with a long name").result()
    (tmp_path / "backup.sqlite").write_bytes(backup)
    (tmp_path / "backup.sqlite").replace(store.path)
    store.close()
    assert stores().view.labels == dict.fromkeys(range(50), "cat")
