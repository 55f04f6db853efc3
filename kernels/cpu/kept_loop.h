#pragma once

#include <array>
#include <cstddef>

#include "core/dispatch/element_loop.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/strided_loop.h"

namespace lockstep::cpu {

inline constexpr size_t kMostOperands = 3;
inline constexpr int64_t kWidestElement = 8;  ///< bytes

/// What `strided_loop` gives to a LoopCapture: an inner loop with its functor, and how elements get
/// into its lanes.
struct KeptLoop final : ElementLoop {
  struct Operand {
    DType dtype = DType::kF32;
    ComputeLane lane = ComputeLane::kF32;
    LoadFunction load = nullptr;  ///< null if the elements are stored in the lane
    /// One element of dtype, if it is a number of the call.
    std::array<std::byte, kWidestElement> number{};
    bool is_number = false;
  };

  InnerLoop loop = nullptr;  ///< null for a cast
  alignas(16) std::array<std::byte, kMostFunctorBytes> functor{};
  bool heavy = false;
  size_t count = 0;  ///< of operands
  std::array<Operand, kMostOperands> operands;
  StoreFunction store = nullptr;  ///< null if the result is stored in its lane
};

}  // namespace lockstep::cpu
