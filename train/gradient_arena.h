#pragma once

#include <vector>

#include "nn/module.h"

namespace lockstep::train {

/// One stretch of memory that holds the gradient of every parameter, each in its own slot, in the
/// parameters' order; slots start at multiples of 4096 elements, the block of the norms.
///
/// While attached, backward writes and adds gradients straight into the slots. Each slot is a
/// storage of its own, with its own version counter. Not thread-safe.
class GradientArena {
 public:
  explicit GradientArena(const std::vector<nn::NamedParameter>& parameters);

  /// Makes this arena the place where the parameters' gradients end, and marks every slot empty.
  void attach();
  /// Throws AutogradError naming the first parameter that has received no gradient since `attach`.
  void check_complete() const;

  /// The whole arena as one vector, gaps between slots included (they stay zero).
  const Tensor& flat() const { return flat_; }
  /// One gradient a parameter, in the parameters' order.
  const std::vector<Tensor>& slots() const { return slots_; }

 private:
  std::vector<nn::NamedParameter> parameters_;
  Tensor flat_;
  std::vector<Tensor> slots_;
};

}  // namespace lockstep::train
