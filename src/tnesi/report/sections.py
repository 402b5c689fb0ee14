"""The sections of a report, by kind of reproduction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tnesi.estimators.simpletron_classifier import SimpletronClassifier
from tnesi.model_file import ModelFileError, load, read_header
from tnesi.paper.run_folder import RunFolder
from tnesi.report import words
from tnesi.report.examples import sheets
from tnesi.report.fields import plot_fields, plot_rows
from tnesi.report.figures.canvas import Picture
from tnesi.report.figures.comparison import bar_pictures, scatter_pictures
from tnesi.report.figures.confusion import mean_confusion, plot_confusion, worst_pairs
from tnesi.report.figures.errors import error_by_labels, error_by_method
from tnesi.report.figures.likelihood import likelihood_pictures
from tnesi.report.labels import second_layer_lines
from tnesi.report.parts import Examples, FigureWriter, Gallery, Section, Shown, Table
from tnesi.report.text import TextTable, text_tables

Row = dict[str, Any]

FEW_RUNS = 5


def table_sections(folder: RunFolder, rows: list[Row], figures: FigureWriter) -> list[Section]:
    """Return a section per task with errors, confusions and examples, after a comparison with other methods."""
    configuration = folder.configuration
    sections = [_comparison(rows, figures)] if configuration["name"] == "mnist-comparison" else []
    for task, table in zip(configuration["tasks"], text_tables(folder), strict=True):
        name, title = task["name"], task["title"]
        mine = [row for row in rows if row["task"] == name]
        records = [record for record in folder.records if record["task"] == name]
        section = Section(title, [_errors(configuration, table, mine)])
        sections.append(section)
        if not mine:
            continue
        section.parts.append(Gallery("", [figures.vector(error_by_labels(name, title, mine, records))]))
        settings = _selected_settings(mine)
        section.parts.extend(_confusions(name, settings, records, figures))
        section.parts.append(_examples(folder, name, settings, figures))
    return sections


def _errors(configuration: Row, table: TextTable, rows: list[Row]) -> Table:
    columns, cells = list(table.columns), [list(row) for row in table.rows]
    if any(row["paper"] and row["comparable"] for row in rows):
        columns.append("ours is")
        for row, texts in zip(rows, cells, strict=True):
            texts.append(words.verdict(row))
    note = "Lower is better."
    if len(columns) > len(table.columns):
        note += (
            " The difference is ours minus the paper's mean in units of the joint standard error: "
            f"up to ±{words.CLEAR:g} there is no clear difference."
        )
        if any(row["ours"]["runs"] < FEW_RUNS for row in rows if row["paper"]):
            note += f" Standard errors of fewer than {FEW_RUNS} runs are rough."
    return Table("Test error", columns, cells, heads=2, note=note)


def _selected_settings(rows: list[Row]) -> list[Row]:
    """Return each method's settings with the fewest labels, a middle number, and the most."""
    found = []
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        found += [mine[i] for i in sorted({0, (len(mine) - 1) // 2, len(mine) - 1})]
    return found


def _title(row: Row) -> str:
    return f"{row['method']}, {row['n_labels']:,} label" + ("" if row["n_labels"] == 1 else "s")


def _confusions(task: str, settings: list[Row], records: list[Row], figures: FigureWriter) -> list[Gallery | Table]:
    shown, pairs = [], []
    for row in settings:
        runs = [r for r in records if (r["method"], r["labels_per_class"]) == (row["method"], row["labels_per_class"])]
        share, classes = mean_confusion(runs), runs[0]["classes"]
        name = f"confusion-{task}-{row['method']}-{row['labels_per_class']}"
        shown.append(figures.vector(plot_confusion(name, share, classes, _title(row))))
        worst = [
            f"{true}\u00a0→\u00a0{taken}\u00a0({value:.1f}\u00a0%)"
            for true, taken, value in worst_pairs(share, classes)
        ]
        pairs.append([_title(row), ", ".join(worst) or "none"])
    text = (
        "Percent of each true class (row) predicted as each class (column), mean over the runs. Correct predictions "
        "are on the diagonal; mistakes have their own color scale, stretched so that rare ones are visible."
    )
    columns = ["network and labels", "true → predicted"]
    worst_table = Table("Most frequent mistakes", columns, pairs, words=True)
    return [Gallery("Confusion matrices", shown, text, large=False), worst_table]


def _examples(folder: RunFolder, task: str, settings: list[Row], figures: FigureWriter) -> Examples:
    found = []
    for row in settings:
        name = f"examples-{task}-{row['method']}-{row['labels_per_class']}"
        of_setting = sheets(folder, name)
        for sheet in of_setting:
            titles = [f"{e.truth} → {e.predicted}  {e.margin:.2f}" for e in sheet.examples]
            figure = plot_rows(sheet.rows, shape=sheet.shape, titles=titles)
            figures.save(Picture(f"{name}-{sheet.kind}", figure, sheet.title))
        if of_setting:
            found.append((_title(row), of_setting))
    return Examples("Examples of the test rows", found)


def _comparison(rows: list[Row], figures: FigureWriter) -> Section:
    figure_5 = Gallery(
        "By number of training labels",
        [figures.vector(picture) for picture in bar_pictures(rows)],
        "The paper's Figure 5, test error in percent. On the right: additional labels that a method used "
        "to choose its parameters. The networks of this family (in color) use at most 10 per class, which are among "
        "their training labels.",
    )
    figure_6 = Gallery(
        "By training labels, and by all labels",
        [figures.vector(picture) for picture in scatter_pictures(rows)],
        "The paper's Figure 6, with low errors at the bottom. Both axes are logarithmic.",
    )
    return Section("Comparison with other methods", [figure_5, figure_6])


def labels_sections(folder: RunFolder, rows: list[Row], figures: FigureWriter) -> list[Section]:
    errors, *others = text_tables(folder)
    note = (
        "Lower is better. All methods share mixtures and labels; self-labeling runs after EM, not the published "
        "online rule. The last column is the error of auto minus that of the best other method, in points."
    )
    parts: list[Table | Gallery | Examples] = [Table(errors.title, errors.columns, errors.rows, heads=2, note=note)]
    if rows:
        titles = {task["name"]: task["title"] for task in folder.configuration["tasks"]}
        parts.insert(0, Gallery("", [figures.vector(error_by_method(titles, rows))]))
    for table in others:
        note = "Calibration error: expected, 15 bins of equal width, test rows. Seconds: of the second layer."
        parts.append(Table(table.title, table.columns, table.rows, heads=2, note=note))
    return [Section("Error by method", parts)]


def likelihood_sections(folder: RunFolder, figures: FigureWriter) -> list[Section]:
    configuration = folder.configuration
    pictures = likelihood_pictures(folder.records, configuration["truncations"])
    (table,) = text_tables(folder)
    parts: list[Table | Gallery | Examples] = [Table("After the last iteration", table.columns, table.rows)]
    if pictures:
        text = "By C', the number of fields that explain a row. Thin lines are single seeds, thick ones their mean."
        parts.insert(0, Gallery("", [figures.vector(picture) for picture in pictures], text))
    return [Section("Learning of the first layer", parts)]


def weights_sections(folder: RunFolder, figures: FigureWriter) -> list[Section]:
    configuration = folder.configuration
    (table,) = text_tables(folder)
    sections = []
    for record in folder.records:
        shown, text = _fields(folder.path, record, configuration.get("n_fields", 100), figures)
        title = words.title_of(configuration, record["task"])
        sections.append(Section(title, [Gallery("", [shown], text)] if shown else [], "" if shown else text))
    sections.append(Section("Models", [Table("Models in the run folder", table.columns, table.rows, words=True)]))
    return sections


def _fields(path: Path, record: Row, n_fields: int, figures: FigureWriter) -> tuple[Shown | None, str]:
    """Return the picture of a saved model and how its classes were learned, or why there is no picture."""
    file = path / record["model"]
    if file.resolve().parent != path.resolve():
        return None, f"The model {record['model']} is not in the run folder."
    try:
        model, shape = load(file), read_header(file).image_shape
    except (OSError, ModelFileError) as error:
        return None, f"The model cannot be shown: {error}"
    figure = plot_fields(model, shape=shape, n_fields=n_fields, n_columns=10)
    mixtures = model.mixtures_ if isinstance(model, SimpletronClassifier) else [model]
    n_components = sum(mixture.n_components_ for mixture in mixtures)
    several = f" of {len(mixtures)} mixtures" if len(mixtures) > 1 else ""
    caption = f"{min(n_fields, n_components):,} of {n_components:,} fields{several}."
    text = " ".join(second_layer_lines(model)) if isinstance(model, SimpletronClassifier) else ""
    alt = f"{caption} Each is an image next to a column of its classes."
    return figures.bitmap(Picture(f"fields-{record['task']}", figure, alt, caption, wide=True)), text
