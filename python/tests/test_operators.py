"""Operators, subscripts and autograd against NumPy, and PyTorch where it is installed."""

import sys
import threading

import lockstep
import numpy as np
import pytest
from lockstep import ops


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def test_operators_are_called_by_name_with_and_without_overload():
    x = array(3, 4)
    expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    for softmax in (
        lockstep.call("aten::softmax", x, dim=-1),
        lockstep.call("softmax.int", x, -1),
        ops.softmax(lockstep.from_dlpack(x), dim=-1),
    ):
        np.testing.assert_allclose(softmax.numpy(), expected, rtol=1e-5)


def test_arguments_of_every_kind_are_converted():
    x = array(2, 3)
    np.testing.assert_allclose(ops.sum(x, dim=[0], keepdim=True).numpy(), x.sum(0, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(ops.cat([x, x], dim=1).numpy(), np.concatenate([x, x], 1))
    assert ops.sum(x, dtype="float64").dtype == "float64"
    assert ops.sum(x, dtype=np.float64).dtype == "float64"
    assert ops.zeros([2], device="meta").device == "meta"
    assert ops.zeros((2, np.int64(3))).shape == (2, 3)
    assert ops.add(x, np.float32(1)).dtype == "float32"
    values, indices = ops.topk(x, 2)
    np.testing.assert_array_equal(values.numpy(), -np.sort(-x)[:, :2])
    assert indices.dtype == "int64"
    assert isinstance(ops.split(x, 1), list)


def test_signs_are_operators():
    a, b = array(2, 3), array(2, 3, seed=1)
    x, y = lockstep.from_dlpack(a), lockstep.from_dlpack(b)
    for ours, theirs in [
        (x + y, a + b),
        (x - 2, a - 2),
        (2 - x, 2 - a),
        (x * y, a * b),
        (1 / (x * x + 1), 1 / (a * a + 1)),
        (x / y, a / b),
        (2**x, 2**a),
        (x**2, a**2),
        (-x, -a),
        (abs(x), abs(a)),
        (x // 0.5, a // np.float32(0.5)),
        (x % 0.5, a % np.float32(0.5)),
        (x @ ops.t(y), a @ b.T),
    ]:
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5)
    np.testing.assert_array_equal((x > y).numpy(), a > b)
    np.testing.assert_array_equal((x == x).numpy(), a == a)
    with pytest.raises(TypeError):
        x + "text"


def test_subscripts_have_numpys_meaning():
    a = array(4, 5)
    x = lockstep.from_dlpack(a)
    for index in [1, -1, slice(1, 3), (slice(None), 2), (None, Ellipsis, 0), (slice(None, None, 2), slice(1, 4)),
                  np.array([0, 2]), a > 0]:
        np.testing.assert_array_equal(x[index].numpy(), a[index])
    x[0, 1:3] = 7
    x[:, 0] = np.zeros(4, "float32")
    assert a[0, 1] == a[0, 2] == 7 and a[:, 0].sum() == 0
    assert len(x) == 4 and [row.shape for row in x] == [(5,)] * 4
    with pytest.raises(IndexError):
        x[4]


def test_in_place_operators_return_their_argument():
    x = ops.ones([2])
    assert ops.add_(x, 1) is x
    assert x.numpy().tolist() == [2, 2]


def test_numbers_and_text():
    x = lockstep.from_dlpack(np.array([1.5], "float32"))
    assert x.item() == float(x) == 1.5 and int(x) == 1 and bool(x)
    assert repr(x) == "tensor([1.5000])"
    assert isinstance(ops.arange(3)[1].item(), int)
    assert {x: 1}[x] == 1


def test_errors_keep_their_text_and_get_pythons_class():
    x = ops.zeros([2, 3])
    with pytest.raises(ValueError, match=r"\[mm\] .*2, 3"):
        ops.mm(x, x)
    with pytest.raises(TypeError, match="softmaxx.*softmax"):
        lockstep.call("softmaxx", x)
    with pytest.raises(AttributeError, match="softmaxx"):
        ops.softmaxx
    with pytest.raises(TypeError, match=r'\[mm\] there is no argument "other"'):
        ops.mm(x, other=x)
    with pytest.raises(TypeError, match=r"argument mat2 has the wrong type: expected Tensor, got str"):
        ops.mm(x, "x")
    with pytest.raises(TypeError, match=r"expected those of one of\n  add"):
        ops.add(x, "x")
    with pytest.raises(IndexError):
        ops.select(x, 5, 0)
    with pytest.raises(RuntimeError):
        x.backward()


def test_every_operator_is_listed():
    names = dir(ops)
    assert "softmax" in names and "mm" in names
    assert "mm(Tensor self, Tensor mat2) -> Tensor" in ops.mm.__doc__


def test_gradients_equal_those_of_a_formula():
    a = array(3)
    x = lockstep.from_dlpack(a, copy=True)
    assert x.grad is None
    x.requires_grad = True
    ops.sum(x * x * 3).backward()
    np.testing.assert_allclose(x.grad.numpy(), 6 * a, rtol=1e-6)
    (x * 2).backward(np.ones(3, "float32"))
    np.testing.assert_allclose(x.grad.numpy(), 6 * a + 2, rtol=1e-6)
    with lockstep.no_grad():
        assert not (x * 2).requires_grad
        ops.sub_(x, x.grad, alpha=0.5)
    assert (x * 2).requires_grad
    x.grad = None
    assert x.grad is None


def test_gradients_equal_those_of_torch():
    torch = pytest.importorskip("torch")
    a, w = array(8, 4), array(5, 4, seed=2)
    target = np.array([0, 1, 2, 3, 4, 0, 1, 2])

    theirs = torch.from_numpy(w.copy()).requires_grad_()
    torch.nn.functional.cross_entropy(torch.from_numpy(a) @ theirs.t(), torch.from_numpy(target)).backward()
    ours = lockstep.from_dlpack(w, copy=True)
    ours.requires_grad = True
    ops.cross_entropy_loss(ops.linear(a, ours), target).backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-6)


def test_other_threads_run_while_an_operator_computes():
    go, ran = threading.Lock(), threading.Event()
    go.acquire()

    def wait_and_run():
        with go:
            ran.set()

    thread = threading.Thread(target=wait_and_run)
    thread.start()
    interval = sys.getswitchinterval()
    # Python itself lets the other thread run only where this one gives the GIL away.
    sys.setswitchinterval(1000)
    try:
        x = ops.ones([500, 500])
        go.release()
        for _ in range(100):
            ops.mm(x, x)
            if ran.is_set():
                break
        assert ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_random_operators_follow_the_seed():
    lockstep.manual_seed(3)
    first = ops.rand([4]).numpy().copy()
    lockstep.manual_seed(3)
    np.testing.assert_array_equal(ops.rand([4]).numpy(), first)
