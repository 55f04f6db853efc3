"""PyTorch's autograd through Lockstep's operations, and the other way round."""

import gc
import weakref

import lockstep
import numpy as np
import pytest
from lockstep import ops

torch = pytest.importorskip("torch")
bridge = pytest.importorskip("lockstep.torch")


def random(*shape, seed=0, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).requires_grad_(grad)


def ours(tensor):
    copy = lockstep.from_dlpack(tensor.detach().clone())
    copy.requires_grad = True
    return copy


def close(a, b):
    torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), rtol=1e-4, atol=1e-6)


def test_pytorchs_backward_passes_through_operators():
    x, w = random(4, 3), random(5, 3, seed=1)
    layer = bridge.in_torch(lambda a, b: ops.softmax(ops.linear(a, b), dim=-1))
    (layer(x, w) ** 2).sum().backward()
    x2, w2 = (each.detach().clone().requires_grad_() for each in (x, w))
    (torch.softmax(torch.nn.functional.linear(x2, w2), -1) ** 2).sum().backward()
    close(x.grad, x2.grad)
    close(w.grad, w2.grad)


def test_nothing_is_copied_on_the_way():
    seen = []

    @bridge.in_torch
    def view(a):
        seen.append(np.asarray(a.detach()).ctypes.data)
        return a[1:]

    x = random(4, 3)
    y = view(x)
    assert seen == [x.data_ptr()]
    assert y.data_ptr() == x.data_ptr() + 3 * 4


def test_only_gradients_that_are_needed_are_computed():
    x, w = random(3), random(3, grad=False)
    product = bridge.in_torch(ops.mul)
    y = product(x, w)
    y.sum().backward()
    close(x.grad, w)
    assert w.grad is None
    assert not product(w, w).requires_grad
    with torch.no_grad():
        assert not product(x, w).requires_grad


def test_several_results_some_without_a_gradient():
    x = random(2, 4)
    top = bridge.in_torch(lambda a, k: ops.topk(a, k))
    values, indices = top(x, 2)
    assert not indices.requires_grad and indices.dtype == torch.int64
    values.sum().backward()
    expected = torch.zeros(2, 4).scatter_(1, indices, 1.0)
    close(x.grad, expected)


def test_operators_agree_with_numerical_gradients():
    x = random(3, 4).double().detach().requires_grad_()
    w = random(4, seed=1).double().detach().requires_grad_()
    norm = bridge.in_torch(lambda a, b: ops.layer_norm(a, [4], b), retain_graph=True)
    assert torch.autograd.gradcheck(norm, (x, w))


def test_weights_of_lockstep_learn_in_pytorchs_backward():
    w = ours(random(2, 3))
    x = random(4, 3)
    bridge.in_torch(lambda a: ops.linear(a, w))(x).sum().backward()
    close(w.grad.numpy(), x.detach().sum(0).expand(2, 3))


def test_a_graph_serves_once_unless_it_is_kept():
    x = random(3)
    once = bridge.in_torch(lambda a: a * a)(x).sum()
    once.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="retain_graph"):
        once.backward()
    twice = bridge.in_torch(lambda a: a * a, retain_graph=True)(x).sum()
    x.grad = None
    twice.backward(retain_graph=True)
    twice.backward()
    close(x.grad, 4 * x.detach())


def test_lockstep_backward_passes_through_a_module_of_pytorch():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    x = random(5, 3)
    a = ours(x)
    ops.sum(bridge.in_lockstep(module)(a * 2) ** 2).backward()
    learnt = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    (module(x * 2) ** 2).sum().backward()
    close(a.grad.numpy(), x.grad)
    for found, parameter in zip(learnt, module.parameters()):
        close(found, parameter.grad)


def test_functions_of_pytorch_with_several_results():
    a = ours(random(2, 4))
    values, indices = bridge.in_lockstep(lambda t: tuple(torch.sort(t, -1)))(a)
    assert indices.dtype == "int64" and not indices.requires_grad
    weights = np.arange(8, dtype="float32").reshape(2, 4)
    values.backward(weights)
    close(a.grad.numpy(), torch.zeros(2, 4).scatter_(1, torch.from_dlpack(indices), torch.from_dlpack(ours_of(weights))))


def ours_of(array):
    return lockstep.from_dlpack(array)


def test_each_inside_the_other():
    x = random(3, 3)
    inner = bridge.in_lockstep(lambda t: torch.tanh(t))
    outer = bridge.in_torch(lambda a: inner(a * 2) + a)
    outer(x).sum().backward()
    close(x.grad, 2 * (1 - torch.tanh(2 * x.detach()) ** 2) + 1)


def test_errors_pass_both_borders():
    x = random(2, 3)
    with pytest.raises(ValueError, match=r"\[mm\]"):
        bridge.in_torch(lambda a: ops.mm(a, a))(x)
    with pytest.raises(TypeError, match="expected Lockstep's tensors"):
        bridge.in_torch(lambda a: 1)(x)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        bridge.in_lockstep(lambda t: t @ t)(ours(x))
    with pytest.raises(TypeError, match="expected PyTorch's tensors"):
        bridge.in_lockstep(lambda t: 1)(ours(x))


def test_a_model_of_both_trains():
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 2)
    w = ours(random(8, 4) * 0.5)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.3)
    x = random(32, 4, grad=False)
    target = (x.sum(-1) > 0).long()
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        hidden = ops.relu(ops.linear(x, w))
        loss = ops.cross_entropy_loss(bridge.in_lockstep(head)(hidden), target)
        w.grad = None
        loss.backward()
        optimizer.step()
        with lockstep.no_grad():
            ops.sub_(w, w.grad, alpha=0.3)
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_what_was_used_is_let_go_of():
    x = random(3)
    y = bridge.in_torch(lambda a: a * a)(x)
    gone = weakref.ref(y.grad_fn)
    y.sum().backward()
    del y
    gc.collect()
    assert gone() is None
