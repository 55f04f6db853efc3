#include "data/staged_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "core/device/stream_sanitizer.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/tensor/stream.h"
#include "tests/core/device/sanitized_streams.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr Device kHost0{DeviceType::kHost, 0};
constexpr int64_t kSize = 4096;

float value_of(int64_t batch, int64_t first) { return static_cast<float>(100 * batch + first); }

/// Micro-batches of one tensor whose elements are value_of(batch, first), and the calls that filled
/// them.
struct Batches {
  explicit Batches(Device device)
      : staged(device, {{{kSize}, DType::kF32}},
               [this](int64_t batch, int64_t first, std::span<const Tensor> into) {
                 filled.emplace_back(batch, first);
                 if (fails) throw std::runtime_error("no more data");
                 into[0].fill_(value_of(batch, first));
                 return 1000 + first;
               }) {}

  /// The last element of the micro-batch.
  float last_of(int64_t batch, int64_t first) {
    const StagedBatches::MicroBatch got = staged.get(batch, first);
    EXPECT_EQ(got.targets, 1000 + first);
    return got.tensors.at(0).to(kCPU).data<float>()[kSize - 1];
  }
  std::vector<std::pair<int64_t, int64_t>> taken() { return std::exchange(filled, {}); }

  std::vector<std::pair<int64_t, int64_t>> filled;
  bool fails = false;
  StagedBatches staged;
};

TEST(StagedBatches, OnTheCpuAreFilledWhenTheyAreAskedFor) {
  Batches batches(kCPU);
  EXPECT_EQ(batches.last_of(3, 2), value_of(3, 2));
  batches.staged.prefetch_after(3, 2, 2, 0, 8);
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(3, 2)));
  EXPECT_EQ(batches.last_of(3, 4), value_of(3, 4));
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(3, 4)));
}

TEST(StagedBatches, ThePrefetchedOneIsNotFilledAgain) {
  Batches batches(kHost0);
  EXPECT_EQ(batches.last_of(0, 2), value_of(0, 2));
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(0, 2)));
  for (int64_t batch = 0; batch < 4; ++batch) {
    batches.staged.prefetch_after(batch, 2, 2, 2, 6);
    EXPECT_THAT(batches.taken(), ElementsAre(Pair(batch, 4)));
    EXPECT_EQ(batches.last_of(batch, 4), value_of(batch, 4));
    batches.staged.prefetch_after(batch, 4, 2, 2, 6);
    EXPECT_THAT(batches.taken(), ElementsAre(Pair(batch + 1, 2)));
    EXPECT_EQ(batches.last_of(batch + 1, 2), value_of(batch + 1, 2));
    EXPECT_THAT(batches.taken(), IsEmpty());
  }
}

TEST(StagedBatches, AnotherOneThanThePrefetchedIsFilled) {
  Batches batches(kHost0);
  EXPECT_EQ(batches.last_of(0, 0), value_of(0, 0));
  batches.staged.prefetch_after(0, 0, 2, 0, 4);
  batches.taken();
  EXPECT_EQ(batches.last_of(1, 2), value_of(1, 2));
  EXPECT_EQ(batches.last_of(0, 0), value_of(0, 0));
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(1, 2), Pair(0, 0)));
}

TEST(StagedBatches, AMicroBatchIsHandedOutOnce) {
  Batches batches(kHost0);
  EXPECT_EQ(batches.last_of(0, 0), value_of(0, 0));
  EXPECT_EQ(batches.last_of(0, 0), value_of(0, 0));
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(0, 0), Pair(0, 0)));
}

TEST(StagedBatches, TheNextBatchIsExpectedOnlyAfterBatchesInOrder) {
  Batches batches(kHost0);
  const auto train_on = [&](int64_t batch) {
    batches.last_of(batch, 0);
    batches.taken();
    batches.staged.prefetch_after(batch, 0, 2, 0, 2);
    return batches.taken();
  };
  EXPECT_THAT(train_on(5), ElementsAre(Pair(6, 0)));
  EXPECT_THAT(train_on(6), ElementsAre(Pair(7, 0)));
  EXPECT_THAT(train_on(3), IsEmpty());
  EXPECT_THAT(train_on(5), IsEmpty());
  EXPECT_THAT(train_on(5), IsEmpty());
  EXPECT_THAT(train_on(6), ElementsAre(Pair(7, 0)));
}

TEST(StagedBatches, OneThatCouldNotBeFilledIsFilledWhenItIsAskedFor) {
  Batches batches(kHost0);
  batches.last_of(0, 0);
  batches.staged.prefetch_after(0, 0, 2, 0, 8);
  EXPECT_EQ(batches.last_of(0, 2), value_of(0, 2));
  batches.fails = true;
  EXPECT_THROW(batches.staged.prefetch_after(0, 2, 2, 0, 8), std::runtime_error);
  batches.fails = false;
  batches.taken();
  EXPECT_EQ(batches.last_of(0, 4), value_of(0, 4));
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(0, 4)));
}

TEST(StagedBatches, AFailureDoesNotLeaveTheMicroBatchThatTheBufferHeldBefore) {
  Batches batches(kHost0);
  // Both buffers hold micro-batches that nobody took.
  batches.staged.prefetch_after(0, 0, 2, 0, 8);
  batches.staged.prefetch_after(0, 2, 2, 0, 8);
  batches.fails = true;
  EXPECT_THROW(batches.staged.get(0, 6), std::runtime_error);
  batches.fails = false;
  batches.taken();
  EXPECT_EQ(batches.last_of(0, 2), value_of(0, 2));
  EXPECT_THAT(batches.taken(), ElementsAre(Pair(0, 2)));
}

TEST(StagedBatches, CopiesAreOrderedWithTheStreamThatComputes) {
  const SanitizedStreams sanitized;
  const OwnedStream stream(kHost0);
  const StreamGuard guard(stream.get());
  const int64_t reports = stream_sanitizer::reports();
  Batches batches(kHost0);
  std::vector<Tensor> sums;
  for (int64_t batch = 0; batch < 32; ++batch) {
    {
      const StagedBatches::MicroBatch got = batches.staged.get(batch, 0);
      sums.push_back(add(got.tensors[0], got.tensors[0]));
    }
    batches.staged.prefetch_after(batch, 0, 1, 0, 1);
  }
  for (int64_t batch = 0; batch < 32; ++batch) {
    EXPECT_EQ(sums[static_cast<size_t>(batch)].to(kCPU).data<float>()[0], 2 * value_of(batch, 0));
  }
  EXPECT_EQ(stream_sanitizer::reports(), reports);
}

}  // namespace
}  // namespace lockstep::train
