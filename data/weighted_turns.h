#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::train {

/// Deals the numbers 0, 1, 2, ... to sources in proportion to their weights. A pure function: the
/// source of any number and how many numbers before it went to the same source are computed without
/// those before it, in O(log number).
///
/// Number n goes to the source in whose part of the unit interval, cut by weight, the fractional
/// part of phase + n * golden ratio lies (a Weyl sequence, in 32 bits). Among any N numbers that
/// follow each other a source gets N times its share, to within a number that grows as log N.
class WeightedTurns {
 public:
  /// Turns of one source among those of all.
  struct Turn {
    size_t source = 0;
    int64_t position = 0;  ///< turns of this source before it
  };

  /// Throws ConfigError unless all weights are positive and each share of their sum is at least
  /// 2^-32. `seed` determines the phase.
  WeightedTurns(std::span<const double> weights, uint64_t seed);

  /// The turn of `number` (at least 0).
  Turn turn(int64_t number) const;

 private:
  uint64_t turns_below(int64_t number, uint64_t threshold) const;

  uint64_t phase_ = 0;
  std::vector<uint64_t> ends_;  ///< of the sources' parts, in units of 2^-32
};

}  // namespace lockstep::train
