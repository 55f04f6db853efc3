#include "dist/nccl/nccl_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dist/rendezvous/job_control.h"
#include "dist/transport/thread_transport.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kTrio = 5;

/// The control of rank 1 of a job of five that counts what is posted to each rank.
class CountingControl final : public JobControl {
 public:
  explicit CountingControl(std::vector<int>& posts) : posts_(posts) {}

  int rank() const override { return 1; }
  int size() const override { return static_cast<int>(posts_.size()); }
  void fail(const std::string&) noexcept override {}
  std::optional<Failure> failure() const override { return std::nullopt; }
  void leave() noexcept override {}
  void post(int to, std::string) noexcept override { ++posts_[static_cast<size_t>(to)]; }
  void listen(Listener) override {}

 private:
  std::vector<int>& posts_;
};

/// The comparison of rank 1 in a group of ranks 1, 2 and 4.
class NcclComparisonTest : public testing::Test {
 protected:
  uint64_t call(uint64_t sequence, uint32_t tensors = 1) {
    return communicator_->recorder().queued(
        {.group = kTrio, .sequence = sequence, .kind = OpKind::kAllReduce, .count = 10}, "trio",
        tensors);
  }
  /// Looks every 10 ms for this long and returns when others were asked, in milliseconds from the
  /// first look of all.
  std::vector<int64_t> asked_during(milliseconds time) {
    std::vector<int64_t> asked;
    for (const milliseconds end = passed_ + time; passed_ < end; passed_ += 10ms) {
      const int before = posts_[2];
      comparison_.look(begin_ + passed_);
      if (posts_[2] != before) asked.push_back(passed_.count());
    }
    return asked;
  }

  std::vector<int> posts_ = std::vector<int>(5);
  const std::shared_ptr<Communicator> communicator_ = std::make_shared<Communicator>(
      [this] {
        return Connections{std::move(thread_transports(1)[0]),
                           std::make_unique<CountingControl>(posts_)};
      },
      Communicator::Options{});
  NcclComparison comparison_{communicator_, kTrio, {1, 2, 4}, 0};
  const NcclComparison::Clock::time_point begin_ = NcclComparison::Clock::now();
  milliseconds passed_{0};
};

TEST_F(NcclComparisonTest, AsksAfterASecondAndThenAtGrowingIntervals) {
  EXPECT_THAT(asked_during(1s), IsEmpty()) << "nothing is called";
  call(0);
  // The first look at it is at 1 s.
  EXPECT_THAT(asked_during(33s), ElementsAre(2000, 4000, 8000, 16000, 24000, 32000));
  EXPECT_THAT(posts_, ElementsAre(0, 0, 6, 0, 6)) << "the other ranks of the group";
}

TEST_F(NcclComparisonTest, BeginsAnewWithEachOperation) {
  const uint64_t first = call(0);
  call(1);
  EXPECT_THAT(asked_during(4s), ElementsAre(1000, 3000));
  communicator_->recorder().ended(first, false);
  EXPECT_THAT(asked_during(4s), ElementsAre(5000, 7000));
}

TEST_F(NcclComparisonTest, OfACallInPartsAsksForEach) {
  for (uint64_t sequence = 0; sequence < 3; ++sequence) call(sequence, 3);
  call(3);
  EXPECT_THAT(asked_during(2s), ElementsAre(1000));
  EXPECT_EQ(posts_[2], 3);
}

TEST_F(NcclComparisonTest, OfACallInThousandsOfPartsAsksForTheFirst) {
  for (uint64_t sequence = 0; sequence < 1000; ++sequence) call(sequence, 1000);
  EXPECT_THAT(asked_during(2s), ElementsAre(1000));
  EXPECT_EQ(posts_[2], 256);
}

}  // namespace
}  // namespace lockstep::dist
