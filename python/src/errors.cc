#include "bindings.h"

namespace lockstep::python {
namespace {

/// Python's class for an error of the library; the text stays.
PyObject* class_of(const Error& error) {
  if (dynamic_cast<const ShapeError*>(&error) != nullptr) return PyExc_ValueError;
  if (dynamic_cast<const ConfigError*>(&error) != nullptr) return PyExc_ValueError;
  if (dynamic_cast<const DTypeError*>(&error) != nullptr) return PyExc_TypeError;
  if (dynamic_cast<const DispatchError*>(&error) != nullptr) return PyExc_TypeError;
  if (dynamic_cast<const IndexError*>(&error) != nullptr) return PyExc_IndexError;
  if (dynamic_cast<const OutOfMemoryError*>(&error) != nullptr) return PyExc_MemoryError;
  return PyExc_RuntimeError;
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      PyErr_SetString(class_of(error), error.what());
    }
  });
}

}  // namespace lockstep::python
