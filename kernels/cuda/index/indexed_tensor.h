#pragma once

#include <optional>

#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

// Host code shared by the kernels that read or write at indices.

/// A contiguous tensor that indices name elements of, as [before][place][after][inner]: a place of
/// p begins at p * inner. Strides and counts are in elements.
struct IndexedTensor {
  int64_t before = 1;
  int64_t before_stride = 0;
  int64_t places = 1;  ///< that are read or written, not all that there are
  int64_t after = 1;
  Dims after_sizes;
  Dims after_strides;
  int64_t inner = 1;

  int64_t numel() const { return before * places * after * inner; }
};

/// A contiguous tensor indexed along one dimension: [before][place][inner]; a 0-d one has one
/// element.
IndexedTensor indexed_along(const TensorArg& tensor, int64_t dim, int64_t places);

/// to = what `list` names of `from`; all tensors contiguous.
void read_indexed(const Out& to, const In& from, const IndexedTensor& indexed,
                  const IndexList& list);

/// Copies contiguous self to out, unless out is self.
void start_from(const Out& out, const In& self);

/// A contiguous argument that may be the destination itself: then a copy of it is read.
class Source {
 public:
  Source(const In& source, const Out& out);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  const In& in() const { return in_; }

 private:
  In in_;
  std::optional<Workspace> copy_;
};

/// The geometry of one element when `tensor` is 0-d.
template <class Arg>
Arg at_least_1d(Arg tensor) {
  static constexpr int64_t kOne = 1;
  if (tensor.rank == 0) {
    tensor.rank = 1;
    tensor.size_data = tensor.stride_data = &kOne;
  }
  return tensor;
}

}  // namespace lockstep::cuda
