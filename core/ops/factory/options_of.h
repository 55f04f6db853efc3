#pragma once

#include <optional>

#include "core/tensor/options.h"

namespace lockstep {

/// The options of a factory that is told dtype and device, or neither.
inline TensorOptions options_of(std::optional<DType> dtype, std::optional<Device> device) {
  TensorOptions options;
  options.dtype = dtype;
  options.device = device;
  return options;
}

}  // namespace lockstep
