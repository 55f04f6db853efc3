#include "core/tensor/byte_range.h"

#include "core/tensor/tensor.h"

namespace lockstep {

ByteRange byte_range(const TensorImpl& tensor) {
  if (tensor.numel == 0) return {};
  const auto element = static_cast<int64_t>(size_of(tensor.dtype));
  int64_t first = tensor.offset;
  int64_t last = first;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    const int64_t reach = (tensor.sizes[i] - 1) * tensor.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  return {first * element, (last + 1) * element};
}

}  // namespace lockstep
