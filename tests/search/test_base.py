"""A new search needs `find` only; the other methods have defaults that suit a search that keeps nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tnesi.execution.local import LocalEngine
from tnesi.model.activities import Activities
from tnesi.model.fields import Fields, Prior, draw_distinct, start_from_rows
from tnesi.model.rows import Rows, normalize, row_hashes
from tnesi.search import SEARCHES, ExactSearch, Search
from tnesi.training.em import run_em
from tnesi.training.monitor import Monitor
from tnesi.training.stepwise import Stepwise


@dataclass
class Minimal(Search):
    name = "minimal"

    def find(self, fields: Fields, rows: Rows, prior: Prior | None = None) -> Activities:
        return ExactSearch(self.truncation, self.n_threads).find(fields, rows, prior)


@pytest.fixture
def rows() -> Rows:
    counts = np.random.default_rng(0).poisson(3.0, (300, 20))
    return normalize(counts.astype(np.float32), 70)


def test_a_search_of_one_method_learns_like_the_exact_one(rows: Rows) -> None:
    start = start_from_rows(rows, None, draw_distinct(row_hashes(rows.x, 0, 1), None)[:15])
    learned = []
    for search in (Minimal(4, 1), ExactSearch(4, 1)):
        engine = LocalEngine.of(rows, None, 1)
        fields = run_em(engine, search.arrange(start), search, Monitor(tol=0), max_iter=5)
        search.prepare(fields, engine.activities.ids, engine.activities.log_sum)
        stream = Stepwise.of(fields, search.restored(fields), rows.row_sum, engine.activities.mass(15, None), 1.0)
        stream.learn(rows, None, None, 1)
        learned.append(stream.fields.w)
    np.testing.assert_array_equal(learned[0], learned[1])


def test_names_are_those_of_records_and_model_files() -> None:
    assert {name: kind.name for name, kind in SEARCHES.items()} == {name: name for name in SEARCHES}
    with pytest.raises(TypeError, match="abstract"):
        Search(4, 1)  # type: ignore[abstract]
