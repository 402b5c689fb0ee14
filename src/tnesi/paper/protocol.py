"""Protocols of reproductions, read from TOML files in the package."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from typing import Any, Literal, TypeVar

from tnesi.errors import InvalidParameterError
from tnesi.training.rules import PASSES

MOST_RUNS = 10_000
Labels = int | Literal["all"]
Solver = Literal["em", "hebbian", "hebbian-partial"]
NOT_TRUNCATED = ("ff_nesi", "ff_plus_nesi", "r_nesi", "r_plus_nesi")
SOLVERS: tuple[Solver, ...] = ("em", "hebbian", "hebbian-partial")

TARGETS = {
    "mnist-table": "Table I: MNIST, test error by number of labels",
    "mnist-likelihood": "Figure 4: likelihood over the iterations by degree of truncation",
    "mnist-weights": "Figure 3: learned fields with their classes, one label per class",
    "mnist-comparison": "Figures 5 and 6: our results among those of other methods",
    "nist-table": "Table II: NIST SD19 (or EMNIST) digits and letters",
    "nist-weights": "Figure 7: learned fields of digits and letters",
    "label-methods": "not in the paper: ways of learning from the labels, compared on several data sets",
    "one-label": "not in the paper: MNIST with one label per class, many draws, and committees",
    "digits-table": "not in the paper: the table for scikit-learn's 8 x 8 digits, in seconds",
}


@dataclass(frozen=True)
class Task:
    """A data set to learn: the first one of `data` that is on this machine.

    `variant` names a variant of it (see `vary`), `noise` is the share of wrong labels, and `labels_per_class`
    overrides that of the protocol.
    """

    name: str
    title: str
    data: tuple[str, ...]
    variant: str = ""
    noise: float = 0.0
    labels_per_class: tuple[Labels, ...] = ()


@dataclass(frozen=True)
class Method:
    """A network of the family, by the name of its preset.

    `paper` is its name in the paper if that differs. `parameters` override those of the preset, and `runs` those of the
    protocol.
    """

    name: str
    preset: str
    runs: int | None = None
    paper: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


_Named = TypeVar("_Named", Task, Method)


@dataclass(frozen=True)
class Protocol:
    """Protocol of a reproduction.

    Attributes
    ----------
    runs : int
        Runs of each setting; `one_label_factor` times as many with one label per class, for which the published
        rule makes `one_label_iterations` passes.
    label_sets : int
        Runs that share a mixture, except with one label per class (`one_label_factor`) or with all labels (one).
    paper : str
        File in this package with the paper's values, for comparison.
    parameters : dict
        Parameters of the networks, which override those of the preset.
    hebbian : dict
        Parameters for the published online rule only.
    max_passes : int or None
        Fewer passes of the online rule than published.
    train_rows : int or None
        Use only the first rows, for a quick look.
    fetch : bool
        Whether data sets that are not on this machine are downloaded; else their tasks are left out.
    """

    name: str
    title: str
    kind: Literal["table", "labels", "likelihood", "weights"]
    reference: str
    tasks: tuple[Task, ...]
    runs: int
    methods: tuple[Method, ...] = ()
    paper: str = ""
    same_runs_as: str = ""
    labels_per_class: tuple[Labels, ...] = ()
    label_sets: int = 1
    one_label_factor: int = 1
    one_label_iterations: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    hebbian: dict[str, Any] = field(default_factory=dict)
    max_passes: int | None = None
    train_rows: int | None = None
    fetch: bool = True
    quick: bool = False
    solver: Solver = "em"
    seeds: tuple[int, ...] | None = None
    n_fields: int = 100
    truncations: tuple[Labels, ...] = ()
    iterations: int = 0
    evaluate_at: tuple[int, ...] = ()
    sample_rows: int = 0

    def seed_of(self, run: int, labels: Labels = "all") -> int:
        """Return the seed of the mixture of a run; runs with one label share some mixtures.

        If there are `seeds`, they are used in turn.
        """
        place = run // self.runs_per_mixture(labels)
        return place if self.seeds is None else self.seeds[place % len(self.seeds)]

    def runs_per_mixture(self, labels: Labels) -> int:
        """Return the number of label sets that share a mixture."""
        return self.one_label_factor if labels == 1 else 1 if labels == "all" else self.label_sets

    def passes(self, labels: Labels) -> int:
        """Return the passes of the online rule over the data."""
        usual = int(self.parameters.get("max_iter", PASSES))
        return (self.one_label_iterations or usual) if labels == 1 else usual

    def folder_name(self, name: str = "") -> str:
        """Return the folder of this protocol, or of another one with the same settings."""
        parts = [name or self.name, *(["quick"] if self.quick else []), *([] if self.solver == "em" else [self.solver])]
        return "-".join([*parts, *([f"{self.max_passes}-passes"] if self.max_passes else [])])

    def labels_of(self, task: Task) -> tuple[Labels, ...]:
        return task.labels_per_class or self.labels_per_class

    def n_runs(self, method: Method, labels: Labels) -> int:
        return (method.runs or self.runs) * self.runs_per_mixture(labels)

    def settings(self) -> dict[str, Any]:
        """Return the settings that all runs of an experiment share."""
        shared = {"parameters": self.parameters, "solver": self.solver, "train_rows": self.train_rows}
        return shared | ({} if self.solver == "em" else {"one_label_iterations": self.one_label_iterations})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read_protocol(
    name: str,
    *,
    runs: int | None = None,
    seeds: tuple[int, ...] | None = None,
    methods: tuple[str, ...] | None = None,
    tasks: tuple[str, ...] | None = None,
    solver: Solver = "em",
    quick: bool = False,
    label_sets: int | None = None,
    passes: int | None = None,
) -> Protocol:
    """Return a protocol of the package with the requested changes.

    Parameters
    ----------
    name : str
        One of `TARGETS`.
    runs : int, optional
        Runs of each setting, for all methods.
    seeds : tuple of int, optional
        Seeds of the mixtures; the runs share them. By default every run has its own, unless the protocol says which.
    methods : tuple of str, optional
        Only these networks.
    tasks : tuple of str, optional
        Only these tasks.
    solver : {"em", "hebbian", "hebbian-partial"}
        How the networks learn; "hebbian" is the published online rule (hours), "hebbian-partial" the same with partial
        E-steps, for truncated networks.
    quick : bool
        Fewer rows, fields and runs: to see that it works, not to compare figures.
    label_sets : int, optional
        Sets of labels per mixture; with several, the standard error is that of the means of the mixtures.
    passes : int, optional
        At most so many passes of the online rule; their results go to another folder.

    Examples
    --------
    >>> read_protocol("mnist-table").parameters["row_sum"]
    900
    """
    if runs is not None and not 1 <= runs <= MOST_RUNS:
        raise InvalidParameterError(
            "{runs} is {n}", advice="use 1 to {most:,}", parameter="runs", n=runs, most=MOST_RUNS
        )
    if name not in TARGETS:
        raise InvalidParameterError(
            "unknown table or figure {name!r}",
            advice="choose one of {names}",
            parameter="target",
            name=name,
            names=", ".join(TARGETS),
        )
    text = files(__package__).joinpath("protocols", f"{name}.toml").read_text(encoding="utf-8")
    given = tomllib.loads(text)
    if changes := given.pop("quick", {}):
        given = _merged(given, changes) if quick else given
    for key in ("labels_per_class", "truncations", "evaluate_at"):
        given[key] = tuple(given.get(key, ()))
    given["tasks"] = tuple(_task(task) for task in given["tasks"])
    given["methods"] = tuple(Method(**method) for method in given.get("methods", ()))
    usual = tuple(given.pop("seeds", ())) or None
    seeds = usual if seeds is None else seeds
    protocol = Protocol(name=name, quick=quick, solver=solver, seeds=seeds, **given)
    if solver != "em":
        as_published = {m.preset: replace(m, name=m.paper or m.name) for m in protocol.methods}  # which has no prior
        parameters = {**protocol.parameters, **protocol.hebbian}
        protocol = replace(protocol, parameters=parameters, methods=tuple(as_published.values()))
    if solver == "hebbian-partial":
        truncated = tuple(method for method in protocol.methods if method.preset not in NOT_TRUNCATED)
        protocol = replace(protocol, methods=truncated)
    if runs is not None:
        every = tuple(replace(method, runs=None) for method in protocol.methods)
        protocol = replace(protocol, runs=runs, methods=every)
    em_only = any("labeling" in method.parameters for method in protocol.methods)
    if protocol.kind == "likelihood" and solver == "hebbian-partial":
        raise InvalidParameterError(
            "{name} compares exact E-steps", advice="pass hebbian as {solver}", parameter="solver", name=name
        )
    if label_sets is not None:
        protocol = replace(protocol, label_sets=label_sets)
    if passes is not None and solver != "em" and passes < max(protocol.passes("all"), protocol.passes(1)):
        shorter = {"max_iter": min(passes, protocol.passes("all"))}
        one = None if protocol.one_label_iterations is None else min(passes, protocol.one_label_iterations)
        protocol = replace(
            protocol, parameters=protocol.parameters | shorter, one_label_iterations=one, max_passes=passes
        )
    if em_only and solver != "em":
        raise InvalidParameterError("{name} supports EM only", advice="omit {solver}", parameter="solver", name=name)
    if methods is not None and protocol.methods:
        protocol = replace(protocol, methods=_chosen(name, "network", protocol.methods, methods))
    if tasks is not None:
        protocol = replace(protocol, tasks=_chosen(name, "task", protocol.tasks, tasks))
    return protocol


def _chosen(name: str, what: str, there: tuple[_Named, ...], wanted: tuple[str, ...]) -> tuple[_Named, ...]:
    known = {one.name: one for one in there}
    if unknown := [one for one in wanted if one not in known]:
        raise InvalidParameterError(f"{name} has no {what} {unknown[0]!r}", advice=f"choose one of {', '.join(known)}")
    return tuple(known[one] for one in wanted)


def _task(given: dict[str, Any]) -> Task:
    return Task(**{**given, **{key: tuple(given.get(key, ())) for key in ("data", "labels_per_class")}})


def _merged(given: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    tables = {key: {**given.get(key, {}), **changes.get(key, {})} for key in ("parameters", "hebbian")}
    methods = [{**m, "runs": None} for m in given.get("methods", ())]
    return {**given, **changes, **tables, "methods": methods}


def paper_values(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table as text; empty if there is none."""
    if name not in ("mnist-table", "nist-table", "mnist-comparison"):
        return []
    text = files(__package__).joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
