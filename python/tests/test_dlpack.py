"""Exchange with NumPy, and with PyTorch and JAX where they are installed."""

import gc
import weakref

import lockstep
import numpy as np
import pytest

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_arrays_are_shared_both_ways(dtype):
    array = np.arange(12).astype(dtype).reshape(3, 4)[:, ::2].T
    tensor = lockstep.from_dlpack(array)
    assert tensor.dtype == dtype
    assert tensor.shape == array.shape
    assert tensor.strides == tuple(s // array.itemsize for s in array.strides)
    back = tensor.numpy()
    assert back.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(back, array)
    array[1, 1] = 0
    assert tensor[1, 1].item() == 0


def test_the_exporter_lives_as_long_as_the_tensor():
    array = np.arange(4.0)
    gone = weakref.ref(array)
    tensor = lockstep.from_dlpack(array)
    row = tensor[1:]
    del array, tensor
    gc.collect()
    assert gone() is not None
    assert row[0].item() == 1
    del row
    gc.collect()
    assert gone() is None


def test_exported_memory_outlives_the_tensor():
    array = lockstep.ops.arange(1000).numpy()
    gc.collect()
    assert array.sum() == 999 * 500


def test_numbers_and_empty_arrays_are_exchanged():
    assert lockstep.from_dlpack(np.array(5.0)).item() == 5
    assert lockstep.from_dlpack(np.zeros((0, 3), "int32")).numpy().shape == (0, 3)


def test_negative_strides_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"\[from_dlpack\] the stride of dimension 0 .*Copy"):
        lockstep.from_dlpack(np.arange(3.0)[::-1])


def test_unknown_element_types_are_refused():
    with pytest.raises(TypeError, match="no such element type"):
        lockstep.from_dlpack(np.zeros(2, "complex64"))
    with pytest.raises(TypeError, match="expected a Tensor or an array"):
        lockstep.from_dlpack([1.0])


def test_read_only_memory_is_copied_unless_copies_are_forbidden():
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = lockstep.from_dlpack(array)
    tensor[0] = 7
    assert array[0] == 0
    with pytest.raises((BufferError, RuntimeError), match="read-only"):
        lockstep.from_dlpack(array, copy=False)


def test_a_copy_is_made_when_it_is_asked_for():
    array = np.arange(3.0)
    tensor = lockstep.from_dlpack(array, copy=True)
    array[0] = 5
    assert tensor[0].item() == 0
    assert np.from_dlpack(tensor, copy=True).ctypes.data != tensor.numpy().ctypes.data


def test_capsules_of_both_forms_are_taken_once():
    tensor = lockstep.ops.arange(3)
    for version in (None, (1, 0)):
        capsule = tensor.__dlpack__(max_version=version)
        assert ("versioned" in repr(capsule)) == (version is not None)
        assert lockstep.from_dlpack(capsule).shape == (3,)
        with pytest.raises(ValueError, match="holds no tensor"):
            lockstep.from_dlpack(capsule)


def test_exporters_from_before_version_1_are_asked_again():
    class Old:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__(stream=stream)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    array = np.arange(3.0)
    assert lockstep.from_dlpack(Old(array)).numpy().ctypes.data == array.ctypes.data


def test_an_error_of_the_exporter_passes():
    class Broken:
        def __dlpack__(self, **kwargs):
            raise BufferError("not today")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(BufferError, match="not today"):
        lockstep.from_dlpack(Broken())


def test_what_cannot_be_exported_is_a_buffer_error():
    tensor = lockstep.ops.zeros([2])
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="dl_device"):
        tensor.__dlpack__(dl_device=(2, 0))
    tensor.requires_grad = True
    with pytest.raises(BufferError, match="detach"):
        tensor.numpy()
    assert tensor.detach().numpy().shape == (2,)
    with pytest.raises(BufferError, match="meta"):
        lockstep.ops.zeros([2], device="meta").__dlpack__()
    with pytest.raises(TypeError, match="bfloat16"):
        lockstep.ops.zeros([2], dtype="bfloat16").numpy()


def test_numpy_functions_take_tensors():
    tensor = lockstep.ops.arange(4)
    assert np.asarray(tensor).ctypes.data == tensor.numpy().ctypes.data
    assert np.array(tensor, dtype="float32").tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16"])
def test_torch_tensors_are_shared_both_ways(dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.arange(12).to(getattr(torch, dtype)).reshape(3, 4)[:, 1:].t()
    ours = lockstep.from_dlpack(theirs)
    assert ours.dtype == dtype
    assert ours.strides == theirs.stride()
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr()
    assert torch.equal(back, theirs)
    with pytest.raises(Exception, match="grad"):
        lockstep.from_dlpack(torch.zeros(2, requires_grad=True))


def test_jax_arrays_are_exchanged():
    jax = pytest.importorskip("jax")
    theirs = jax.numpy.arange(6.0).reshape(2, 3)
    ours = lockstep.from_dlpack(theirs)
    assert ours.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert jax.numpy.from_dlpack(lockstep.ops.arange(6).to("float32")).tolist() == list(range(6))
