#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

/// The random bits of one call of a random operator. Element i is a function of these bits and of i
/// alone (core/base/philox.h), so it can be drawn without drawing the elements before it.
///
/// The Philox key is the seed. The 128-bit counter holds, from the lowest bit,
///   [ group: 46 bits | call: 24 | micro-batch: 18 | step: 40 ]
/// where one group of 128 random bits serves a few neighbouring elements.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t micro_batch = 0;
  uint32_t call = 0;

  std::array<uint32_t, 2> key() const {
    return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  }
  std::array<uint32_t, 4> counter(uint64_t group) const {
    const uint64_t low = group | (static_cast<uint64_t>(call) << 46);
    const uint64_t high = (call >> 18) | (static_cast<uint64_t>(micro_batch) << 6) | (step << 24);
    return {static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32),
            static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32)};
  }
  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

/// Numbers the random calls, by (seed, step, micro-batch, call number). There is no running state:
/// a run that is resumed at a step, or whose micro-batches move to other ranks, draws the same
/// numbers. Not thread-safe.
class Generator {
 public:
  static constexpr uint64_t kMaxSteps = uint64_t{1} << 40;
  static constexpr uint32_t kMaxMicroBatches = uint32_t{1} << 18;
  static constexpr uint32_t kMaxCalls = uint32_t{1} << 24;

  explicit Generator(uint64_t seed = 0) { manual_seed(seed); }

  /// Resets to step 0, micro-batch 0, call 0 with a new seed.
  void manual_seed(uint64_t seed);
  /// Moves to the first call of a micro-batch of a step. Throws IndexError beyond 2^40 steps or
  /// 2^18 micro-batches.
  void set_position(uint64_t step, uint32_t micro_batch);
  /// Reserves one call number. Throws IndexError after 2^24 calls at one position.
  RandomKey next_call();

  uint64_t seed() const { return next_.seed; }
  /// The key that `next_call` will return. Recomputation saves it, and passes it to `set_state` to
  /// draw the same numbers again.
  const RandomKey& state() const { return next_; }
  void set_state(const RandomKey& state) { next_ = state; }

 private:
  RandomKey next_;
};

/// The calling thread's own generator, used if no generator is given. One for each thread, so that
/// ranks that are threads of one process do not disturb each other.
///
/// Until `manual_seed` is called on it, the first thread of the process has the process' seed: that
/// of the last `manual_seed` on any thread, 0 without one. Every other thread draws numbers of its
/// own, from a seed that is derived, at its first use, from the process' seed and from how many
/// threads came before it. Threads that must draw the same numbers in every run call `manual_seed`.
Generator& default_generator();
/// Seeds the calling thread's default generator, and the process for threads that have none yet.
void manual_seed(uint64_t seed);

}  // namespace lockstep
