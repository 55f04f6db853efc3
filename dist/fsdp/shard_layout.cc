#include "dist/fsdp/shard_layout.h"

#include <algorithm>

#include "core/base/check.h"

namespace lockstep::dist {

ShardLayout::ShardLayout(std::span<const int64_t> elements, int ranks)
    : ranks_(ranks), sizes_(elements.begin(), elements.end()) {
  LS_ASSERT(ranks >= 1);
  int64_t blocks = 0;
  for (const int64_t size : sizes_) {
    offsets_.push_back(blocks * kShardBlock);
    blocks += blocks_of(size);
  }
  shard_ = (blocks + ranks - 1) / ranks * kShardBlock;
}

std::optional<ShardSlice> ShardLayout::slice(uint32_t parameter, int rank) const {
  const int64_t begin = rank * shard_, offset = offsets_[parameter];
  const int64_t first = std::max(offset, begin);
  const int64_t end = std::min(offset + sizes_[parameter], begin + shard_);
  if (first >= end) return std::nullopt;
  return ShardSlice{parameter, first - offset, end - offset, first - begin};
}

std::vector<ShardSlice> ShardLayout::slices(int rank) const {
  std::vector<ShardSlice> result;
  for (uint32_t i = 0; i < sizes_.size(); ++i) {
    if (const auto each = slice(i, rank)) result.push_back(*each);
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
