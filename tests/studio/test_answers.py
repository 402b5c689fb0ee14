"""The log of answers: the labels that follow from it, and undo."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tnesi.studio.answers import Answers, Entry, RefusedError, class_name


def test_the_last_label_of_a_row_holds_and_the_others_are_kept() -> None:
    answers = Answers()
    answers.add(Entry(1, "label", row=3, label="cat", client="a"))
    answers.add(Entry(2, "label", row=3, label="dog", client="b"))
    assert answers.view().labels == {3: "dog"}
    assert [entry.label for entry in answers.history(3)] == ["cat", "dog"]


def test_undo_takes_back_own_entries_first_then_those_of_others() -> None:
    answers = Answers()
    answers.add(Entry(1, "label", row=1, label="cat", client="a"))
    answers.add(Entry(2, "label", row=2, label="dog", client="b"))
    mine = answers.to_undo("a")
    assert mine is not None
    assert mine.id == 1
    answers.add(Entry(3, "undo", row=1, undone=1, client="a"))
    assert answers.view().labels == {2: "dog"}
    other = answers.to_undo("a")
    assert other is not None
    assert other.id == 2
    answers.add(Entry(4, "undo", row=2, undone=2, client="a"))
    assert answers.to_undo("a") is answers.to_undo("b") is None
    assert not answers.view().can_undo


def test_renaming_joins_classes_and_can_be_undone() -> None:
    answers = Answers()
    answers.add(Entry(1, "label", row=1, label="cat"))
    answers.add(Entry(2, "label", row=2, label="dog"))
    answers.add(Entry(3, "rename", label="dog", old="cat"))
    answers.add(Entry(4, "label", row=3, label="cat"))  # said after: a cat again
    assert answers.view().labels == {1: "dog", 2: "dog", 3: "cat"}
    answers.add(Entry(5, "undo", undone=3))
    assert answers.view().labels == {1: "cat", 2: "dog", 3: "cat"}


def test_a_renamed_class_keeps_its_color_and_key() -> None:
    answers = Answers()
    answers.add(Entry(1, "label", row=1, label="cat"))
    answers.add(Entry(2, "label", row=2, label="dog"))
    answers.add(Entry(3, "rename", label="puss", old="cat"))
    assert [(one.name, one.key, one.color) for one in answers.view().classes] == [("puss", "1", 0), ("dog", "2", 1)]


def test_keys() -> None:
    answers = Answers()
    for i, name in enumerate(["7", "cat", "s", "u", "x", "1", "owl"], 1):
        answers.add(Entry(i, "label", row=i, label=name))
    keys = {one.name: one.key for one in answers.view().classes}
    assert keys == {"7": "7", "cat": "1", "s": "s", "u": "u", "x": "x", "1": "2", "owl": "3"}
    answers.add(Entry(8, "undo", row=2, undone=2))
    answers.add(Entry(9, "label", row=8, label="elk"))
    elk = next(one for one in answers.view().classes if one.name == "elk")
    assert (elk.key, elk.color) == ("1", 1)


def test_undoing_renames_brings_keys_and_colors_back() -> None:
    """Keys are stable: a class that comes back gets its old key."""
    answers = Answers()
    for number, name in enumerate(["square", "circle", "triangle"], 1):
        answers.add(Entry(number, "label", row=number, label=name))
    before = answers.view().classes
    assert [one.key for one in before] == ["1", "2", "3"]
    answers.add(Entry(4, "rename", label="triangle", old="square"))
    answers.add(Entry(5, "rename", label="ring", old="triangle"))
    assert [(one.name, one.key) for one in answers.view().classes] == [("circle", "2"), ("ring", "3")]
    for number, undone in ((6, 5), (7, 4)):
        answers.add(Entry(number, "undo", undone=undone))
    assert answers.view().classes == before


ROWS, NAMES, CLIENTS = st.integers(0, 3), st.sampled_from(["a", "b", "cat"]), st.sampled_from(["x", "y"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("label"), ROWS, NAMES, CLIENTS),
        st.tuples(st.just("skip"), ROWS, st.none(), CLIENTS),
        st.tuples(st.just("clear"), ROWS, st.none(), CLIENTS),
        st.tuples(st.just("rename"), NAMES, NAMES, CLIENTS),
        st.tuples(st.just("undo"), st.none(), st.none(), CLIENTS),
    ),
    max_size=25,
)


def said(entries: list[Entry]) -> tuple[dict[int, str], set[int]]:
    """Return the labels after entries without undo, by the obvious algorithm."""
    labels: dict[int, str] = {}
    skips: set[int] = set()
    for entry in entries:
        if entry.kind == "rename":
            labels = {row: entry.label if name == entry.old else name for row, name in labels.items()}  # type: ignore[misc]
        elif entry.row is not None and entry.kind == "label":
            labels[entry.row] = str(entry.label)
        elif entry.row is not None and entry.kind == "clear":
            labels.pop(entry.row, None)
        elif entry.row is not None:
            skips.add(entry.row)
    return labels, skips - labels.keys()


@given(ACTS)
def test_the_state_is_that_of_the_entries_that_hold(acts: list[tuple[str, object, object, str]]) -> None:
    answers, undone = Answers(), set()
    for number, (kind, what, name, client) in enumerate(acts, 1):
        if kind == "rename":
            if what == name or what not in answers.view().labels.values():
                continue
            entry = Entry(number, kind, label=str(name), old=str(what), client=client)
        elif kind == "undo":
            target = answers.to_undo(client)
            if target is None:
                continue
            undone.add(target.id)
            entry = Entry(number, kind, row=target.row, undone=target.id, client=client)
        else:
            assert isinstance(what, int)
            entry = Entry(number, kind, row=what, label=None if name is None else str(name), client=client)
        answers.add(entry)
    view = answers.view()
    holding = [e for e in answers.entries.values() if e.kind != "undo" and e.id not in undone]
    assert (view.labels, set(view.skips)) == said(holding)
    assert {one.name: one.labels for one in view.classes} == {
        name: list(view.labels.values()).count(name) for name in set(view.labels.values())
    }
    colors, keys = [one.color for one in view.classes], [one.key for one in view.classes if one.key]
    assert len(set(colors)) == len(colors)
    assert len(set(keys)) == len(keys)
    assert view.can_undo == bool(holding)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a" * 101,
        "a\nb",
        "\x00",
        "NA",
        "nan",
        "-1",
        "-1.0",
        "1.0",
        "-0",
        "\ud800",
        "a\u202eb",
        "a\u200db",
        "\u200d",
        "é\u200d\u200dé",
    ],
)
def test_invalid_names_are_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        class_name(text)


@pytest.mark.parametrize("text", ["\U0001f469\u200d\U0001f52c", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"])
def test_names_may_have_joined_letters(text: str) -> None:
    assert class_name(text) == text


def test_names_are_tidied() -> None:
    assert class_name(" cafe\u0301 ") == "café"
