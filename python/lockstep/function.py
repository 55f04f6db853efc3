"""Operations with a derivative of their own, written in Python."""

import copy
from typing import Any

from . import _lockstep


class FunctionContext:
    """What `backward` of a Function gets from `forward`. Anything may be kept as an attribute; tensors are kept by
    `save_for_backward`, which notices if they are changed in place and is not held beyond backward."""

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._saved: tuple[_lockstep.Tensor | None, ...] = ()
        self._without: tuple[_lockstep.Tensor, ...] = ()
        self._changed: tuple[_lockstep.Tensor, ...] = ()

    def save_for_backward(self, *tensors: "_lockstep.Tensor | None") -> None:
        self._saved = tensors

    @property
    def saved_tensors(self) -> "tuple[_lockstep.Tensor | None, ...]":
        return self._saved

    def mark_non_differentiable(self, *results: "_lockstep.Tensor") -> None:
        self._without = results

    def mark_dirty(self, *arguments: "_lockstep.Tensor") -> None:
        """Names arguments that forward changed in place; each must be returned."""
        self._changed = arguments


class Function:
    """An operation that the tape of gradients sees as one step, as `torch.autograd.Function` is in PyTorch:

        class Cube(lockstep.Function):
            @staticmethod
            def forward(ctx, x, scale):
                ctx.save_for_backward(x)
                ctx.scale = scale
                return x * x * x * scale

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x * x * (3 * ctx.scale), None

        y = Cube.apply(x, 2.0)

    `forward` returns a tensor or a tuple of them, and is not recorded. `backward` takes a gradient for each result and
    returns one for each argument, None where there is none; written with operators, it can be derived again.
    """

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        raise NotImplementedError("[Function] forward is missing: expected a static method forward(ctx, ...).")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError("[Function] backward is missing: expected a static method backward(ctx, ...).")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        ctx = FunctionContext()
        places = [i for i, each in enumerate(args) if isinstance(each, _lockstep.Tensor)]
        recorded = _lockstep.is_grad_enabled()
        ctx.needs_input_grad = tuple(recorded and i in places and each.requires_grad for i, each in enumerate(args))
        count, name = len(args), cls.__name__
        is_single = False

        def forward(tensors: "list[_lockstep.Tensor]") -> tuple[Any, ...]:
            nonlocal is_single
            given = list(args)
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            results = cls.forward(ctx, *given)
            is_single = not isinstance(results, (tuple, list))
            marks = ctx._saved, ctx._without, ctx._changed
            # A result that ctx held would keep the graph that holds ctx.
            ctx._saved = ctx._without = ctx._changed = ()
            return ([results] if is_single else list(results), *marks)

        def backward(saved: "list[_lockstep.Tensor]", grads: "list[_lockstep.Tensor]") -> list[Any]:
            call = copy.copy(ctx)
            call._saved = tuple(saved)
            found = cls.backward(call, *grads)
            found = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(found) != count:
                raise ValueError(
                    f"[{name}] backward returned {len(found)} gradients: expected one for each of the {count} "
                    "arguments of forward, None for those that have none."
                )
            return [found[place] for place in places]

        results = _lockstep._apply_function([args[place] for place in places], forward, backward)
        return results[0] if is_single else tuple(results)
