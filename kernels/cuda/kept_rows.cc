#include "kernels/cuda/kept_rows.h"

#include <fmt/format.h>

#include "kernels/cuda/step_text.h"

namespace lockstep::cuda {

std::string held_function(std::string_view name, DType dtype, RowStrategy strategy) {
  const bool is_scalar =
      strategy == RowStrategy::kWarpScalar || strategy == RowStrategy::kBlockScalar;
  const bool is_short = strategy == RowStrategy::kWarp8 || strategy == RowStrategy::kBlock8;
  return fmt::format("{}<{}, {}, {}, {}>", name, stored_type(dtype),
                     is_of_blocks(strategy) ? "BlockRows" : "WarpRows",
                     is_scalar ? 1 : 16 / size_of(dtype), is_short ? 8 : 32);
}

}  // namespace lockstep::cuda
