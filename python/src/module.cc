#include "bindings.h"

namespace lockstep::python {

NB_MODULE(_lockstep, module) {
  module.doc() = "Tensors and operators of liblockstep.";
  bind_errors(module);
  bind_tensor(module);
  bind_function(module);
  bind_files(module);
}

}  // namespace lockstep::python
