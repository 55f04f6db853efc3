#include "core/ops/factory/dlpack.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "bindings.h"
#include "core/device/device_runtime.h"

namespace lockstep::python {
namespace {

using dlpack::DLDevice;
using dlpack::DLManagedTensor;
using dlpack::DLManagedTensorVersioned;

using Version = std::pair<int64_t, int64_t>;
using DeviceNumbers = std::pair<int32_t, int32_t>;

/// Names of capsules before and after somebody took what is in them.
template <class Form>
struct CapsuleName {
  static constexpr const char* kFull = "dltensor";
  static constexpr const char* kUsed = "used_dltensor";
};
template <>
struct CapsuleName<DLManagedTensorVersioned> {
  static constexpr const char* kFull = "dltensor_versioned";
  static constexpr const char* kUsed = "used_dltensor_versioned";
};

// --- import
// ----------------------------------------------------------------------------------------

/// Takes the tensor out of the capsule; null if it is another kind of capsule.
template <class Form>
Form* take(nb::handle capsule) {
  using Name = CapsuleName<Form>;
  if (PyCapsule_IsValid(capsule.ptr(), Name::kFull) == 0) return nullptr;
  auto* const form = static_cast<Form*>(PyCapsule_GetPointer(capsule.ptr(), Name::kFull));
  if (PyCapsule_SetName(capsule.ptr(), Name::kUsed) != 0) nb::raise_python_error();
  return form;
}

Tensor from_capsule(nb::handle capsule, std::optional<bool> copy) {
  const bool allowed = copy.value_or(true);
  Tensor tensor;
  bool copied = false;
  if (auto* const form = take<DLManagedTensorVersioned>(capsule)) {
    copied = form->version.major == dlpack::kMajorVersion &&
             (form->flags & (dlpack::kFlagIsCopied | dlpack::kFlagReadOnly)) != 0;
    tensor = from_dlpack(form, allowed ? ReadOnlyMemory::kCopy : ReadOnlyMemory::kRefuse);
  } else if (auto* const old = take<DLManagedTensor>(capsule)) {
    tensor = from_dlpack(old);
  } else {
    throw nb::value_error(
        "[from_dlpack] the capsule holds no tensor: expected one named dltensor or "
        "dltensor_versioned that nobody took before.");
  }
  return copy == true && !copied ? tensor.clone() : tensor;
}

/// The number by which Python's protocol names the stream on which this thread will use the memory;
/// None where there are no streams.
nb::object current_stream_number(const DeviceNumbers& device) {
  if (device.first != dlpack::kDLCUDA) return nb::none();
  const Device ours{DeviceType::kCUDA, static_cast<int8_t>(device.second)};
  void* const native = require_runtime(ours).native(current_stream(ours));
  return nb::int_(reinterpret_cast<uintptr_t>(native));
}

// --- export
// ----------------------------------------------------------------------------------------

void release_unused(const char* name, PyObject* capsule, void (*release)(void*)) {
  if (PyCapsule_IsValid(capsule, name) != 0) release(PyCapsule_GetPointer(capsule, name));
}

template <class Form>
nb::object capsule_of(std::unique_ptr<Form, dlpack::Release> managed) {
  PyObject* const capsule =
      PyCapsule_New(managed.get(), CapsuleName<Form>::kFull, [](PyObject* gone) {
        release_unused(CapsuleName<Form>::kFull, gone,
                       [](void* form) { dlpack::Release()(static_cast<Form*>(form)); });
      });
  if (capsule == nullptr) nb::raise_python_error();
  (void)managed.release();
  return nb::steal(capsule);
}

/// The stream that Python's protocol names: the default streams are 1 and 2, and -1 asks for no
/// order.
std::optional<Stream> consumer_of(const Tensor& self, std::optional<int64_t> stream) {
  if (self.device().type != DeviceType::kCUDA || stream == -1) return std::nullopt;
  if (stream == 0 || (stream && *stream < -1)) {
    throw nb::value_error(
        "[__dlpack__] there is no such stream: expected None, -1, 1 or 2 (the "
        "legacy and the thread's default stream) or a handle above.");
  }
  return external_stream(self.device(), reinterpret_cast<void*>(stream.value_or(1)));
}

DLPackOptions options_of(const Tensor& self, std::optional<int64_t> stream,
                         std::optional<DeviceNumbers> wanted, std::optional<bool> copy) {
  const DLDevice own = dlpack_device(self);
  DLPackOptions options{.copy = copy == true};
  if (wanted && *wanted != DeviceNumbers(own.device_type, own.device_id)) {
    if (*wanted != DeviceNumbers(dlpack::kDLCPU, 0)) {
      throw nb::buffer_error(
          "[__dlpack__] cannot export to that device: expected dl_device to be "
          "the tensor's own or (1, 0), the cpu. Copy the tensor first.");
    }
    if (self.device() != kCPU && copy == false) {
      throw nb::buffer_error("[__dlpack__] the cpu needs a copy: expected copy=None or True.");
    }
    options.device = kCPU;
  }
  options.consumer = consumer_of(self, stream);
  return options;
}

nb::object export_tensor(const Tensor& self, std::optional<int64_t> stream,
                         std::optional<Version> max_version, std::optional<DeviceNumbers> device,
                         std::optional<bool> copy) {
  try {
    const DLPackOptions options = options_of(self, stream, device, copy);
    if (max_version && max_version->first >= dlpack::kMajorVersion) {
      return capsule_of(to_dlpack(self, options));
    }
    return capsule_of(to_dlpack_unversioned(self, options));
  } catch (const Error& error) {
    throw nb::buffer_error(error.what());
  }
}

/// NumPy's array over the memory of a tensor.
nb::object numpy_of(nb::handle self) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  if (tensor.dtype() == DType::kBF16) {
    throw nb::type_error("[numpy] NumPy has no bfloat16. Convert the tensor: to(\"float32\").");
  }
  return nb::module_::import_("numpy").attr("from_dlpack")(self);
}

}  // namespace

