#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "core/cuda/fault.h"
#include "core/cuda/launch.h"
#include "core/kernel_scope.h"

namespace lockstep::cuda {

/// Queues a kernel on the stream of the operator's call: see core/cuda/launch.h.
template <class Params>
void launch(std::span<const void* const> images, const char* kernel, const LaunchShape& shape,
            const Params& params) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096);
  launch(kernel_stream(), images, kernel, shape, &params);
}
/// For a kernel of one module: `launch(kImage, "softmax_f32", shape, params)`, kImage being what
/// NAME.fatbin.h defines.
template <class Params>
void launch(const void* image, const char* kernel, const LaunchShape& shape, const Params& params) {
  launch(std::span(&image, 1), kernel, shape, params);
}

/// Blocks for `items` pieces of work when each block takes `per_block` at a time and goes on with
/// those `blocks * per_block` further: no more than fill any GPU several times over.
constexpr unsigned blocks_for(int64_t items, int64_t per_block, int64_t most = 132 * 32) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + per_block - 1) / per_block, 1, most));
}

/// Where kernels of this call note that an element is none that the operator takes; they go on
/// without it, and the next synchronisation throws "[op] what: expected ..., got ...".
Fault* fault_place(const std::string& op, const std::string& what);

}  // namespace lockstep::cuda
