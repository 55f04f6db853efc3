#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/dispatch/row_step.h"
#include "kernels/cuda/kept_loop.h"
#include "kernels/cuda/rows.h"

namespace lockstep::cuda {

/// What an operator's call gives to a RowCapture instead of queueing its kernel: a function of
/// row_steps.cuh that computes a row.
struct KeptRows final : RowStep {
  std::string function;        ///< "softmax_step<float, WarpRows, 4, 8>"
  bool is_of_blocks = false;   ///< a block computes a row, else a warp
  std::string_view arguments;  ///< the type of its first parameter, "SoftmaxStep"
  alignas(8) std::array<std::byte, 32> bytes = {};  ///< of that parameter
  size_t count = 0;                                 ///< of them
};

/// The two kinds of a step.
inline const KeptLoop& loop_of(const RowProgram::Step& step) {
  return static_cast<const KeptLoop&>(*step.loop);
}
inline const KeptRows& rows_of(const RowProgram::Step& step) {
  return static_cast<const KeptRows&>(*step.row);
}

/// Gives a call to the capture. `results` and `operands` are the function's, in its order.
template <class Arguments>
void capture_rows(RowCapture& capture, std::string function, bool is_of_blocks,
                  std::string_view type, const Arguments& arguments,
                  std::vector<const void*> results, std::vector<const void*> operands) {
  static_assert(std::is_trivially_copyable_v<Arguments> && alignof(Arguments) <= 8);
  auto step = std::make_shared<KeptRows>();
  step->function = std::move(function);
  step->is_of_blocks = is_of_blocks;
  step->arguments = type;
  static_assert(sizeof(arguments) <= sizeof(step->bytes));
  std::memcpy(step->bytes.data(), &arguments, sizeof(arguments));
  step->count = sizeof(arguments);
  capture.take({std::move(step), std::move(results), std::move(operands)});
}

/// The function `name` of row_steps.cuh for rows of a dtype that threads hold, which a strategy
/// assigns to them; not for kStream.
std::string held_function(std::string_view name, DType dtype, RowStrategy strategy);
constexpr bool is_of_blocks(RowStrategy strategy) { return rows_of_block(strategy) == 1; }

}  // namespace lockstep::cuda
