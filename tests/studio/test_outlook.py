"""Expected errors and conflicts, on data with known classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from tnesi.data import Data, open_data
from tnesi.labeling.suggest import Known, settle, suggest
from tnesi.studio import first_layer, questions
from tnesi.studio.answers import View
from tnesi.studio.first_layer import FirstLayer, Settings
from tnesi.studio.learned import Learned, learn
from tnesi.studio.learner import step_between
from tnesi.studio.outlook import Naming, Step, advice, expected_error
from tnesi.studio.questions import ANY_ROW, Questions, n_parts, plan


def view_of(labels: dict[int, str]) -> View:
    return View(len(labels), labels, frozenset(), (), can_undo=bool(labels))


@pytest.fixture(scope="module")
def kinds() -> Data:
    """Counts of three clear kinds, 200 rows each."""
    rng = np.random.default_rng(0)
    means = np.ones((3, 12))
    for k in range(3):
        means[k, 4 * k : 4 * k + 4] = 10
    return open_data(rng.poisson(means.repeat(200, axis=0)), labels=np.repeat(["a", "b", "c"], 200))


@pytest.fixture(scope="module")
def layer(kinds: Data) -> FirstLayer:
    return first_layer.learn(kinds, Settings(fields=40), lambda *_: False)


def by_queue(layer: FirstLayer, truth: Any, n: int) -> dict[int, str]:
    labels: dict[int, str] = {}
    labeler = layer.labeler
    while len(labels) < n:
        asked = plan(labeler, learn(layer, view_of(dict(labels))).known(), ())
        row = asked[0].row if asked else next(row for row in range(len(truth)) if row not in labels)
        assert row not in labels
        labels[row] = str(truth[row])
    return labels


def test_clear_classes_are_found_and_said_to_be_clear(kinds: Data, layer: FirstLayer) -> None:
    learned = learn(layer, view_of(by_queue(layer, kinds.y, 12)))
    found = np.array(learned.names)[learned.best]
    assert (found == kinds.y).mean() > 0.99
    assert learned.decided > 0.95
    assert learned.estimate is not None
    assert round(learned.estimate.low, 6) <= (found != kinds.y).mean() <= learned.estimate.high
    assert learned.sizes.sum() == 600
    assert learned.find_conflicts() == []


@pytest.mark.parametrize("n", [12, 60])
def test_a_wrong_label_contradicts_its_surroundings(kinds: Data, layer: FirstLayer, n: int) -> None:
    labels = by_queue(layer, kinds.y, n)
    row = next(row for row in range(200) if row not in labels)
    learned = learn(layer, view_of({**labels, row: "b"}))
    (conflict,) = learned.find_conflicts()
    assert (conflict.row, learned.names[conflict.label], learned.names[conflict.seems]) == (row, "b", "a")


def test_unseen_classes_are_expected(kinds: Data, layer: FirstLayer) -> None:
    few = learn(layer, view_of({0: "a", 200: "b"})).estimate
    assert few is not None
    assert few.low < 1 / 3 < few.high  # those of c
    assert few.high - few.low > 0.3


def test_skipped_rows_are_not_asked_for(layer: FirstLayer) -> None:
    labeler, nothing = layer.labeler, learn(layer, view_of({})).known()
    first = [question.row for question in plan(labeler, nothing, ())]
    again = [question.row for question in plan(labeler, nothing, first)]
    assert len(first) == len(again) == 10
    assert not set(first) & set(again)


def test_what_is_asked_after_the_first_questions_is_elsewhere(layer: FirstLayer) -> None:
    """Answers may be faster than learning: parts that have an answer by then are not asked about again."""
    labeler, known = layer.labeler, learn(layer, view_of({0: "a", 200: "b"})).known()
    few, some, *_ = n_parts(600)
    typical = [one.row for one in suggest(labeler, Known.nothing(600), few, n_parts=few)]
    large, small = labeler.clusters(few).place, labeler.clusters(some).place
    first = [row for row in typical if large[row] not in large[[0, 200]]]
    asked = [question.row for question in plan(labeler, known, (), 20)]
    assert asked[: len(first)] == first
    assert len(asked) > len(first)
    assert not set(small[asked[len(first) :]]) & set(small[[0, 200, *first]])


def test_the_first_questions_do_not_wait_for_small_parts(kinds: Data) -> None:
    layer = first_layer.learn(kinds, Settings(fields=40), lambda *_: False)
    labeler = layer.labeler
    few, some, *_ = n_parts(600)
    asked = [one.row for one in plan(labeler, learn(layer, view_of({})).known(), ())]
    assert len(asked) == few
    place = labeler.clusters(few).place

    def left(labels: dict[int, str]) -> list[int]:
        """Return the questions from parts without a label."""
        return [row for row in asked if place[row] not in place[list(labels)]]

    labels: dict[int, str] = {}
    for row in asked:
        more = {**labels, row: str(kinds.y[row])}
        if len(left(more)) < 5:
            break
        labels = more
    then = plan(labeler, learn(layer, view_of(labels)).known(), ())
    assert [one.row for one in then] == left(labels)
    assert some not in labeler._clusters
    assert len(plan(labeler, learn(layer, view_of(more)).known(), ())) > len(left(more))
    assert some in labeler._clusters


@pytest.mark.parametrize("seed", range(3))
def test_a_class_inside_of_a_cluster_is_met_in_few_rows(seed: int) -> None:
    """Two of the three kinds of iris are one cluster: all parts have labels, all is clear, but a class is missing."""
    found = load_iris()
    data = open_data(found.data, labels=found.target_names[found.target])
    layer = first_layer.learn(data, Settings(seed=seed), lambda *_: False)
    assert len(set(by_queue(layer, data.y, 12).values())) == 3


def test_questions_look_for_classes_and_for_borders_in_turn(kinds: Data, layer: FirstLayer) -> None:
    labeler = layer.labeler

    def asked_for(n_labels: int, *, doubt: float) -> list[bool]:
        labels = by_queue(layer, kinds.y, n_labels)
        known = learn(layer, view_of(labels)).known()
        asked = plan(labeler, replace(known, posterior=(1 - doubt) * known.posterior + doubt / 3), ())
        rows = [one.row for one in asked]
        assert len(set(rows)) == len(rows)
        assert not set(rows) & set(labels)
        return ["without a label" in one.reason for one in asked]

    assert asked_for(12, doubt=0.5)[:6] == [True, False, False, True, True, True]  # 2, 3, 4, 0, 1, 2 of five
    assert not any(asked_for(45, doubt=0.5))
    assert all(asked_for(12, doubt=0))  # classes are clear


def test_with_many_labels_questions_are_about_smaller_parts(
    kinds: Data, layer: FirstLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = []

    def watched(*given: Any, n_parts: int, **more: Any) -> Any:
        parts.append(n_parts)
        return settle(*given, n_parts=n_parts, **more)

    monkeypatch.setattr(questions, "n_parts", lambda _: (10, 12, 15, 20))
    monkeypatch.setattr(questions, "settle", watched)
    for n in (20, 49, 50, 80):
        known = learn(layer, view_of({row: str(kinds.y[row]) for row in range(0, 600, 7)[:n]})).known()
        plan(layer.labeler, replace(known, posterior=known.posterior / 2), ())
    assert parts == [15, 15, 20, 20]


def test_questions_with_one_class_only(kinds: Data, layer: FirstLayer) -> None:
    learned = learn(layer, view_of(dict.fromkeys(range(30), "a")))
    assert learned.model is None
    labeler = layer.labeler
    asked = plan(labeler, learned.known(), ())
    assert asked
    assert all(question.classes == () for question in asked)


@pytest.mark.parametrize("n_rows", [30, 100, 190])
def test_few_rows_with_one_class_so_far(n_rows: int) -> None:
    """Questions continue when every part has a label."""
    data = open_data(np.random.default_rng(0).poisson(5.0, (n_rows, 12)), labels=["a"] * n_rows)
    layer = first_layer.learn(data, Settings(fields=12), lambda *_: False)
    labels = by_queue(layer, data.y, 20)
    assert plan(layer.labeler, learn(layer, view_of(labels)).known(), ())


def test_everything_labeled(kinds: Data, layer: FirstLayer) -> None:
    learned = learn(layer, view_of({row: str(name) for row, name in enumerate(kinds.y)}))
    assert learned.estimate is not None
    assert learned.estimate.value == 0
    questions = Questions(600)
    questions.offer(plan(layer.labeler, learned.known(), ()))
    assert questions.open_for("a", set(range(600))) is None


def test_the_queue_is_never_empty_while_there_are_rows(layer: FirstLayer) -> None:
    questions = Questions(600)
    assert questions.open_for("a", ()) is None  # before anything was prepared
    questions.offer(plan(layer.labeler, learn(layer, view_of({})).known(), ()))
    done: set[int] = set()
    while len(done) < 600:
        question = questions.open_for("a", done)
        assert question is not None
        assert question.row not in done
        done.add(question.row)
    assert questions.open_for("a", done) is None


def test_open_questions_are_given_to_others_after_a_while() -> None:
    now = [0.0]
    questions = Questions(3, _clock=lambda: now[0])
    questions.offer([question(0)])
    assert [questions.open_for(client, ()).row for client in "ab"] != [0, 0]  # type: ignore[union-attr]
    now[0] = 1000.0
    found = questions.open_for("c", ())
    assert found is not None
    assert found.row == 0
    assert questions.n_clients() == 1
    questions.give_back("c")
    assert questions.n_clients() == 0
    assert questions.open_for("c", ()) == found  # it has come back


def question(row: int) -> Any:
    from tnesi.labeling.suggest import Suggestion

    return Suggestion(row, ANY_ROW, ())


def test_parts() -> None:
    assert n_parts(2) == (2, 2, 2, 2)
    assert n_parts(5) == (5, 5, 5, 5)
    assert n_parts(150) == (10, 10, 10, 10)
    assert n_parts(100_000) == (10, 50, 100, 300)


def test_more_labels_mean_a_narrower_interval() -> None:
    doubt, best, part = np.full(1000, 0.05), np.arange(1000) % 2, np.zeros(1000, int)
    naming, widths = Naming(np.ones(2), np.array([1, 0])), []
    for n in (4, 40, 400):
        label = np.full(1000, -1)
        label[:n] = np.arange(n) % 2
        estimate = expected_error(doubt, label, best, part, naming, "spreading")
        assert estimate.low < estimate.value < estimate.high
        assert estimate.value == pytest.approx(0.05)
        widths.append(estimate.high - estimate.low)
    assert widths == sorted(widths, reverse=True)


def test_classes_that_may_be_confused_raise_the_error() -> None:
    label = np.full(100, -1)
    label[:2] = 0, 1
    given = np.zeros(100), label, np.arange(100) % 2, np.zeros(100, int)
    sure = expected_error(*given, Naming(np.ones(2), np.array([1, 0])), "clusters")
    unsure = expected_error(*given, Naming(np.array([0.6, 0.6]), np.array([1, 0])), "clusters")
    assert (sure.value, unsure.value) == (0, pytest.approx(0.4))


def test_estimates_from_few_rows_are_wider() -> None:
    def width(n_rows: int) -> float:
        label = np.full(n_rows, -1)
        label[:10] = np.arange(10) % 2
        given = np.full(n_rows, 0.05), label, np.arange(n_rows) % 2, np.zeros(n_rows, int)
        found = expected_error(*given, Naming(np.ones(2), np.array([1, 0])), "clusters")
        return found.high - found.low

    widths = [width(n_rows) for n_rows in (100, 500, 2000, 60_000)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 3 * widths[-1]


def test_advice() -> None:
    assert advice(0, 0, [], None)[0] == advice(1, 0, [], None)[0] == "need_classes"
    assert advice(2, 0, [], None)[0] == "go_on"
    assert advice(2, 3, [], None) == ("look_again", "3 labels contradict their surroundings: look again.")
    known = [Step(True, 0.0001)] * 10
    assert advice(2, 0, known, None)[0] == "enough"
    assert advice(2, 0, [*known, Step(False, 0.0)], None)[0] == "go_on"
    assert advice(2, 0, [Step(True, 0.01)] * 10, None)[0] == "go_on"
    assert (
        advice(0, 0, [], "'mass_g' is large") == advice(2, 0, [], "'mass_g' is large") == ("data", "'mass_g' is large.")
    )
    assert advice(2, 1, [], "'mass_g' is large")[0] == "look_again"


def test_steps(kinds: Data, layer: FirstLayer) -> None:
    def learned(labels: dict[int, str]) -> Learned:
        return learn(layer, view_of(labels))

    before = learned({0: "a", 200: "b", 400: "c"})
    assert step_between(learned({0: "a"}), before) is None
    same = step_between(before, learned({0: "a", 200: "b", 400: "c", 1: "a"}))
    assert same is not None
    assert same.expected is True
    other = step_between(before, learned({0: "a", 200: "b", 400: "c", 1: "d"}))
    assert other is not None
    assert other.expected is False
    assert other.changed > 0
