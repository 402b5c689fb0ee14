"""The tables of the peers benchmark, as Markdown, and the summary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from peers_cells import LOGISTIC, MOST_ECE, OURS, Cells, Gap, Outcome, Where, gap_to_best, gap_to_logistic

Record = dict[str, Any]

TITLES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "emnist-digits": "EMNIST digits",
    "emnist-letters": "EMNIST letters",
    "digits-8x8": "8 x 8 digits",
    "bbc": "BBC news, words",
    "bbc-minilm": "BBC news, MiniLM embeddings",
    "20newsgroups": "20 newsgroups",
    "iris": "iris",
    "wine": "wine",
    "breast-cancer-wisconsin": "breast cancer (Wisconsin)",
    "adult": "adult",
    "german": "german",
    "breast-cancer": "breast-cancer (Ljubljana)",
    "ionosphere": "ionosphere",
    "glass": "glass",
    "ecoli": "ecoli",
    "unequal-counts": "counts with unequal classes (made up)",
}


def page(cells: Cells, records: list[Record]) -> str:
    """Return an overview, the summary, and a table for each data set and kind of features."""
    facts = {(record["data"], record["features"]): record for record in records}
    draws = _draws(records)
    parts = [_measured_on(records), _overview(cells), summary(cells).rstrip(), "## All methods", _LEGEND]
    for data in dict.fromkeys(where.data for where in cells):
        parts.append(f"### {TITLES[data]}")
        for features in dict.fromkeys(where.features for where in cells if where.data == data):
            chosen = {where: cell for where, cell in cells.items() if where[:2] == (data, features)}
            parts += [_size(facts[data, features], draws[data, features]), _methods(chosen)]
    return "\n\n".join(parts) + "\n"


_LEGEND = (
    "Mean error in % ± standard error over the draws of labels; the best method of a column is bold. ECE: expected "
    "calibration error of the probabilities in points, in 15 bins of equal width. Time: median processor time of all "
    "threads for learning and predicting with one set of labels; *once* is for what draws share: the first layer on "
    "more than 20,000 rows, and the neighbors of all rows. Memory: the most that was in use, less what was before. "
    "Notes: ¹ learns from the test rows, too. ² knows the sizes of the classes."
)


def _measured_on(records: list[Record]) -> str:
    numbers = sorted(set(_draws(records).values()))
    draws = _count(numbers[-1], "draw") if len(numbers) == 1 else f"{numbers[0]} to {_count(numbers[-1], 'draw')}"
    processors = ", ".join(sorted({record["processor"] for record in records}))
    dates = sorted({record["date"] for record in records})
    ours, others = (
        ", ".join(sorted({str(record["commit"]) for record in records if (record["method"] == OURS) == mine}))
        for mine in (True, False)
    )
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    threads = max(record["threads"] for record in records)
    where = f"{processors}, {_count(threads, 'thread')}, {when}"
    return f"{draws} of labels; {where}; `tnesi` at commit {ours}, encoders of the others at {others}."


def _draws(records: list[Record]) -> dict[tuple[str, str], int]:
    """Return the largest number of draws on each data set and kind of features."""
    found: dict[tuple[str, str], int] = {}
    for record in records:
        key = record["data"], record["features"]
        found[key] = max(found.get(key, 0), record["draw"] + 1)
    return found


def _overview(cells: Cells) -> str:
    """Return a line for each data set and kind of features: tnesi, logistic regression and the best peer."""
    numbers = sorted({where.labels for where in cells})
    per_class = [f"{_count(n, 'label')} per class" for n in numbers]
    lines = [_row(["data", "features", *per_class]), _row(["---"] * (2 + len(numbers)))]
    for data, features in dict.fromkeys(where[:2] for where in cells):
        of_labels = [cells.get(Where(data, features, n), {}) for n in numbers]
        if any(OURS in cell for cell in of_labels):
            lines.append(_row([TITLES[data], features, *map(_compared, of_labels)]))
    said = "Error in %: `tnesi` / logistic regression / the best of all other methods and its name."
    return "\n".join([said, "", *lines])


def _compared(cell: dict[str, Outcome]) -> str:
    if OURS not in cell:
        return ""
    others = {name: outcome for name, outcome in cell.items() if name not in (OURS, LOGISTIC)}
    best = min(others, key=lambda name: others[name].error.mean, default=None)
    shown = [_number(cell[OURS])] + ([_number(cell[LOGISTIC])] if LOGISTIC in cell else ["-"])
    if all(cell[OURS].error.mean <= outcome.error.mean for outcome in cell.values()):
        shown[0] = f"**{shown[0]}**"
    return " / ".join(shown) + (f" / {_number(cell[best])} {best}{_notes(cell[best])}" if best else "")


def _size(record: Record, draws: int) -> str:
    test = "unlabeled rows are predicted" if record["transductive"] else f"{record['n_asked']:,} test rows"
    size = f"{record['n_rows']:,} rows of {record['n_features']:,} features, {test}, {_count(draws, 'draw')}"
    return f"Features: {record['features']}. {size}."


def _methods(cells: Cells) -> str:
    """Return the table of one data set and kind of features: a line for each method."""
    numbers = [where.labels for where in cells]
    shown = [n for n in MOST_ECE if n in numbers] or numbers[-1:]
    head = ["method", *map(str, numbers), *(f"ECE, {n}" for n in shown), "time", "once", "memory"]
    lines = [_row(head), _row(["---", *["---:"] * (len(head) - 1)])]
    for name in dict.fromkeys(name for cell in cells.values() for name in cell):
        of_labels = {where.labels: cell[name] for where, cell in cells.items() if name in cell}
        errors = [_error(cell, name) for cell in cells.values()]
        ece = [_ece(of_labels.get(n)) for n in shown]
        outcomes = list(of_labels.values())
        once = max(float(np.max(outcome.shared_cpu_seconds)) for outcome in outcomes)
        lines.append(
            _row(
                [
                    f"{name}{_notes(outcomes[0])}{_fewer_draws(outcomes, cells)}", *errors, *ece,
                    _seconds(float(np.median([value for outcome in outcomes for value in outcome.cpu_seconds]))),
                    _seconds(once) if once else "",
                    f"{max(max(outcome.megabytes) for outcome in outcomes):,.0f} MB",
                ]
            )
        )  # fmt: skip
    return "\n".join(lines)


def _fewer_draws(outcomes: list[Outcome], cells: Cells) -> str:
    """Return the number of draws, if other methods have had more."""
    draws = max(len(outcome.errors) for outcome in outcomes)
    most = max(len(outcome.errors) for cell in cells.values() for outcome in cell.values())
    return f" ({_count(draws, 'draw')})" if draws < most else ""


def _error(cell: dict[str, Outcome], name: str) -> str:
    if name not in cell:
        return ""
    best = min(outcome.error.mean for outcome in cell.values())
    sem = cell[name].error.sem
    text = _number(cell[name])
    text = f"**{text}**" if cell[name].error.mean <= best else text
    return text + _plus_minus(sem)


def _plus_minus(sem: float) -> str:
    return "" if np.isnan(sem) else f" ± {sem:.1f}"


def _number(outcome: Outcome) -> str:
    return f"{outcome.error.mean:.1f}"


def _ece(outcome: Outcome | None) -> str:
    return "" if outcome is None or outcome.ece is None else f"{outcome.ece:.1f}"


def _notes(outcome: Outcome) -> str:
    return "¹" * outcome.sees_test + "²" * outcome.told_sizes


def _seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 0.1 else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def _row(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"


def summary(cells: Cells) -> str:
    """Return how often tnesi is first, and where it is behind, as Markdown."""
    gaps = {where: gap for where, cell in cells.items() if (gap := gap_to_best(cell)) is not None}
    fair = {where: gap for where, cell in cells.items() if (gap := gap_to_best(cell, fair=True)) is not None}
    logistic = {where: gap for where, cell in cells.items() if (gap := gap_to_logistic(cell)) is not None}
    lines = []
    for features in (None, *dict.fromkeys(where.features for where in gaps)):
        chosen = [where for where in gaps if features in (None, where.features)]
        name = "all features" if features is None else f"{features} features"
        lines.append(f"- {_count(len(chosen), 'cell')} on {name}: {_standing(gaps, chosen)}")
        lines.append(f"  - without peers that see test rows or know class sizes: {_standing(fair, chosen)}")
    behind = {where: gap for where, gap in gaps.items() if gap.too_far}
    lines += [f"- {_count(len(behind), 'cell')} too far behind the best peer{_listed(behind)}"]
    behind = {where: gap for where, gap in fair.items() if gap.too_far}
    lines += [f"- {_count(len(behind), 'cell')} too far behind the best peer that knows no more{_listed(behind)}"]
    to_logistic = {where: gap for where, gap in logistic.items() if gap.behind > 1}
    lines += [
        f"- {_count(len(to_logistic), 'cell')} more than 1 point behind logistic regression{_listed(to_logistic)}"
    ]
    for n, most in MOST_ECE.items():
        ece = {w: cell[OURS].ece for w, cell in cells.items() if w.labels == n and OURS in cell}
        wrong = {where: value for where, value in ece.items() if value is not None and value > most}
        worst = sorted(wrong.items(), key=lambda item: -item[1])
        listed = "".join(f"\n  - {_place(where)}: {value:.1f}" for where, value in worst)
        what = f"cells with {n} labels per class have a calibration error above {most:g} points"
        lines.append(f"- {len(wrong)} of {len(ece)} {what}{listed}")
    return "\n".join(lines) + "\n"


def _standing(gaps: dict[Where, Gap], chosen: list[Where]) -> str:
    found = [gaps[where] for where in chosen if where in gaps]
    first, close = _share(gap.behind <= 0 for gap in found), _share(not gap.too_far for gap in found)
    return f"tnesi is first in {first}, and at most 1 point or one standard error behind the best peer in {close}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n:,} {what}s"


def _share(true: Iterable[bool]) -> str:
    found = list(true)
    return f"{sum(found)} ({100 * np.mean(found):.0f} %)" if found else "0"


def _listed(gaps: dict[Where, Gap]) -> str:
    worst = sorted(gaps.items(), key=lambda item: -item[1].behind)
    return "".join(
        f"\n  - {_place(where)}: {gap.behind:.1f}{_plus_minus(gap.sem)} behind {gap.peer}" for where, gap in worst
    )


def _place(where: Where) -> str:
    return f"{TITLES[where.data]}, {where.features}, {where.labels}"
