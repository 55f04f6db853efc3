#include "data/epoch_order.h"

#include <algorithm>
#include <bit>

#include "core/base/check.h"
#include "data/random_draw.h"

namespace lockstep::train {

int64_t shuffled(uint64_t seed, int64_t epoch, int64_t count, int64_t position) {
  LS_ASSERT(position >= 0 && position < count);
  constexpr uint32_t kRounds = 6;
  const auto last = static_cast<uint64_t>(count - 1);
  const int half = std::max(1, (static_cast<int>(std::bit_width(last)) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto value = static_cast<uint64_t>(position);
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t random =
          random_draw(seed, DrawStream::kEpochOrder, epoch, static_cast<int64_t>(right), round)[0];
      const uint64_t mixed = left ^ (random & mask);
      left = right;
      right = mixed;
    }
    value = left << half | right;
  } while (value > last);
  return static_cast<int64_t>(value);
}

}  // namespace lockstep::train
