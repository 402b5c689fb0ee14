"""The report of a run folder: a self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from tnesi.paper.run_folder import RunFolder
from tnesi.paper.summary import summarize
from tnesi.report import words
from tnesi.report.figures.canvas import variables
from tnesi.report.parts import FigureWriter, Section, Table
from tnesi.report.sections import labels_sections, likelihood_sections, table_sections, weights_sections
from tnesi.report.text import write_tables
from tnesi.system.files import replacing

Row = dict[str, Any]


def write_report(folder: RunFolder, output: Path | None = None) -> Path:
    """Write the page, its figures as PNG files in ``figures``, and its tables as ``summary.md`` and ``summary.csv``.

    Parameters
    ----------
    folder : RunFolder
        A reproduction, finished or not.
    output : path, optional
        File for the page; by default ``report.html`` in the folder.

    Returns
    -------
    path : Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from tnesi.paper import read_protocol, reproduce
    >>> folder = reproduce(read_protocol("digits-table", runs=1, quick=True), tempfile.mkdtemp())
    >>> write_report(folder).name
    'report.html'
    """
    page = render(_contents(folder))
    write_tables(folder)
    path = folder.path / "report.html" if output is None else Path(output)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return path


def render(contents: Row) -> str:
    """Render the page; `contents` has title, subtitle, banners, notes, quick, summary, sections, and name or footer."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("the report page needs jinja2: pip install 'tnesi[plot]'") from error
    environment = Environment(
        loader=PackageLoader("tnesi.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html.jinja").render(**contents, light=variables(False), dark=variables(True))


def _contents(folder: RunFolder) -> Row:
    configuration, rows = folder.configuration, summarize(folder)
    figures = FigureWriter(folder.path / "figures")
    kind = configuration["kind"]
    if kind == "table":
        summary = words.summary_of_table(configuration, folder.records, rows)
        sections = table_sections(folder, rows, figures)
    elif kind == "labels":
        summary = words.summary_of_labels(configuration, folder.records, rows)
        sections = labels_sections(folder, rows, figures)
    elif kind == "likelihood":
        summary = words.summary_of_likelihood(rows)
        sections = likelihood_sections(folder, figures)
    else:
        summary = words.summary_of_weights(configuration, folder.records)
        sections = weights_sections(folder, figures)
    sections += [*_times(configuration, folder.records), _conditions(configuration)]
    of_paper = f"{configuration['reference']} of the paper, reproduced" if configuration.get("reference") else ""
    return {
        "title": configuration["title"],
        "subtitle": " · ".join(text for text in (of_paper, words.measured(configuration)) if text),
        "banners": words.banners(configuration, folder.records),
        "notes": configuration.get("notes", []),
        "quick": bool(configuration.get("quick")),
        "summary": summary,
        "sections": sections,
        "name": configuration["name"],
    }


_SHARED = ("first layer", "both layers")
"""Parts of the time that the runs of a mixture share."""


def _times(configuration: Row, records: list[Row]) -> list[Section]:
    """Return a table of run times. Runs share the first layer of their mixture, which is counted once."""
    network = next((method["name"] for method in configuration.get("methods", ())), "")
    spent: dict[tuple[str, str, str], dict[Any, float]] = {}
    for i, record in enumerate(records):
        for part, seconds in record.get("seconds", {}).items():
            once = (record.get("seed"), seconds) if part in _SHARED else i
            shared = configuration["kind"] == "labels" and part == "first layer"
            method = "all" if shared else record.get("method", network)
            key = words.title_of(configuration, record["task"]), method, part
            spent.setdefault(key, {})[once] = seconds
    for record in records:
        if record.get("curve"):
            key = configuration["tasks"][0]["title"], f"C' = {record['truncation']}", "first layer"
            spent.setdefault(key, {})[record["seed"]] = record["curve"][-1]["seconds"]
    if not spent:
        return []
    cells = [
        [task, method, part, f"{len(times):,}", f"{fmean(times.values()):,.2f}", f"{sum(times.values()):,.1f}"]
        for (task, method, part), times in spent.items()
    ]
    columns = ["task", "network", "part", "count", "mean seconds", "total seconds"]
    text = ""
    if any("first layer" in record.get("seconds", {}) for record in records):
        text = "The first layer is learned once per mixture; its time includes the activities of the test rows."
    return [Section("Time", [Table("Time by part", columns, cells, heads=3)], text, results=False)]


def _conditions(configuration: Row) -> Section:
    """Return the protocol, the machine and the versions."""
    sizes, data = configuration.get("sizes", {}), configuration.get("data", {})
    of_data = {
        f"data: {task['title']}": f"{data.get(task['name'], '')}, {sizes[task['name']][0]:,} training rows, "
        f"{sizes[task['name']][1]:,} test rows"
        for task in configuration["tasks"]
        if task["name"] in sizes
    }
    methods = {
        m["name"]: ", ".join([f"preset {m['preset']}", *(f"{k} {v}" for k, v in m.get("parameters", {}).items())])
        for m in configuration.get("methods", ())
    }
    protocol: Row = {
        **of_data,
        **{f"network: {name}": preset for name, preset in methods.items()},
        "solver": words.SOLVERS.get(configuration.get("solver", ""), configuration.get("solver")),
        **configuration.get("parameters", {}),
        "rows used in training": configuration.get("train_rows"),
        "labels per class": _listed(configuration.get("labels_per_class")),
        "degrees of truncation C'": _listed(configuration.get("truncations")),
        "runs of each setting": _runs(configuration),
        "seeds": _listed(configuration.get("seeds")),
    }
    return Section(
        "How it was measured",
        [
            Table("Protocol", [], _lines(protocol), words=True),
            Table("Machine and versions", [], _lines(configuration.get("machine", {})), words=True),
        ],
        results=False,
    )


def _runs(configuration: Row) -> str | None:
    runs, factor = configuration.get("runs"), configuration.get("one_label_factor", 1)
    if not isinstance(runs, int) or not isinstance(factor, int) or factor == 1:
        return runs
    return f"{runs} ({factor * runs} with one label per class)"


def _listed(values: list[object] | None) -> str | None:
    return ", ".join(map(str, values)) if values else None


def _lines(values: Row) -> list[list[str]]:
    return [[str(key).replace("_", " "), str(value)] for key, value in values.items() if value not in (None, "")]
