#include <nanobind/stl/string.h>

#include "bindings.h"

namespace lockstep::python {

void bind_files(nb::module_& module) {
  module.def(
      "load",
      [](const std::string& path) {
        nn::StateDict tensors;
        {
          const nb::gil_scoped_release released;
          tensors = train::load(path);
        }
        nb::dict found;
        for (const auto& [name, tensor] : tensors) found[name.c_str()] = object_from(tensor);
        return found;
      },
      nb::arg("path"), nb::sig("def load(path: str) -> dict[str, Tensor]"),
      "Reads all tensors of a safetensors file, those with several names under each of them.");
  module.def(
      "save",
      [](const std::string& path, const nb::dict& tensors) {
        nn::StateDict state;
        for (const auto& [name, tensor] : tensors) {
          state.add(nb::cast<std::string>(name), require_tensor("save", tensor));
        }
        const nb::gil_scoped_release released;
        train::save(path, state);
      },
      nb::arg("path"), nb::arg("tensors"),
      nb::sig("def save(path: str, tensors: collections.abc.Mapping[str, object]) -> None"),
      "Writes tensors and arrays as a safetensors file, which appears whole or not at all.");
}

}  // namespace lockstep::python
