#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dist/fsdp/sharded_model.h"

namespace lockstep::dist {

/// What a unit's arenas need.
struct UnitSize {
  int64_t elements = 0;        ///< of the arena
  int64_t shard_elements = 0;  ///< of a rank's part of it
  bool is_trained = false;     ///< whether a parameter has a gradient
};
UnitSize size_of_unit(const std::vector<NamedTensor>& parameters, int ranks);

/// Bytes of the registered memory that the arenas of a model's steps need at one time.
struct ArenaSlots {
  std::vector<size_t> gathers;
  std::vector<size_t> sums;
};
/// `units` begin with the root's; `dtype` is that of the parameters. For steps whose units are used
/// in another way, as where several are gathered again by one that is recomputed, the slots may be
/// too few: arenas are the allocator's then.
ArenaSlots arena_slots(const ShardOptions& options, const std::vector<UnitSize>& units,
                       DType dtype);

}  // namespace lockstep::dist
