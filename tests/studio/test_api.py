"""The HTTP API of the page."""

from __future__ import annotations

import io
import json
import socket
import threading
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tnesi.labeling.suggest import Suggestion


def label_some(page: Any, n: int = 12) -> Any:
    """Answer the queue's questions correctly; return the state when they are learned."""
    truth, question = page.session.data.y, page.get("/api/state?client=a")["question"]
    for _ in range(n):
        question = page.answer(question["row"], str(truth[question["row"]]))["question"]
    return page.learned()


def test_the_state_before_any_answer(page: Any) -> None:
    state = page.get("/api/state?client=a")
    assert (state["phase"], state["classes"], state["error_estimate"]) == ("ready", [], None)
    assert state["answers"] == {"labels": 0, "skips": 0, "total": 0, "last": 0, "can_undo": False, "learned": 0}
    assert state["advice"]["kind"] == "need_classes"
    assert state["data"]["kind"] == "image"
    assert "without a label" in state["question"]["reason"]
    assert len(json.dumps(state)) < 50_000


def test_answers_raise_the_share_decided(page: Any, waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, publish = [0], page.session.publish_plan

    def heard(questions: Any) -> None:
        publish(questions)
        planned.append(page.session.learned.answer)

    def answered(n: int) -> Any:
        """Answer at a person's pace: whoever is faster than the planner gets random rows."""
        for _ in range(n):
            state = label_some(page, 1)
            last = state["answers"]["last"]
            waiting(lambda last=last: planned[-1] >= last)
        return state

    monkeypatch.setattr(page.session, "publish_plan", heard)
    one = answered(1)
    assert one["advice"]["kind"] == "need_classes"  # one class is not enough
    few = answered(2)
    many = answered(17)
    assert many["decided"] > few["decided"]  # over 21 seeds by 0.65 +- 0.18, at least 0.36
    assert many["answers"]["labels"] == 20
    before, estimate = few["error_estimate"], many["error_estimate"]
    assert 0 <= estimate["low"] < estimate["value"] < estimate["high"] < before["high"]  # by 0.49 +- 0.11
    assert estimate["value"] < before["value"]  # by 0.48 +- 0.12
    assert sum(one["rows"] for one in many["classes"]) == many["data"]["rows"]
    assert [one["color"] for one in many["classes"]] == list(range(len(many["classes"])))
    assert all(one["key"] == one["name"] for one in many["classes"])
    assert [point["labels"] for point in many["history"]] == sorted(point["labels"] for point in many["history"])


def test_questions_are_asked_once_and_differ_between_clients(page: Any) -> None:
    seen: set[int] = set()
    questions = {c: page.get(f"/api/state?client={c}")["question"]["row"] for c in "abcdefghijklmno"}
    assert len(set(questions.values())) == len(questions)
    assert {c: page.get(f"/api/question?client={c}")["question"]["row"] for c in questions} == questions  # they stay
    for i in range(30):
        client = "abc"[i % 3]
        row = page.get(f"/api/question?client={client}")["question"]["row"]
        assert row not in seen
        seen.add(row)
        if i % 5 == 4:
            page.ask("POST", "/api/skips", {"client": client, "row": row})
        else:
            page.answer(row, str(page.session.data.y[row]), client)
    state = page.learned()
    assert (state["answers"]["labels"], state["answers"]["skips"]) == (24, 6)


def test_undo_repeats_questions_back_to_the_beginning(page: Any) -> None:
    first = page.get("/api/state?client=a")["question"]["row"]
    label_some(page, 4)
    for left in (3, 2, 1, 0):
        undone = page.ask("POST", "/api/undo", {"client": "a"})
        assert undone["question"]["row"] == undone["undone"]["row"]
        assert page.get("/api/state?client=a")["question"]["row"] == undone["undone"]["row"]
        assert page.get("/api/state")["answers"]["labels"] == left
    assert undone["undone"]["row"] == first
    assert page.ask("POST", "/api/undo", {"client": "a"}, 409)["error"] == "Nothing to undo"
    assert page.learned()["classes"] == []


def test_a_request_may_be_sent_again(page: Any) -> None:
    answer = page.answer(5, "x", request="r-1")
    assert page.answer(5, "x", request="r-1")["answer"] == answer["answer"]
    page.answer(6, "y")
    undone = page.ask("POST", "/api/undo", {"client": "a", "request": "r-2"})
    again = page.ask("POST", "/api/undo", {"client": "a", "request": "r-2"})
    assert again["undone"] == undone["undone"]
    assert page.session.store.view.labels == {5: "x"}


def test_relabeling_clearing_renaming(page: Any) -> None:
    label_some(page, 12)
    open_row = page.get("/api/state?client=a")["question"]["row"]
    row = next(iter(page.session.store.view.labels))
    assert page.answer(row, "new name")["question"]["row"] == open_row
    assert page.get(f"/api/rows/{row}")["label"] == "new name"
    assert [one["kind"] for one in page.get(f"/api/rows/{row}")["history"]] == ["label", "label"]
    page.ask("POST", "/api/classes/rename", {"client": "b", "old": "new name", "new": "7"})
    assert page.get(f"/api/rows/{row}")["label"] == "7"
    page.ask("DELETE", f"/api/answers/{row}?client=a")
    assert page.get(f"/api/rows/{row}")["label"] is None
    assert "no label" in page.ask("DELETE", f"/api/answers/{row}?client=a", status=409)["error"]
    page.ask("POST", "/api/classes/rename", {"client": "b", "old": "nobody", "new": "7"}, 409)


def test_the_map(page: Any) -> None:
    before = page.get("/api/map")
    places = {(cell["x"], cell["y"]) for cell in before["cells"]}
    assert len(places) == len(before["cells"]) <= before["columns"] * before["rows"]
    assert {cell["class"] for cell in before["cells"]} == {-1}
    sheet = Image.open(io.BytesIO(page.get(before["sheet"]).content))
    assert sheet.size == (before["sheet_columns"] * before["tile"][1], before["rows"] * before["tile"][0])
    label_some(page, 20)
    after = page.get("/api/map/classes")
    assert after["version"] == before["version"]
    assert len(after["class"]) == len(after["certainty"]) == len(before["cells"])
    assert set(after["class"]) <= set(range(len(after["classes"])))
    cell = before["cells"][0]
    field = page.get(f"/api/fields/{cell['field']}")
    assert field["class"] == after["classes"][after["class"][0]]
    activities = [row["activity"] for row in field["rows"]]
    assert 0 < len(activities) <= 24
    assert activities == sorted(activities, reverse=True)
    assert cell["field"] not in field["neighbors"]


def test_like_fields_are_near_on_the_map(page: Any) -> None:
    shown = page.session.map
    w = page.session.layer.fields(shown.fields)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    near = np.abs(shown.x[:, None] - shown.x) + np.abs(shown.y[:, None] - shown.y) == 1
    alike = w @ w.T
    assert alike[near].mean() > alike[~near].mean() + 0.08


def test_the_gallery(page: Any) -> None:
    assert page.get("/api/gallery?limit=2")["rows"][0] == {
        "row": 0, "file": None, "label": None, "predicted": None, "probability": None, "margin": None,
    }  # fmt: skip
    assert page.get("/api/gallery?class=3")["total"] == 0
    name = label_some(page, 20)["classes"][0]["name"]
    sure = page.get(f"/api/gallery?class={name}&order=certain&limit=200")["rows"]
    unsure = page.get(f"/api/gallery?class={name}&order=uncertain&limit=200")["rows"]
    assert {row["predicted"] for row in sure + unsure} == {name}
    assert [row["margin"] for row in sure] == sorted((row["margin"] for row in sure), reverse=True)
    assert [row["margin"] for row in unsure] == sorted(row["margin"] for row in unsure)
    labeled = page.get("/api/gallery?labeled=1")
    assert labeled["total"] == 20
    of_class = page.get(f"/api/gallery?labeled=1&class={name}&order=certain")
    assert {row["label"] for row in of_class["rows"]} == {name}
    everything = page.get("/api/gallery?offset=1390")
    assert (everything["total"], len(everything["rows"])) == (1397, 7)


def test_pictures(page: Any) -> None:
    sheet = Image.open(io.BytesIO(page.get("/api/pictures/rows.png?rows=" + ",".join(map(str, range(20)))).content))
    assert sheet.size == (16 * 8, 2 * 8)
    tile = 255 - np.asarray(sheet)[:8, 8:16]
    np.testing.assert_allclose(
        tile / tile.max(), page.session.data.X[1].reshape(8, 8) / page.session.data.X[1].max(), atol=0.01
    )
    assert Image.open(io.BytesIO(page.get("/api/pictures/row/3.png?size=280").content)).size == (280, 280)
    page.get("/api/pictures/rows.png?rows=5000", 404)
    page.get("/api/pictures/rows.png?rows=1,,2", 422)
    page.get("/api/pictures/rows.png?rows=" + ",".join(["1"] * 201), 422)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"client": "a", "row": 1}, 422),
        ({"client": "a", "row": 1, "label": ""}, 422),
        ({"client": "a", "row": 1, "label": "  "}, 422),
        ({"client": "a", "row": 1, "label": "NA"}, 422),
        ({"client": "a", "row": 1, "label": 4}, 422),
        ({"client": "a", "row": -1, "label": "x"}, 422),
        ({"client": "a", "row": True, "label": "x"}, 422),
        ({"client": "a", "row": 5000, "label": "x"}, 404),
        ({"client": "", "row": 1, "label": "x"}, 422),
        ({"client": "a/b", "row": 1, "label": "x"}, 422),
        ({"client": "a", "row": 1, "label": "x", "more": 1}, 422),
        ([], 422),
        ("x", 422),
    ],
)  # fmt: skip
def test_invalid_answers(shared_page: Any, body: Any, status: int) -> None:
    assert shared_page.ask("POST", "/api/answers", body, status)["error"]
    assert shared_page.session.store.view.last == 0


