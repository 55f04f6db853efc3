#include "dist/fsdp/arena_slots.h"

#include <algorithm>

#include "dist/fsdp/shard_layout.h"

namespace lockstep::dist {

namespace {

/// Slots for arenas of units, each of as many bytes as the unit's.
using UnitBytes = std::vector<size_t>;

/// Adds a slot for the root's and, of the other units', for the largest `most` at one time.
void add_slots(std::vector<size_t>& slots, const UnitBytes& units, size_t most) {
  if (units.empty()) return;
  slots.push_back(units.front());
  const size_t others = units.size() - 1;
  if (others == 0) return;
  const size_t largest = *std::max_element(units.begin() + 1, units.end());
  slots.insert(slots.end(), std::min(most, others), largest);
}

void append(std::vector<size_t>& slots, const UnitBytes& units) {
  slots.insert(slots.end(), units.begin(), units.end());
}

}  // namespace

UnitSize size_of_unit(const std::vector<NamedTensor>& parameters, int ranks) {
  std::vector<int64_t> elements;
  for (const NamedTensor& each : parameters) elements.push_back(each.tensor.numel());
  const ShardLayout layout(elements, ranks);
  return {.elements = layout.elements(),
          .shard_elements = layout.shard_elements(),
          .is_trained = std::ranges::any_of(
              parameters, [](const NamedTensor& each) { return each.tensor.requires_grad(); })};
}

ArenaSlots arena_slots(const ShardOptions& options, const std::vector<UnitSize>& units,
                       DType dtype) {
  const size_t width = size_of(dtype);
  const size_t gathered_width = options.gather_dtype ? size_of(*options.gather_dtype) : width;
  const size_t sent_width = options.reduce_dtype ? size_of(*options.reduce_dtype) : width;
  const bool keeps_whole = options.strategy == ShardStrategy::kShardOptimizer;
  UnitBytes gathers, sums, received;
  for (const UnitSize& unit : units) {
    const bool is_root = gathers.empty();
    const size_t each = is_root || keeps_whole ? width : gathered_width;
    gathers.push_back(static_cast<size_t>(unit.elements) * each);
    const size_t trained = unit.is_trained ? sent_width : 0;
    sums.push_back(static_cast<size_t>(unit.elements) * trained);
    received.push_back(static_cast<size_t>(unit.shard_elements) * trained);
  }

  ArenaSlots slots;
  if (keeps_whole || options.strategy == ShardStrategy::kShardGradOp) {
    append(slots.gathers, gathers);
  } else {
    // The unit that computes, the next, and what is gathered ahead besides.
    size_t largest = 1;
    for (size_t i = 1; i < units.size(); ++i) {
      largest = std::max(largest, static_cast<size_t>(units[i].elements) * width);
    }
    add_slots(slots.gathers, gathers, 2 + static_cast<size_t>(options.prefetch_bytes) / largest);
  }
  // A reduction waits for the one before the last. Backward has come to the next unit meanwhile, or
  // to two; the gradients of all units stay until the end where they are added up.
  const bool stay = options.accumulates && !options.reduce_dtype;
  if (stay) {
    append(slots.sums, sums);
  } else {
    add_slots(slots.sums, sums, kReductionsUnderWay + 2);
  }
  add_slots(slots.sums, received, kReductionsUnderWay + 1);
  return slots;
}

}  // namespace lockstep::dist
