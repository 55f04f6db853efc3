#pragma once

#include <span>

#include "core/dispatch/element_loop.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/cpu/strided_loop.h"

namespace lockstep::cpu {

/// Hands the loop that `strided_loop` would run, on bf16 elements if `spec` is of these, to the
/// capture.
void capture_loop(LoopCapture& capture, const Out& out, std::span<const In* const> inputs,
                  const LoopSpec& spec);
/// Hands what `copy_elements` would do to the capture.
void capture_cast(LoopCapture& capture, const Out& out, const In& src);

}  // namespace lockstep::cpu
