"""Operations with a derivative of their own, and gradients of several tensors."""

import gc
import weakref

import lockstep
import numpy as np
import pytest
from lockstep import ops


def leaf(*values):
    tensor = lockstep.from_dlpack(np.array(values, "float32"), copy=True)
    tensor.requires_grad = True
    return tensor


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


def test_a_function_has_the_derivative_that_it_says():
    x = leaf(1, -2, 3)
    y = Cube.apply(x, 2.0)
    np.testing.assert_array_equal(y.detach().numpy(), [2, -16, 54])
    y.backward(np.array([1, 1, 2], "float32"))
    np.testing.assert_array_equal(x.grad.numpy(), [6, 24, 108])


def test_a_derivative_of_operators_is_derived_again():
    x = leaf(2.0)
    (first,) = lockstep.grad(ops.sum(Cube.apply(x, 1.0)), x, create_graph=True)
    (second,) = lockstep.grad(first, x)
    assert (first.item(), second.item()) == (12, 12)


def test_several_arguments_and_results():
    class Swapped(lockstep.Function):
        @staticmethod
        def forward(ctx, a, text, b):
            assert ctx.needs_input_grad == (True, False, False)
            index = ops.argmax(a)
            ctx.mark_non_differentiable(index)
            return b * 1, a * 2, index

        @staticmethod
        def backward(ctx, grad_b, grad_a, grad_index):
            assert grad_b.numpy().tolist() == [0, 0]  # it did not take part
            return grad_a * 2, None, None

    a, b = leaf(1, 5), lockstep.from_dlpack(np.zeros(2, "float32"))
    first, second, index = Swapped.apply(a, "text", b)
    assert index.item() == 1 and not index.requires_grad
    second.backward(np.ones(2, "float32"))
    assert a.grad.numpy().tolist() == [2, 2]
    with lockstep.no_grad():
        assert not Cube.apply(a, 1.0).requires_grad


def test_an_argument_that_forward_changes_is_returned():
    class Doubled(lockstep.Function):
        @staticmethod
        def forward(ctx, x):
            ops.mul_(x, 2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1, 2)
    y = x * 3
    Doubled.apply(y)
    assert y.detach().numpy().tolist() == [6, 12]
    y.backward(np.ones(2, "float32"))
    assert x.grad.numpy().tolist() == [6, 6]


def test_errors_of_both_methods_reach_the_caller():
    class Broken(lockstep.Function):
        @staticmethod
        def forward(ctx, x, where):
            if where == "forward":
                raise KeyError("not today")
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise LookupError("nor tomorrow")

    x = leaf(1)
    with pytest.raises(KeyError, match="not today"):
        Broken.apply(x, "forward")
    y = Broken.apply(x, "backward")
    with pytest.raises(LookupError, match="nor tomorrow"):
        y.backward()
    # What comes after is not touched by it.
    Cube.apply(x, 1.0).backward()
    assert x.grad.item() == 3


def test_a_wrong_number_of_gradients_is_named():
    class OneShort(lockstep.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad

    y = OneShort.apply(leaf(1), leaf(2))
    with pytest.raises(ValueError, match=r"\[OneShort\] backward returned 1 gradients: .* 2 arguments"):
        y.backward()


def test_a_saved_tensor_that_changed_is_noticed():
    x = leaf(1, 2)
    y = x * 1
    z = Cube.apply(y, 1.0)
    ops.add_(y, 1)
    with pytest.raises(RuntimeError, match="in place"):
        z.backward(np.ones(2, "float32"))


def test_what_a_function_keeps_is_let_go_of_with_the_graph():
    class Kept:
        pass

    class Keeping(lockstep.Function):
        @staticmethod
        def forward(ctx, x, kept):
            result = x * 2
            ctx.kept = kept
            ctx.save_for_backward(x, result)
            return result

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    x, kept = leaf(1), Kept()
    gone = weakref.ref(kept)
    y = Keeping.apply(x, kept)
    del kept
    assert gone() is not None
    del y
    gc.collect()
    assert gone() is None


def test_gradients_of_several_tensors():
    a, b, c = leaf(1, 2), leaf(3, 4), leaf(5)
    outputs = [a * b, a + 1]
    weights = [np.ones(2, "float32"), np.array([10, 20], "float32")]
    by_a, by_b, by_c = lockstep.grad(outputs, [a, b, c], weights, retain_graph=True, allow_unused=True)
    assert by_a.numpy().tolist() == [13, 24] and by_b.numpy().tolist() == [1, 2] and by_c is None
    assert a.grad is None
    lockstep.backward(outputs, weights)
    assert a.grad.numpy().tolist() == [13, 24]
    with pytest.raises(RuntimeError, match="retain_graph"):
        lockstep.backward(outputs, weights)
