#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bindings.h"

namespace lockstep::python {
namespace {

nb::tuple tuple_from(IntList list) {
  nb::list values;
  for (const int64_t value : list) values.append(value);
  return nb::tuple(values);
}

nb::object number_from(const Scalar& number) {
  if (number.kind() == DType::kBool) return nb::bool_(number.to_bool());
  if (number.is_floating()) return nb::float_(number.to_double());
  return nb::int_(number.to_int());
}

Scalar only_element(const Tensor& self) {
  const nb::gil_scoped_release released;
  return self.item_scalar();
}

/// `lockstep.no_grad()`: operators of this thread are not recorded inside the `with`.
struct NoGrad {
  std::optional<NoGradGuard> guard;
};

void bind_properties(nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_ro(
          "dtype", [](const Tensor& self) { return to_string(self.dtype()); },
          "Element type by its name: \"float32\", \"bfloat16\", \"int64\", \"bool\", ...")
      .def_prop_ro(
          "shape", [](const Tensor& self) { return tuple_from(self.sizes()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const Tensor& self) { return tuple_from(self.strides()); },
          nb::sig("def strides(self) -> tuple[int, ...]"), "In elements.")
      .def_prop_ro("ndim", &Tensor::dim)
      .def_prop_ro("size", &Tensor::numel, "Number of elements.")
      .def_prop_ro(
          "device", [](const Tensor& self) { return to_string(self.device()); },
          "\"cpu\", \"cuda:0\", \"host:0\", \"meta\", ...")
      .def("__len__",
           [](const Tensor& self) {
             if (self.dim() == 0) throw nb::type_error("[len] a number has no length.");
             return self.size(0);
           })
      .def("__repr__",
           [](const Tensor& self) {
             const nb::gil_scoped_release released;
             return format_tensor(self);
           })
      .def("__hash__", [](const Tensor& self) { return reinterpret_cast<uintptr_t>(self.impl()); });
}

void bind_numbers(nb::class_<Tensor>& tensor) {
  tensor
      .def(
          "item", [](const Tensor& self) { return number_from(only_element(self)); },
          nb::sig("def item(self) -> int | float | bool"), "The only element.")
      .def("__float__", [](const Tensor& self) { return only_element(self).to_double(); })
      .def("__int__", [](const Tensor& self) { return only_element(self).to_int(); })
      .def("__bool__", [](const Tensor& self) { return only_element(self).to_bool(); });
}

void bind_autograd(nb::module_& module, nb::class_<Tensor>& tensor) {
  tensor
      .def_prop_rw("requires_grad", &Tensor::requires_grad,
                   [](const Tensor& self, bool wanted) { self.set_requires_grad(wanted); })
      .def_prop_rw(
          "grad", [](const Tensor& self) { return object_from(self.grad()); },
          [](const Tensor& self, nb::handle grad) {
            self.set_grad(grad.is_none() ? Tensor() : require_tensor("grad", grad));
          },
          nb::arg("grad").none(), nb::for_getter(nb::sig("def grad(self) -> Tensor | None")),
          nb::for_setter(nb::sig("def grad(self, grad: object | None, /) -> None")))
      .def(
          "backward",
          [](const Tensor& self, nb::handle gradient, bool retain_graph) {
            const Tensor given =
                gradient.is_none() ? Tensor() : require_tensor("backward", gradient);
            const nb::gil_scoped_release released;
            self.backward(given, retain_graph);
          },
          nb::arg("gradient") = nb::none(), nb::arg("retain_graph") = false,
          nb::sig("def backward(self, gradient: object | None = None, retain_graph: bool = False) "
                  "-> None"),
          "Adds the derivatives of this tensor to `grad` of the leaves it was computed from.")
      .def("detach", &Tensor::detach, "The same elements, not recorded.");

  nb::class_<NoGrad>(module, "no_grad",
                     "`with no_grad():` operators of this thread are not recorded.")
      .def(nb::init<>())
      .def("__enter__", [](NoGrad& self) { self.guard.emplace(); })
      .def("__exit__", [](NoGrad& self, nb::args) { self.guard.reset(); });
  module.def(
      "manual_seed", [](uint64_t seed) { manual_seed(seed); }, nb::arg("seed"),
      "Seeds the random operators.");
}

}  // namespace

std::optional<Tensor> tensor_from_object(nb::handle object) {
  Tensor* known = nullptr;
  if (nb::try_cast(object, known) && known != nullptr) return *known;
  if (!nb::hasattr(object, "__dlpack__")) return std::nullopt;
  return tensor_from_dlpack(object, std::nullopt);
}

Tensor require_tensor(const char* function, nb::handle object) {
  std::optional<Tensor> tensor = tensor_from_object(object);
  if (tensor) return std::move(*tensor);
  const std::string text = std::string("[") + function +
                           "] not a tensor: expected a Tensor or an array with __dlpack__, got " +
                           nb::inst_name(object).c_str() + ".";
  throw nb::type_error(text.c_str());
}

void bind_tensor(nb::module_& module) {
  nb::class_<Tensor> tensor(module, "Tensor",
                            "An n-dimensional array of liblockstep, which other libraries use "
                            "where it lies (DLPack).");
  bind_properties(tensor);
  bind_numbers(tensor);
  bind_autograd(module, tensor);
  tensor.def(
      "to",
      [](const Tensor& self, const std::string& target, bool copy) {
        const std::optional<DType> dtype = parse_dtype(target);
        const nb::gil_scoped_release released;
        return dtype ? self.to(*dtype, false, copy) : self.to(parse_device(target), false, copy);
      },
      nb::arg("target"), nb::arg("copy") = false,
      "The elements as a dtype (\"bfloat16\") or on a device (\"cuda:0\").");
  bind_dlpack(module, tensor);
  bind_index(tensor);
  bind_operators(module, tensor);
}

}  // namespace lockstep::python
