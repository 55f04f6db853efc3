#include "bindings.h"

namespace lockstep::python {
namespace {

std::optional<int64_t> bound(nb::handle slice, const char* name) {
  const nb::object value = slice.attr(name);
  if (value.is_none()) return std::nullopt;
  return nb::cast<int64_t>(value);
}

TensorIndex subscript(nb::handle object) {
  if (object.is_none()) return None;
  if (object.is(nb::handle(Py_Ellipsis))) return Ellipsis;
  if (PyBool_Check(object.ptr())) return object.is(nb::handle(Py_True));
  if (nb::isinstance<nb::slice>(object)) {
    return Slice(bound(object, "start"), bound(object, "stop"), bound(object, "step").value_or(1));
  }
  // An array of no dimensions is an index as well as an array: the array's rules are wider.
  if (std::optional<Tensor> tensor = tensor_from_object(object)) return *tensor;
  if (PyIndex_Check(object.ptr()) != 0)
    return nb::cast<int64_t>(nb::steal(PyNumber_Index(object.ptr())));
  throw nb::type_error(
      "[index] a subscript has the wrong type: expected numbers, slices, None, "
      "Ellipsis, bools and arrays. Make an array of a list.");
}

std::vector<TensorIndex> subscripts(nb::handle object) {
  std::vector<TensorIndex> indices;
  if (!nb::isinstance<nb::tuple>(object)) return {subscript(object)};
  for (const nb::handle each : object) indices.push_back(subscript(each));
  return indices;
}

}  // namespace

void bind_index(nb::class_<Tensor>& tensor) {
  tensor.def(
      "__getitem__",
      [](const Tensor& self, nb::handle index) {
        const std::vector<TensorIndex> indices = subscripts(index);
        const nb::gil_scoped_release released;
        return self.index(indices);
      },
      nb::sig("def __getitem__(self, index: object, /) -> Tensor"));
  tensor.def(
      "__setitem__",
      [](const Tensor& self, nb::handle index, nb::handle values) {
        const std::vector<TensorIndex> indices = subscripts(index);
        std::optional<Tensor> source = tensor_from_object(values);
        if (!source) source = scalar_tensor(nb::cast<double>(values), self.dtype());
        const nb::gil_scoped_release released;
        self.index_put_(indices, *source);
      },
      nb::sig("def __setitem__(self, index: object, values: object, /) -> None"));
}

}  // namespace lockstep::python
