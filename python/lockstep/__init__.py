"""Lockstep from Python: tensors and operators without copies, training runs, files of tensors."""

import ctypes

from ._installed import LIBRARY

# Before the extension module, which has copies of the thread-locals in the library's headers: those of
# what is loaded first are the process's, and the library's own have room set aside (docs/python.md).
try:
    ctypes.CDLL(LIBRARY)
except OSError as error:
    raise ImportError(
        f"[lockstep] the library cannot be loaded: {error}. Install liblockstep where it was when this "
        "package was built, or install the package again."
    ) from None

from . import ops
from ._lockstep import (
    Tensor,
    backward,
    call,
    from_dlpack,
    grad,
    is_grad_enabled,
    load,
    manual_seed,
    no_grad,
    save,
    schemas,
)
from .function import Function
from .runs import TrainError, read_metrics, train

__all__ = [
    "Function",
    "Tensor",
    "TrainError",
    "backward",
    "call",
    "from_dlpack",
    "grad",
    "is_grad_enabled",
    "load",
    "manual_seed",
    "no_grad",
    "ops",
    "read_metrics",
    "save",
    "schemas",
    "train",
]
