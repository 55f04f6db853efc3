#pragma once

#include "core/cuda/fault_kind.h"
#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/index/grouping_params.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

// Elements that several indices name are written by a single thread in the order of the indices, so
// that results do not depend on timing: positions are sorted by the place they write to.

/// Groups the positions 0 .. count - 1 by their places: `add_index_places` or a kernel fills in
/// `places()`, then `sort` sorts stably.
class Grouping {
 public:
  /// Throws ShapeError, naming `op`, if there are 2^32 positions or places or more.
  Grouping(const char* op, int64_t count, int64_t num_places);

  uint32_t* places() const { return place_buffers_[0]; }
  void sort();

  int64_t count() const { return count_; }
  // After sort(): positions of the same place are adjacent and in order; those of kNoPlace are
  // last.
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

/// The fault that kernels of `op` record for an index out of range.
inline FaultKind index_fault(const char* op) { return {op, "index out of range"}; }
/// Makes the argument of `read_index` from contiguous `indices` of a dimension of `size`. Indices
/// out of range record `fault`. With `wraps`, negative indices count from the end.
IndexList index_list(const FaultKind& fault, const In& indices, int64_t size, bool wraps = false);

/// Queues the kernel that adds to places. The largest place must be below kNoPlace.
void add_index_places(const IndexPlaces& params);
/// Sets the place of each position to its index.
void read_places(uint32_t* places, const IndexList& list);

}  // namespace lockstep::cuda
