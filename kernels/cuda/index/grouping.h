#pragma once

#include "core/cuda/fault_kind.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/index/grouping_params.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

// Elements that several indices name are written by one thread, in the order of the indices, so
// that results do not depend on timing: positions are sorted by the place that they write to.

/// Positions 0 .. count - 1 grouped by the place that each has: `places()` are filled in by
/// `add_index_places` or a kernel, `sort` orders them.
class Grouping {
 public:
  /// Throws ShapeError for 2^32 positions or places, or more; `op` is named.
  Grouping(const char* op, int64_t count, int64_t num_places);

  uint32_t* places() const { return place_buffers_[0]; }
  void sort();

  int64_t count() const { return count_; }
  // After sort(): positions of one place lie together and in order, those of kNoPlace last.
  const uint32_t* sorted_places() const { return place_buffers_[current_]; }
  const uint32_t* sorted_positions() const { return position_buffers_[current_]; }

 private:
  int64_t count_;
  int64_t num_places_;
  Workspace memory_;
  uint32_t* place_buffers_[2];
  uint32_t* position_buffers_[2];
  int current_ = 0;
};

/// What kernels of `op` note for an index that there is not.
inline FaultKind index_fault(const char* op) { return {op, "index out of range"}; }
/// `indices`, contiguous, of a dimension of `size`. `fault` is noted for what is out of range.
/// `wraps`: negative ones count from the end.
IndexList index_list(const FaultKind& fault, const In& indices, int64_t size, bool wraps = false);

/// Queues the kernel. The largest place must be below kNoPlace.
void add_index_places(const IndexPlaces& params);
/// Places of a list's indices: each index itself.
void read_places(uint32_t* places, const IndexList& list);

}  // namespace lockstep::cuda
