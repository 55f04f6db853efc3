#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::dist {

/// Shards are cut at multiples of this many elements of a parameter: the blocks of the norms, whose
/// sums then are each of one rank.
inline constexpr int64_t kShardBlock = 4096;
/// Number of such blocks that `elements` elements take.
inline int64_t blocks_of(int64_t elements) { return (elements + kShardBlock - 1) / kShardBlock; }

/// A run of elements of one parameter that lies in a rank's shard.
struct ShardSlice {
  uint32_t parameter = 0;  ///< index within the unit
  int64_t first = 0;       ///< elements `first` to `end` - 1 of the flattened parameter
  int64_t end = 0;
  int64_t offset = 0;  ///< of element `first` within the shard

  int64_t size() const { return end - first; }
  friend bool operator==(const ShardSlice&, const ShardSlice&) = default;
};

/// Where the parameters of one unit lie in its arena, and which part of the arena each rank keeps.
///
/// Parameters follow one another, each from a multiple of kShardBlock elements. A shard is a
/// contiguous run of such blocks, of the same length on every rank: the arena is padded to a
/// multiple of ranks x kShardBlock elements. So a gather of the shards is the
/// arena, without a copy, and a block of a parameter belongs to exactly one rank.
class ShardLayout {
 public:
  /// `elements`: the parameters' numbers of elements, in order; `ranks` at least 1.
  ShardLayout(std::span<const int64_t> elements, int ranks);

  int ranks() const { return ranks_; }
  /// First element of a parameter in the arena.
  int64_t offset(uint32_t parameter) const { return offsets_[parameter]; }
  /// Elements of the arena: ranks() * shard_elements().
  int64_t elements() const { return shard_ * ranks_; }
  int64_t shard_elements() const { return shard_; }
  /// What rank `rank` keeps, in the order of the arena.
  std::vector<ShardSlice> slices(int rank) const;
  /// What rank `rank` keeps of one parameter, if anything.
  std::optional<ShardSlice> slice(uint32_t parameter, int rank) const;

  /// A run of the arena that belongs to no parameter.
  struct Gap {
    int64_t first = 0;
    int64_t end = 0;
  };
  std::vector<Gap> gaps() const;

 private:
  int ranks_;
  int64_t shard_ = 0;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> offsets_;
};

}  // namespace lockstep::dist