def test_bodies_that_are_not_json(shared_page: Any) -> None:
    page = shared_page
    headers = {
        "Authorization": f"Bearer {page.policy.token}",
        "Origin": page.origin,
        "Content-Type": "application/json",
    }
    for body in (b"", b"{", b"\xff", b"[" * 10_000, b"NaN"):
        assert page.send("POST", "/api/answers", body, headers).status == 400
    assert page.send("POST", "/api/answers", b"{}", {**headers, "Content-Type": "text/plain"}).status == 415


def test_events_report_changes(page: Any) -> None:
    with socket.create_connection(("127.0.0.1", page.policy.port), timeout=30) as raw:
        raw.sendall(
            f"GET /api/events?client=b HTTP/1.1\r\nHost: 127.0.0.1:{page.policy.port}\r\n"
            f"Authorization: Bearer {page.policy.token}\r\n\r\n".encode()
        )
        stream = raw.makefile("rb")

        def next_state() -> Any:
            while not (line := stream.readline()).startswith(b"data:"):
                assert line
            return json.loads(line[5:])

        state = next_state()
        assert state["answers"]["last"] == 0
        threading.Timer(0.2, page.answer, (3, "x")).start()
        while state["answers"]["last"] == 0:
            state = next_state()
        assert [one["name"] for one in state["classes"]] == ["x"]


