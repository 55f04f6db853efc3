#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "core/dispatch/element_loop.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/pointwise.h"
#include "kernels/cuda/pointwise_params.h"

namespace lockstep::cuda {

/// What a call of `pointwise` or `copy_elements` gives to a LoopCapture instead of being queued.
struct KeptLoop final : ElementLoop {
  struct Operand {
    DType dtype = DType::kF32;
    bool is_number = false;                ///< of the call: `number` holds it
    std::array<std::byte, 8> number = {};  ///< in its dtype
  };

  const PointwiseKernel* kernel = nullptr;  ///< null for a cast
  alignas(16) std::array<unsigned char, PointwiseOperands::kFunctorBytes> functor = {};
  size_t functor_bytes = 0;
  DType dtype = DType::kF32;  ///< of the result
  size_t count = 0;           ///< of operands
  std::array<Operand, PointwiseOperands::kMost - 1> operands = {};
};

/// The loop of a step of a program that this backend runs.
inline const KeptLoop& loop_of(const LoopProgram::Step& step) {
  return static_cast<const KeptLoop&>(*step.loop);
}

/// Hand a call to the capture.
void capture_loop(LoopCapture& capture, const PointwiseKernel& kernel, const Out& out,
                  std::span<const PointwiseInput> inputs, std::span<const unsigned char> functor);
void capture_cast(LoopCapture& capture, const Out& out, const In& src);

}  // namespace lockstep::cuda
