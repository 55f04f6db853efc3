#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "core/dispatch/element_loop.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/step_constants.h"
#include "kernels/cpu/strided_loop.h"

namespace lockstep::cpu {

inline constexpr int64_t kWidestElement = 8;  ///< bytes

/// What `strided_loop` gives to a LoopCapture: an inner loop with its functor, and how elements get
/// into its lanes.
struct KeptLoop final : ElementLoop {
  struct Operand {
    DType dtype = DType::kF32;
    ComputeLane lane = ComputeLane::kF32;
    LoadFunction load = nullptr;  ///< null if the elements are stored in the lane
    bool is_number = false;       ///< of the call: `constants` holds it
  };

  InnerLoop loop = nullptr;       ///< null for a cast
  std::string_view functor_name;  ///< empty if no header defines its type
  StepConstants constants;
  ComputeLane lane = ComputeLane::kF32;  ///< of the result
  bool heavy = false;
  size_t count = 0;  ///< of operands
  std::array<Operand, kMostOperands> operands;
  StoreFunction store = nullptr;  ///< null if the result is stored in its lane
};

inline const KeptLoop& loop_of(const LoopProgram::Step& step) {
  return static_cast<const KeptLoop&>(*step.loop);
}

}  // namespace lockstep::cpu
