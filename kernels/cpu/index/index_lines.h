#pragma once

#include <cstring>
#include <vector>

#include "core/tensor/kernel_arguments.h"

namespace lockstep::cpu {

// Helpers of the kernels that index along one dimension.

/// View of a contiguous tensor as [outer, size, inner] around one dimension; a 0-d tensor has one
/// element.
struct Lines {
  Lines(const TensorArg& tensor, int64_t dim) {
    if (tensor.rank == 0) return;
    const int d = static_cast<int>(dim < 0 ? dim + tensor.rank : dim);
    size = tensor.size(d);
    for (int i = 0; i < d; ++i) outer *= tensor.size(i);
    for (int i = d + 1; i < tensor.rank; ++i) inner *= tensor.size(i);
  }
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;
};

/// Copies contiguous self to out, unless out is self.
inline void start_from(const Out& out, const In& self) {
  if (self.numel == 0 || out.address == self.address) return;
  std::memcpy(out.address, self.address, static_cast<size_t>(self.numel) * size_of(self.dtype));
}

/// A contiguous argument that may alias the destination, in which case a copy of it is read.
class Source {
 public:
  Source(const In& source, const Out& out) : in_(source) {
    if (source.address != out.address || source.numel == 0) return;
    const auto* bytes = source.data<std::byte>();
    copy_.assign(bytes, bytes + static_cast<size_t>(source.numel) * size_of(source.dtype));
    in_.address = copy_.data();
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  const In& in() const { return in_; }

 private:
  In in_;
  std::vector<std::byte> copy_;
};

/// Calls visit(offset in index, offset in tensor, offset in same) for the lines [first, last) of
/// the index along `dim`. Offsets leave out the coordinate along `dim`; all three use the index's
/// coordinates.
template <class Visit>
void visit_lines(const In& index, const TensorArg& tensor, const TensorArg& same, int dim,
                 int64_t first, int64_t last, Visit visit) {
  for (int64_t line = first; line < last; ++line) {
    int64_t rest = line, at_index = 0, at_tensor = 0, at_same = 0;
    for (int d = index.rank; d-- > 0;) {
      if (d == dim) continue;
      const int64_t place = rest % index.size(d);
      rest /= index.size(d);
      at_index += place * index.stride(d);
      at_tensor += place * tensor.stride(d);
      at_same += place * same.stride(d);
    }
    visit(at_index, at_tensor, at_same);
  }
}

}  // namespace lockstep::cpu
