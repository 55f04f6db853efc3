#include "data/weighted_turns.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.h"
#include "data/random_draw.h"

namespace lockstep::train {
namespace {

constexpr uint64_t kCircle = uint64_t{1} << 32;
constexpr uint64_t kStep = 0x9e3779b9;  // 2^32 divided by the golden ratio; odd

/// The sum of floor((a i + b) / 2^32) over 0 <= i < n, modulo 2^64. Euclid's algorithm on a and the
/// modulus (Graham, Knuth, Patashnik: Concrete Mathematics, 3.5).
uint64_t sum_of_floors(uint64_t n, uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  for (uint64_t m = kCircle; n > 0;) {
    // n (n - 1) / 2 without losing the bit that the product may lose.
    const uint64_t pairs = n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
    sum += pairs * (a / m) + n * (b / m);
    a %= m;
    b %= m;
    const uint64_t last = a * n + b;
    if (last < m) break;
    n = last / m;
    b = last % m;
    std::swap(a, m);
  }
  return sum;
}

}  // namespace

WeightedTurns::WeightedTurns(std::span<const double> weights, uint64_t seed)
    : phase_(random_draw(seed, DrawStream::kMixture, 0, 0, 0)[0] % kCircle) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    const uint64_t begin = i == 0 ? 0 : ends_.back();
    const bool is_last = i + 1 == weights.size();
    ends_.push_back(is_last ? kCircle : static_cast<uint64_t>(std::llround(0x1p32 * (sum / all))));
    LS_CHECK(
        weights[i] > 0 && std::isfinite(all) && ends_.back() > begin, ConfigError,
        "[data] the weight of source {} of a mixture is {}: expected a share of at least 2^-32 "
        "of all weights together, which are {}. Leave the source out.",
        i, weights[i], all);
  }
  LS_ASSERT(!ends_.empty());
}

/// How many of the numbers below `number` lie below `threshold` on the circle.
uint64_t WeightedTurns::turns_below(int64_t number, uint64_t threshold) const {
  // Once around, every value is met once.
  const auto n = static_cast<uint64_t>(number);
  const uint64_t rounds = n / kCircle, rest = n % kCircle;
  return rounds * threshold + rest + sum_of_floors(rest, kStep, phase_) -
         sum_of_floors(rest, kStep, phase_ + kCircle - threshold);
}

WeightedTurns::Turn WeightedTurns::turn(int64_t number) const {
  LS_ASSERT(number >= 0);
  const uint64_t at = (phase_ + static_cast<uint64_t>(number) * kStep) % kCircle;
  const auto end = std::ranges::upper_bound(ends_, at);
  const auto source = static_cast<size_t>(end - ends_.begin());
  const uint64_t begin = source == 0 ? 0 : ends_[source - 1];
  return {source, static_cast<int64_t>(turns_below(number, *end) - turns_below(number, begin))};
}

}  // namespace lockstep::train
