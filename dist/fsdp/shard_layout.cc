#include "dist/fsdp/shard_layout.h"

#include <algorithm>

#include "core/base/check.h"
#include "dist/ddp/bucket_plan.h"

namespace lockstep::dist {

namespace {

int64_t quotient_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

ShardLayout::ShardLayout(std::span<const int64_t> elements, int ranks)
    : ranks_(ranks), sizes_(elements.begin(), elements.end()) {
  LS_ASSERT(ranks >= 1);
  int64_t blocks = 0;
  for (const int64_t size : sizes_) {
    offsets_.push_back(blocks * kGradientAlignment);
    blocks += quotient_up(size, kGradientAlignment);
  }
  shard_ = quotient_up(blocks, ranks) * kGradientAlignment;
}

std::vector<ShardSlice> ShardLayout::slices(int rank) const {
  const int64_t begin = rank * shard_, end = begin + shard_;
  std::vector<ShardSlice> result;
  for (uint32_t i = 0; i < sizes_.size(); ++i) {
    const int64_t first = std::max(offsets_[i], begin);
    const int64_t last = std::min(offsets_[i] + sizes_[i], end);
    if (first < last) result.push_back({i, first - offsets_[i], last - offsets_[i], first - begin});
  }
  return result;
}

std::vector<ShardLayout::Gap> ShardLayout::gaps() const {
  std::vector<Gap> result;
  int64_t at = 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (offsets_[i] > at) result.push_back({at, offsets_[i]});
    at = offsets_[i] + sizes_[i];
  }
  if (at < elements()) result.push_back({at, elements()});
  return result;
}

}  // namespace lockstep::dist