def test_twenty_clients_at_once_lose_nothing(page: Any) -> None:
    truth, given = page.session.data.y, {}

    def label(client: str) -> None:
        question = page.get(f"/api/state?client={client}")["question"]
        for _ in range(10):
            row = question["row"]
            question = page.answer(row, str(truth[row]), client)["question"]
            given.setdefault(row, []).append(client)

    threads = [threading.Thread(target=label, args=(f"c{i}",)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, given.values())) == 200
    assert page.session.store.view.last == 200
    assert page.session.store.view.labels == {row: str(truth[row]) for row in given}
    assert page.learned()["answers"]["learned"] == 200


def test_a_damaged_history_of_learning_is_left_out(sessions: Any, page: Any) -> None:
    before = label_some(page, 15)
    for number, text in enumerate(("", "{", "[1]", '{"answer": 3}', "nonsense")):
        page.session.store.keep_point(number, text)
    page.session.close()
    after = sessions().state("a")
    assert after["classes"] == before["classes"]
    assert [point for point in before["history"] if point["answer"] > 4] == after["history"]


def test_a_restart_resumes(sessions: Any, page: Any) -> None:
    before = label_some(page, 15)
    page.session.close()
    session = sessions()
    after = session.state("a")
    assert session.data is not None
    for name in ("classes", "decided", "error_estimate", "history"):
        assert after[name] == before[name], name
    assert after["question"]["row"] not in session.store.view.labels


def test_undoing_a_relabel_leaves_the_question_open(page: Any) -> None:
    """The row has a label again: there is nothing to ask."""
    page.answer(7, "one")
    page.answer(7, "two")
    question = page.get("/api/state?client=a")["question"]
    other = next(row for row in range(50, 60) if row != question["row"])
    page.session.questions.offer([Suggestion(other, "better than what is open", ())])
    taken = page.ask("POST", "/api/undo", {"client": "a"})
    assert taken["undone"] == {"row": 7, "label": "two", "old": None, "kind": "label", "now": "one"}
    assert taken["question"]["row"] == question["row"]
    assert page.ask("POST", "/api/undo", {"client": "a"})["question"]["row"] == 7
