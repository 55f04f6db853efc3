#pragma once

#include <optional>
#include <string_view>

#include "core/tensor/kernel_arguments.h"
#include "kernels/cuda/index/index_list.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

// Host code shared by the kernels that read or write by index.

/// View of an indexed contiguous tensor as [before][place][after][inner]; place p starts at p *
/// inner. Strides and counts are in elements.
struct IndexedTensor {
  int64_t before = 1;
  int64_t before_stride = 0;
  int64_t places = 1;  ///< number of places read or written, not of all places
  int64_t after = 1;
  Dims after_sizes;
  Dims after_strides;
  int64_t inner = 1;

  int64_t numel() const { return before * places * after * inner; }
};

/// Views a contiguous tensor that is indexed along one dimension as [before][place][inner]; a 0-d
/// tensor has one element.
IndexedTensor indexed_along(const TensorArg& tensor, int64_t dim, int64_t places);

/// Copies the elements of `from` that `list` names to `to`; all tensors are contiguous.
void read_indexed(const Out& to, const In& from, const IndexedTensor& indexed,
                  const IndexList& list);

/// Numbers of rows of a table along its first dimension, as `op` reads them: embedding,
/// index_select or index.
IndexList list_of_rows(std::string_view op, const In& numbers, int64_t rows, bool wraps);

/// Copies contiguous self to out, unless out is self.
void start_from(const Out& out, const In& self);

/// A contiguous argument that may alias the destination, in which case a copy of it is read.
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

}  // namespace lockstep::cuda
