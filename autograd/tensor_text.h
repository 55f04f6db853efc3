#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "core/tensor/tensor.h"

namespace lockstep {

/// How the elements of a tensor are written.
struct PrintOptions {
  int precision = 4;         ///< digits after the point
  int64_t threshold = 1000;  ///< a tensor with more elements is summarised
  int64_t edge_items = 3;    ///< what a summary has of each dimension, at its start and at its end
  int64_t line_width = 80;   ///< columns
  std::optional<bool> scientific = std::nullopt;  ///< 1.5000e+00; by default where it is shorter
};

/// The elements as PyTorch and NumPy print them, in one notation for the whole tensor, and what is
/// not the default: device, dtype, size where no element is shown, and autograd's state.
///
///     tensor([[1.0000, 0.5000],
///             [0.2500, 0.1250]], dtype=float64, grad_fn=<MulBackward0>)
///
/// Waits for the tensor's device, and copies only what is shown. A tensor inside vmap shows its
/// size alone; an undefined one is "tensor(undefined)".
std::string format_tensor(const Tensor& tensor, const PrintOptions& options = {});

/// Writes format_tensor(tensor).
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);
/// What a tensor tells of itself: "float32", "cuda:0", "[2, 3]" for sizes and strides.
std::ostream& operator<<(std::ostream& out, DType dtype);
std::ostream& operator<<(std::ostream& out, Device device);
std::ostream& operator<<(std::ostream& out, IntList list);

}  // namespace lockstep
