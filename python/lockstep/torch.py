"""Lockstep's operations inside PyTorch's autograd, and PyTorch's inside Lockstep's, without copies."""

import functools
from typing import Any, Callable

import torch

from . import _lockstep
from .function import Function


def _each(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _ours(tensor: torch.Tensor, requires_grad: bool) -> _lockstep.Tensor:
    # PyTorch may repeat the elements of a gradient, and negate or conjugate them when they are read.
    ours = _lockstep.from_dlpack(tensor.detach().resolve_conj().resolve_neg())
    if requires_grad:
        ours.requires_grad = True
    return ours


def _theirs(tensor: _lockstep.Tensor, requires_grad: bool) -> torch.Tensor:
    theirs = torch.from_dlpack(tensor.detach())
    return theirs.requires_grad_() if requires_grad else theirs


class _InTorch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], retain_graph: bool, *args: Any) -> Any:
        needed = ctx.needs_input_grad[2:]
        given = [_ours(each, needs) if isinstance(each, torch.Tensor) else each for each, needs in zip(args, needed)]
        if any(needed):
            results = function(*given)
        else:
            with _lockstep.no_grad():
                results = function(*given)
        outputs = _each(results)
        for each in outputs:
            if not isinstance(each, _lockstep.Tensor):
                raise TypeError(f"[in_torch] the function returned {type(each).__name__}: expected Lockstep's tensors.")
        ctx.leaves = [each if needs else None for each, needs in zip(given, needed)]
        ctx.outputs, ctx.retain_graph = outputs, retain_graph
        theirs = [_theirs(each, False) for each in outputs]
        ctx.mark_non_differentiable(*(t for t, each in zip(theirs, outputs) if not each.requires_grad))
        return tuple(theirs) if isinstance(results, (tuple, list)) else theirs[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        roots = [(each, grad) for each, grad in zip(ctx.outputs, grads) if each.requires_grad]
        _lockstep.backward([each for each, _ in roots], [_ours(grad, False) for _, grad in roots], ctx.retain_graph)
        found = []
        for leaf in ctx.leaves:
            grad = None if leaf is None else leaf.grad
            found.append(None if grad is None else _theirs(grad, False))
            if leaf is not None:
                leaf.grad = None
        return (None, None, *found)


def in_torch(function: Callable[..., Any], *, retain_graph: bool = False) -> Callable[..., Any]:
    """`function`, which takes and returns Lockstep's tensors, as a function of PyTorch's, through which PyTorch's
    backward passes. Tensors are used where they lie; other arguments are given as they are.

    Tensors of Lockstep that `function` uses besides, and that require grad, get gradients in the same backward. With
    `retain_graph` backward can run several times, and memory is kept until the results are let go of."""

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return _InTorch.apply(function, retain_graph, *args)

    return called


class _InLockstep(Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], retain_graph: bool, *args: Any) -> Any:
        needed = ctx.needs_input_grad[2:]
        with torch.set_grad_enabled(any(needed)):
            given = [
                _theirs(each, needs) if isinstance(each, _lockstep.Tensor) else each for each, needs in zip(args, needed)
            ]
            results = function(*given)
        outputs = _each(results)
        for each in outputs:
            if not isinstance(each, torch.Tensor):
                raise TypeError(f"[in_lockstep] the function returned {type(each).__name__}: expected PyTorch's tensors.")
        ctx.leaves = [each if needs else None for each, needs in zip(given, needed)]
        ctx.outputs, ctx.retain_graph = outputs, retain_graph
        ours = [_ours(each, False) for each in outputs]
        ctx.mark_non_differentiable(*(t for t, each in zip(ours, outputs) if not each.requires_grad))
        return tuple(ours) if isinstance(results, (tuple, list)) else ours[0]

    @staticmethod
    def backward(ctx: Any, *grads: _lockstep.Tensor) -> Any:
        roots = [(each, grad) for each, grad in zip(ctx.outputs, grads) if each.requires_grad]
        torch.autograd.backward(
            [each for each, _ in roots], [_theirs(grad, False) for _, grad in roots], retain_graph=ctx.retain_graph
        )
        found = []
        for leaf in ctx.leaves:
            grad = None if leaf is None else leaf.grad
            found.append(None if grad is None else _ours(grad, False))
            if leaf is not None:
                leaf.grad = None
        return (None, None, *found)


def in_lockstep(function: Callable[..., Any], *, retain_graph: bool = False) -> Callable[..., Any]:
    """`function`, which takes and returns PyTorch's tensors (a `torch.nn.Module`, say), as a function of Lockstep's,
    through which Lockstep's backward passes. Tensors are used where they lie; other arguments are given as they are.

    Parameters of PyTorch that `function` uses get their gradients in the same backward, if an argument requires grad."""

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return _InLockstep.apply(function, retain_graph, *args)

    return called
