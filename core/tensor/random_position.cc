#include "core/tensor/random_position.h"

#include <array>
#include <cstddef>

#include "core/tensor/generator.h"

namespace lockstep {

RandomPosition position_of(const RandomKey& key) {
  const std::array<uint32_t, 4> counter = key.counter(0);
  const auto joined = [&](size_t i) {
    return counter[i] | (static_cast<uint64_t>(counter[i + 1]) << 32);
  };
  return {{key.key()[0], key.key()[1]}, joined(0), joined(2)};
}

RandomPosition distance(const RandomKey& from, const RandomKey& to) {
  const RandomPosition begin = position_of(from);
  RandomPosition way = position_of(to);
  const uint64_t borrow = way.low < begin.low ? 1 : 0;
  way.low -= begin.low;
  way.high -= begin.high + borrow;
  return way;
}

}  // namespace lockstep
