#pragma once

#include <utility>

#include "core/tensor/tensor.h"

namespace lockstep::optim {

/// A tensor that a caller need not look at: what a function returns that is called for what it
/// does. Compilers warn about any other Tensor that is not used.
class IgnorableTensor : public Tensor {
 public:
  IgnorableTensor(Tensor tensor) : Tensor(std::move(tensor)) {}
};

}  // namespace lockstep::optim
