"""Every operator as a function under ATen's name: ops.softmax(x, dim=-1). `dir(ops)` lists them."""

import functools
from typing import Any, Callable

from . import _lockstep


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    schemas = _lockstep.schemas(name)
    if not schemas:
        raise AttributeError(f'[ops] there is no operator "{name}". dir(lockstep.ops) lists them.')

    def function(*args: object, **kwargs: object) -> Any:
        return _lockstep.call(name, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "\n".join(schemas)
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    return _function(name)


def __dir__() -> list[str]:
    return _lockstep.operator_names()
