#include "compile/recorder.h"

#include <gtest/gtest.h>

#include <functional>

#include "compile/program.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/allocator.h"

namespace lockstep::compiler {
namespace {

/// MiB that are on loan at most while `call` is recorded, above what was before.
double recording_peak(const std::function<void()>& call) {
  Allocator& memory = allocator(kCPU);
  const int64_t before = memory.stats().allocated;
  memory.reset_peak();
  Recorder recorder;
  {
    const ModeGuard recording(recorder);
    call();
  }
  EXPECT_EQ(recorder.failure(), "");
  return static_cast<double>(memory.stats().peak_allocated - before) / (1 << 20);
}

Tensor mebibyte() { return ones({1 << 18}); }

TEST(Recorder, LetsGoOfWhatWasUsedLast) {
  const double peak = recording_peak([] {
    Tensor x = mebibyte();
    for (int i = 0; i < 100; ++i) x = tanh(x).mul(2);
  });
  EXPECT_LE(peak, 6);
}

TEST(Recorder, LetsGoOfWhatIsDroppedWithoutAnotherUse) {
  const double peak = recording_peak([] {
    for (int round = 0; round < 4; ++round) {
      std::vector<Tensor> held;
      for (int i = 0; i < 40; ++i) held.push_back(mebibyte());
      held.clear();
      Tensor x = mebibyte();
      for (int i = 0; i < 20; ++i) x = neg(x);
    }
  });
  EXPECT_LE(peak, 48);
}

TEST(Recorder, KnowsATensorThatLiesInMemoryThatWasFreed) {
  Recorder recorder;
  const ModeGuard recording(recorder);
  Tensor last;
  for (int i = 0; i < 50; ++i) {
    const Tensor x = mebibyte();  // where the one before lay
    last = x.view({512, 512}).t().add(x.sum());
  }
  EXPECT_EQ(recorder.failure(), "");
  EXPECT_EQ(recorder.value_of(last), recorder.graph().nodes.back().results[0]);
}

}  // namespace
}  // namespace lockstep::compiler