Tensor tensor_from_dlpack(nb::handle object, std::optional<bool> copy) {
  if (PyCapsule_CheckExact(object.ptr()) != 0) return from_capsule(object, copy);
  if (!nb::hasattr(object, "__dlpack__")) (void)require_tensor("from_dlpack", object);
  const auto device = nb::cast<DeviceNumbers>(nb::tuple(object.attr("__dlpack_device__")()));
  const nb::object method = object.attr("__dlpack__");
  nb::dict arguments;
  arguments["max_version"] = nb::make_tuple(dlpack::kMajorVersion, dlpack::kMinorVersion);
  const nb::object stream = current_stream_number(device);
  if (!stream.is_none()) arguments["stream"] = stream;
  if (copy == false) arguments["copy"] = false;
  nb::object capsule;
  try {
    capsule = method(**arguments);
  } catch (nb::python_error& error) {
    // Libraries from before DLPack 1.0 know `stream` alone.
    if (!error.matches(PyExc_TypeError)) throw;
    nb::dict old;
    if (!stream.is_none()) old["stream"] = stream;
    capsule = method(**old);
  }
  return from_capsule(capsule, copy);
}

void bind_dlpack(nb::module_& module, nb::class_<Tensor>& tensor) {
  tensor
      .def("__dlpack__", &export_tensor, nb::kw_only(), nb::arg("stream") = nb::none(),
           nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
           nb::arg("copy") = nb::none())
      .def("__dlpack_device__",
           [](const Tensor& self) {
             const DLDevice device = dlpack_device(self);
             return DeviceNumbers(device.device_type, device.device_id);
           })
      .def("numpy", &numpy_of, nb::sig("def numpy(self) -> typing.Any"),
           "NumPy's array over the same memory.")
      .def(
          "__array__",
          [](nb::handle self, nb::object dtype, nb::object copy) {
            nb::object array = numpy_of(self);
            if (!dtype.is_none()) array = array.attr("astype")(dtype, nb::arg("copy") = false);
            return copy.is(nb::handle(Py_True)) ? array.attr("copy")() : array;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> "
                  "typing.Any"));
  module.def(
      "from_dlpack", &tensor_from_dlpack, nb::arg("x"), nb::kw_only(), nb::arg("copy") = nb::none(),
      nb::sig("def from_dlpack(x: object, /, *, copy: bool | None = None) -> Tensor"),
      "A tensor over the memory of another library's array, or of a DLPack capsule. Only read-only "
      "memory is copied, unless `copy` is False: then it is refused. With `copy=True` a copy.");
}

}  // namespace lockstep::python
