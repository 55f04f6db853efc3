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

/// Number of blocks for `items` work items, if each block processes `per_block` at a time and
/// continues at stride `blocks * per_block`. `most` is large enough that the last wave of blocks is
/// a small part of all (256 per SM of a GPU with 132).
constexpr unsigned blocks_for(int64_t items, int64_t per_block, int64_t most = 132 * 256) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + per_block - 1) / per_block, 1, most));
}

/// Where kernels of this call record an invalid element; they skip it, and the next synchronisation
/// throws "[op] what: expected ..., got ...".
Fault* fault_place(const FaultKind& kind);

}  // namespace lockstep::cuda
