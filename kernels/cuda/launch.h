#pragma once

#include <algorithm>
#include <type_traits>

#include "core/cuda/fault.h"
#include "core/cuda/fault_kind.h"
#include "core/cuda/launch.h"
#include "core/device/kernel_scope.h"

namespace lockstep::cuda {

/// Queues a kernel on the stream of the operator's call: see core/cuda/launch.h.
template <class Params>
void launch(Kernel kernel, const LaunchShape& shape, const Params& params) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= 4096);
  launch(kernel_stream(), kernel, shape, &params);
}

/// Blocks for `items` pieces of work when each block takes `per_block` at a time and goes on with
/// those `blocks * per_block` further: so many that the last ones to run are a small part of all.
constexpr unsigned blocks_for(int64_t items, int64_t per_block, int64_t most = 132 * 256) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + per_block - 1) / per_block, 1, most));
}

/// Where kernels of this call note that an element is none that the operator takes; they go on
/// without it, and the next synchronisation throws "[op] what: expected ..., got ...".
Fault* fault_place(const FaultKind& kind);

}  // namespace lockstep::cuda
