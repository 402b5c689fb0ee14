"""Support for the callbacks of scikit-learn (`sklearn.callback`, version 1.9 and later); without it, nothing happens.

A fit is a task of an estimator. Each iteration is a subtask, reported when it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tnesi.execution.settings import Listener, Record

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:

    class CallbackSupportMixin:
        def _init_callback_context(self, *, max_subtasks: int | None) -> Any: ...

    def with_callbacks(method: Method) -> Method: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:

        class CallbackSupportMixin:
            """Nothing, for scikit-learn before 1.9."""

        def with_callbacks(method):
            """Return the method as it is, for scikit-learn before 1.9."""
            return method


__all__ = ["CallbackSupport", "FitTask", "with_callbacks"]


class FitTask:
    """A fit as callbacks see it.

    Parameters
    ----------
    estimator : estimator
    context : sklearn.callback.CallbackContext or None
        None reports nothing.
    data : dict
        ``X``, ``y`` and ``metadata``, which are passed to the callbacks.
    """

    def __init__(self, estimator: Any, context: Any, data: dict[str, Any]) -> None:
        self._estimator, self._context, self._data = estimator, context, data
        if context is not None:
            context.call_on_fit_task_begin(estimator=estimator, **data)

    def listener(self, other: Listener | None) -> Listener | None:
        """Return a listener that passes records to another one, and then reports an iteration."""
        if self._context is None:
            return other

        def report(record: Record) -> bool:
            stop = other is not None and bool(other(record))
            iteration = self._context.subcontext(task_name="iteration")
            iteration.call_on_fit_task_begin(estimator=self._estimator, **self._data)
            return bool(iteration.call_on_fit_task_end(estimator=self._estimator, **self._data)) or stop

        return report

    def end(self) -> None:
        """Report that the estimator is fitted."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, **self._data, reconstruction_attributes=dict)


class CallbackSupport(CallbackSupportMixin):
    """An estimator whose `fit`, decorated by `with_callbacks`, reports its iterations."""

    def _begin_fit(self, n_iterations: int, X: object, y: object, sample_weight: object) -> FitTask:
        """Return the task of a fit of at most so many iterations, and report its beginning."""
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        context = None
        if getattr(self, "_skl_callbacks", None) or hasattr(self, "_parent_callback_ctx"):
            context = self._init_callback_context(max_subtasks=n_iterations)
        return FitTask(self, context, {"X": X, "y": y, "metadata": metadata})
