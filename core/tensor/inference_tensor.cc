#include "core/tensor/inference_tensor.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace lockstep::detail {

void refuse_inference_write(std::string_view op, const Tensor& tensor) {
  throw AutogradError(fmt::format(
      "[{}] a tensor made in inference mode is changed outside it: {}. clone() it first.", op,
      to_string(tensor)));
}

}  // namespace lockstep::detail
