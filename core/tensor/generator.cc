#include "core/tensor/generator.h"

#include <unistd.h>

#include <atomic>

#include "core/base/check.h"
#include "core/base/mix_bits.h"

namespace lockstep {

void Generator::manual_seed(uint64_t seed) {
  next_ = {};
  next_.seed = seed;
}

void Generator::set_position(uint64_t step, uint32_t micro_batch) {
  LS_CHECK(step < kMaxSteps && micro_batch < kMaxMicroBatches, IndexError,
           "[generator] position out of range: expected a step below {} and a micro-batch below "
           "{}, got {} and {}.",
           kMaxSteps, kMaxMicroBatches, step, micro_batch);
  next_.step = step;
  next_.micro_batch = micro_batch;
  next_.call = 0;
}

RandomKey Generator::next_call() {
  LS_CHECK(next_.call < kMaxCalls, IndexError,
           "[generator] {} random calls at one position (step {}, micro-batch {}) are all there "
           "are. Move on with set_position or another seed.",
           kMaxCalls, next_.step, next_.micro_batch);
  RandomKey key = next_;
  ++next_.call;
  return key;
}

namespace {

/// What manual_seed was last called with, on any thread.
std::atomic<uint64_t> process_seed = 0;
/// Threads besides the first of the process that have a generator.
std::atomic<uint64_t> threads = 0;

uint64_t first_seed_of_thread() {
  const uint64_t seed = process_seed.load();
  if (::getpid() == ::gettid()) return seed;
  return mix_bits(seed + (threads.fetch_add(1) + 1) * kGoldenRatio);
}

}  // namespace

Generator& default_generator() {
  thread_local Generator generator(first_seed_of_thread());
  return generator;
}

void manual_seed(uint64_t seed) {
  process_seed.store(seed);
  default_generator().manual_seed(seed);
}

}  // namespace lockstep
