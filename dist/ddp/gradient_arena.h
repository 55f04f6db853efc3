#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Memory of the gradients of one dtype on one device, in rows: a row holds every parameter's
/// gradient once, each in a slot, with gaps between slots that stay zero. Several rows hold the
/// partial sums of several leaves (dist/collectives/leaf_tree.h). Not thread-safe.
class GradientArena {
 public:
  /// Allocates the arena, filled with zeros: from the group's registered memory if `group` is not
  /// null and has some. Collective over the group then.
  GradientArena(int64_t rows, int64_t elements, DType dtype, Device device,
                ProcessGroup* group = nullptr);

  int64_t rows() const { return flat_.size(0); }
  int64_t elements() const { return flat_.size(1); }
  /// The gradient of `parameter` at `offset` of a row: contiguous, with its own Storage object over
  /// the arena's memory and its own version counter.
  Tensor slot(int64_t row, int64_t offset, const Tensor& parameter) const;
  /// Elements `first` to `end` - 1 of a row, as a vector.
  Tensor range(int64_t row, int64_t first, int64_t end) const;
  /// Elements `first` to `end` - 1 of the first `rows` rows, as a matrix.
  Tensor ranges(int64_t rows, int64_t first, int64_t end) const;
  int64_t bytes() const;

 private:
  Tensor flat_;  ///< [rows, elements]
};

/// A contiguous tensor of the sizes of `like` over `flat`, from its element `first` on: with its
/// own Storage object over the memory of `flat`, and its own version counter.
Tensor window_like(const Tensor& flat, int64_t first, const Tensor& like);

}  // namespace lockstep::dist
