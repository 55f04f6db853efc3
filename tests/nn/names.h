#pragma once

#include <string>
#include <vector>

#include "nn/module.h"

namespace lockstep::nn {

/// The names of parameters or buffers, in their order.
inline std::vector<std::string> names(const std::vector<NamedParameter>& tensors) {
  std::vector<std::string> found;
  for (const NamedParameter& tensor : tensors) found.push_back(tensor.name);
  return found;
}

}  // namespace lockstep::nn
