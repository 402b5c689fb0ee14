r"""Classifiers in other formats: ONNX, which many runtimes and languages can read.

The graph does what `SimpletronClassifier.predict_proba` does, in double precision: rows are normalized to a constant
sum, compared with all fields, and the best C' fields pass their shares on to the classes. The linear classes of a vote
are a matrix product and a softmax. ``pip install "tnesi[onnx]"``.

scikit-learn's own alternative for Python, `skops <https://skops.readthedocs.io>`_, needs no support from here:
``skops.io.dump(clf, "model.skops")``, and ``skops.io.load("model.skops", trusted=[...])`` with the types that
``skops.io.get_untrusted_types`` lists.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tnesi.errors import InvalidParameterError, TnesiError
from tnesi.estimators.fitted_classifier import FittedClassifier
from tnesi.model.classes import FieldClasses, normalized
from tnesi.model.classifier_model import ClassifierModel
from tnesi.model.linear_classes import LinearClasses
from tnesi.model.mixture_model import MixtureModel
from tnesi.types import Array

__all__ = ["to_onnx"]

_OPSET, _IR_VERSION = 18, 9
_SMALL = 1e-30


def to_onnx(clf: FittedClassifier) -> Any:
    """Return a fitted classifier as an ONNX model.

    Its input ``X`` is a float tensor of shape (n_samples, n_features), its outputs are ``label`` and ``probabilities``
    of shape (n_samples, n_classes). Encoders are not exported: of a pipeline, export the last step and encode the rows
    beforehand. All fields are compared with each row, whereas `predict_proba` searches among 2,048 and more fields for
    neighbors, and may miss one.

    Parameters
    ----------
    clf : SimpletronClassifier
        Fitted, with labels.

    Returns
    -------
    model : onnx.ModelProto
        Save it with ``onnx.save(model, "model.onnx")``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from tnesi import SimpletronClassifier
    >>> from tnesi.export import to_onnx
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SimpletronClassifier(random_state=0).fit(X, np.where(np.arange(len(y)) < 100, y, -1))
    >>> model = to_onnx(clf)  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(model.SerializeToString())  # doctest: +SKIP
    >>> label, probabilities = session.run(None, {"X": X.astype(np.float32)})  # doctest: +SKIP
    """
    if not isinstance(clf, FittedClassifier):
        raise InvalidParameterError(
            "{clf} is not a tnesi classifier",
            clf=type(clf).__name__,
            parameter="clf",
            advice="pass a fitted SimpletronClassifier; of a pipeline, its last step",
        )
    model = clf.settle().model_
    if model.layer is None:
        raise InvalidParameterError("the classifier has no classes yet", parameter="clf", advice="fit it with labels")
    if model.recurrent:
        raise InvalidParameterError("recurrent networks cannot be exported", parameter="clf")
    try:
        import_module("onnx")
    except ImportError:
        raise TnesiError("exporting to ONNX needs onnx", advice="pip install 'tnesi[onnx]'") from None
    return _Graph(model).model(np.asarray(model.layer.names))


class _Graph:
    """An ONNX graph in the making; methods add nodes and return the names of their results."""

    def __init__(self, model: ClassifierModel) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._model = model
        assert model.layer is not None
        self._layer = model.layer

    def model(self, names: Array) -> Any:
        from onnx import TensorProto, helper

        x, total = self._rows()
        activities = [self._activities(mixture, x, total) for mixture in self._model.mixtures]
        if self._layer.votes:
            parts = []
            for vote in self._layer.votes:
                if isinstance(vote.classes, LinearClasses):
                    t = self._linear(vote.classes, x, total)
                else:
                    t = self._of_fields(vote.classes, activities)
                parts.append(self._node("Mul", t, self._value(vote.share)))
            posterior = self._sharpened(self._node("Sum", *parts), self._layer.sharpness)
        else:
            posterior = self._of_fields(self._layer.classes, activities)
        self._node("Cast", posterior, to=TensorProto.FLOAT, output="probabilities")
        best = self._node("ArgMax", posterior, axis=1, keepdims=0)
        kinds = {"f": (TensorProto.DOUBLE, np.float64), **dict.fromkeys("iub", (TensorProto.INT64, np.int64))}
        kind, dtype = kinds.get(names.dtype.kind, (TensorProto.STRING, str))
        self._node("Gather", self._array(names.astype(dtype)), best, axis=0, output="label")
        graph = helper.make_graph(
            self._nodes,
            "tnesi",
            [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", self._model.n_features])],
            [
                helper.make_tensor_value_info("label", kind, ["n"]),
                helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", len(names)]),
            ],
            self._constants,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION, producer_name="tnesi"
        )

    def _rows(self) -> tuple[str, str]:
        """Return rows and their sums; all-zero rows become even ones."""
        from onnx import TensorProto

        given = self._node("Cast", "X", to=TensorProto.DOUBLE)
        empty = self._node("LessOrEqual", self._sum(given), self._value(0.0))
        x = self._node("Where", empty, self._value(1.0), given)
        return x, self._sum(x)

    def _activities(self, mixture: MixtureModel, x: str, total: str) -> tuple[str, str]:
        """Return the best fields of each row and their shares, both N x C'."""
        fields = mixture.fields
        log_w = fields.log_w[:, : mixture.n_features]
        scale = self._node("Div", self._value(mixture.row_sum - mixture.n_features), total)
        inputs = self._node("Mul", self._node("MatMul", x, self._wide(np.ascontiguousarray(log_w.T))), scale)
        inputs = self._node("Add", inputs, self._wide(fields.log_w_sum[None]))
        k = self._array(np.array([min(mixture.truncation, mixture.n_fields)], np.int64))
        values, found = self._nodes_of("TopK", 2, inputs, k, axis=1)
        return found, self._node("Softmax", values, axis=1)

    def _of_fields(self, classes: FieldClasses, activities: list[tuple[str, str]]) -> str:
        """Return the posterior of classes of fields."""
        r = classes.r[:, : classes.n_classes].astype(np.float64)
        r = normalized(r if classes.sizes is None else r * classes.sizes)
        parts, start = [], 0
        for mixture, (found, share) in zip(self._model.mixtures, activities, strict=True):
            own = self._node("Gather", self._array(r[start : start + mixture.n_fields]), found, axis=0)
            start += mixture.n_fields
            t = self._node("MatMul", self._node("Unsqueeze", share, self._axes(1)), own)
            parts.append(self._node("Squeeze", t, self._axes(1)))
        mean = self._node("Mul", self._node("Sum", *parts), self._value(1 / len(parts)))
        return self._sharpened(mean, classes.sharpness)

    def _linear(self, classes: LinearClasses, x: str, total: str) -> str:
        """Return the posterior of classes that are linear in the features."""
        features = self._node("Div", x, total)
        if classes.transform == "roots":
            features = self._node("Sqrt", features)
        inputs = self._node("MatMul", features, self._wide(classes.weights))
        return self._node("Softmax", self._node("Add", inputs, self._wide(classes.intercept[None])), axis=1)

    def _sharpened(self, t: str, power: float) -> str:
        """Return probabilities raised to a power and renormalized; rows of zeros become even."""
        most = self._node("Max", self._node("ReduceMax", t, self._axes(1), keepdims=1), self._value(_SMALL))
        raised = self._node("Pow", self._node("Div", t, most), self._value(power))
        mass = self._sum(raised)
        even = self._value(1 / self._layer.classes.n_classes)
        reached = self._node("Greater", mass, self._value(0.0))
        return self._node("Where", reached, self._node("Div", raised, mass), even)

    def _sum(self, of: str) -> str:
        return self._node("ReduceSum", of, self._axes(1), keepdims=1)

    def _node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = output or f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _nodes_of(self, kind: str, n: int, *inputs: str, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [f"v{len(self._nodes)}_{i}" for i in range(n)]
        self._nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def _array(self, values: Array) -> str:
        from onnx import numpy_helper

        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def _wide(self, values: Array) -> str:
        """Return float32 values, which are stored as such, in double precision."""
        from onnx import TensorProto

        return self._node("Cast", self._array(values.astype(np.float32)), to=TensorProto.DOUBLE)

    def _value(self, value: float) -> str:
        return self._array(np.array(value, np.float64))

    def _axes(self, axis: int) -> str:
        return self._array(np.array([axis], np.int64))
