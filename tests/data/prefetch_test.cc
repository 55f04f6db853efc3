#include "data/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "core/base/error.h"
#include "data/text_data.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/data/sequences.h"

namespace lockstep::train {
namespace {

/// Random tokens from a source that can be slow, and fail at one step.
class Source : public RandomTokens {
 public:
  Source() : RandomTokens(1000, 5) {}
  void sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                std::span<int64_t> targets) const override {
    if (step == failing_step) throw DataError("step " + std::to_string(step));
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    RandomTokens::sequence(step, index, inputs, targets);
    last_step = step;
  }
  int64_t failing_step = -1;
  std::chrono::milliseconds delay{0};
  mutable std::atomic<int64_t> last_step = -1;
};

constexpr int64_t kLength = 8;
constexpr int64_t kCount = 3;

StepBatch expected(const Source& source, int64_t step, int64_t first = 0) {
  StepBatch batch{std::vector<int64_t>(kLength * kCount), std::vector<int64_t>(kLength * kCount)};
  fill_sequences(source, step, first, kLength, batch.inputs, batch.targets);
  return batch;
}

void expect_step(Prefetcher& prefetcher, const Source& source, int64_t step, int64_t first = 0) {
  const StepBatch& batch = prefetcher.step(step);
  const StepBatch wanted = expected(source, step, first);
  EXPECT_EQ(batch.inputs, wanted.inputs) << "step " << step;
  EXPECT_EQ(batch.targets, wanted.targets) << "step " << step;
}

void wait_for(const Source& source, int64_t step) {
  while (source.last_step < step) std::this_thread::yield();
}

TEST(Prefetcher, GivesTheSourcesBatchesInOrder) {
  const Source source;
  for (const int depth : {1, 2, 5}) {
    Prefetcher prefetcher(source, kLength, 4, kCount, 10, depth);
    for (int64_t step = 10; step < 200; ++step) expect_step(prefetcher, source, step, 4);
  }
}

TEST(Prefetcher, AnyStepMayBeAskedFor) {
  const Source source;
  Prefetcher prefetcher(source, kLength, 0, kCount);
  for (const int64_t step : {0, 1, 1, 2, 50, 51, 3, 4, 4, 0, 1, 3, 5, 1000000, 0, 2}) {
    expect_step(prefetcher, source, step);
  }
}

TEST(Prefetcher, StepsArePreparedWhileTheConsumerIsBusy) {
  const Source source;
  Prefetcher prefetcher(source, kLength, 0, kCount, 0, 2);
  prefetcher.step(0);
  wait_for(source, 2);
  // When step 2 has been written, step 1 is available.
  prefetcher.step(1);
  EXPECT_EQ(prefetcher.wait_ms(), 0);
}

TEST(Prefetcher, WaitingIsMeasured) {
  Source source;
  source.delay = std::chrono::milliseconds(5);
  Prefetcher prefetcher(source, kLength, 0, kCount);
  prefetcher.step(7);
  EXPECT_GE(prefetcher.wait_ms(), 5);
}

TEST(Prefetcher, AFailureReachesTheStepItBelongsTo) {
  Source source;
  source.failing_step = 2;
  Prefetcher prefetcher(source, kLength, 0, kCount);
  prefetcher.step(0);
  prefetcher.step(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(message_of<DataError>([&] { prefetcher.step(2); }), "step 2");
  }
  EXPECT_NO_THROW(prefetcher.step(3));
  EXPECT_NO_THROW(prefetcher.step(1));
  EXPECT_EQ(message_of<DataError>([&] { prefetcher.step(2); }), "step 2");
}

TEST(Prefetcher, EndsWithoutWaitingForAllThatWasPlanned) {
  Source source;
  source.delay = std::chrono::milliseconds(20);
  const auto start = std::chrono::steady_clock::now();
  { const Prefetcher prefetcher(source, kLength, 0, 500); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace lockstep::train
