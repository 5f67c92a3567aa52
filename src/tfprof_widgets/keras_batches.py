"""Hearing of the batches that Keras runs, for as long as a capture counts them.

Callbacks are told of each batch by a ``CallbackList``, in Keras 2 and 3, whatever list the user gave to ``fit``; so its
methods are wrapped on the class, and put back afterwards. ``train_on_batch`` and its kin have no callbacks; they are
wrapped themselves.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .step_marks import StepCounter

_LOOPS = ("train", "test", "predict")


def listen(counter: StepCounter, tf: Any) -> Callable[[], None]:
    """Tell a counter of every batch, and return what ends that.

    Parameters
    ----------
    counter
        What to tell.
    tf
        TensorFlow, which finds Keras where nobody has imported it yet.
    """
    undo: list[Callable[[], None]] = []
    for keras in _loaded(tf):
        callbacks = keras.callbacks.CallbackList
        for loop in _LOOPS:
            # After the user's callbacks at the begin and before them at the end: a step is the call between.
            undo.append(_wrap(callbacks, f"on_{loop}_batch_begin", after=counter.batch_begins))
            undo.append(_wrap(callbacks, f"on_{loop}_batch_end", before=counter.batch_ended))
            undo.append(_wrap(keras.Model, f"{loop}_on_batch", before=counter.batch_begins, after=counter.batch_ended))

    def end() -> None:
        while undo:
            undo.pop()()

    return end


def _loaded(tf: Any) -> list[Any]:
    """Every Keras of this process; the one that TensorFlow uses if there is none yet."""
    found = [sys.modules[name] for name in ("keras", "tf_keras") if _is_whole(sys.modules.get(name))]
    if not found:
        try:
            found = [tf.keras]
        except (AttributeError, ImportError):  # a TensorFlow without Keras
            return []
    return [keras for keras in found if _is_whole(keras)]


def _is_whole(keras: Any) -> bool:
    return hasattr(getattr(keras, "callbacks", None), "CallbackList") and hasattr(keras, "Model")


def _wrap(
    owner: Any, name: str, *, before: Callable[[], None] | None = None, after: Callable[[], None] | None = None
) -> Callable[[], None]:
    original = getattr(owner, name)
    own = name in vars(owner)
    live = True

    @functools.wraps(original)
    def wrapper(*arguments: Any, **keywords: Any) -> Any:
        if before is not None and live:
            before()
        result = original(*arguments, **keywords)
        if after is not None and live:
            after()
        return result

    def undo() -> None:
        nonlocal live
        live = False  # in case somebody else has wrapped the wrapper
        if vars(owner).get(name) is wrapper:
            if own:
                setattr(owner, name, original)
            else:
                delattr(owner, name)

    setattr(owner, name, wrapper)
    return undo
