#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/cuda/kept_loop.h"

namespace lockstep::cuda {

/// The type of a stored element in the text of a kernel.
std::string_view stored_type(DType dtype);

/// Writes the element-wise steps of a kernel that is made at run time: `e3` is an element of slot
/// 3, `f2` the functor of step 2, and `n2_1` its operand 1 where that is a number of the call.
class StepText {
 public:
  /// The steps' functors and numbers lie in `constants` from this byte on.
  explicit StepText(size_t first_constant) : constant_(first_constant) {}

  /// Returns a line of the text that computes the element of slot `result` from those of
  /// `operands`, and notes what it needs before.
  std::string add(size_t step, const KeptLoop& loop, std::span<const int32_t> operands,
                  int32_t result);
  /// The place of `bytes` more of the constants.
  size_t add_constant(size_t bytes);

  /// Declares the functors and numbers of the steps.
  const std::string& before() const { return before_; }

 private:
  std::string call(size_t step, const KeptLoop& loop, std::span<const int32_t> operands);

  size_t constant_;
  std::string before_;
};

}  // namespace lockstep::cuda
