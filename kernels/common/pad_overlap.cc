#include "kernels/common/pad_overlap.h"

#include <algorithm>

namespace lockstep {

PadOverlap::PadOverlap(const Out& out, const In& self, IntList pad) {
  for (int d = 0; d < self.rank; ++d) {
    const size_t pair = 2 * static_cast<size_t>(self.rank - 1 - d);
    const int64_t before = pair < pad.size() ? pad[pair] : 0;
    const int64_t after = pair < pad.size() ? pad[pair + 1] : 0;
    const int64_t length =
        self.size(d) + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    lengths.push_back(length);
    if (length <= 0) {
      is_empty_ = true;  // the pads reach beyond both tensors, and their offsets may not fit int64
      continue;
    }
    to += std::max<int64_t>(before, 0) * out.stride(d);
    from += std::max<int64_t>(-before, 0) * self.stride(d);
  }
}

}  // namespace lockstep
