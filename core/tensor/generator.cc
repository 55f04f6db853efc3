#include "core/tensor/generator.h"

#include "core/base/check.h"

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

Generator& default_generator() {
  thread_local Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace lockstep
