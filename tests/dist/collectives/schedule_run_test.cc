#include "dist/collectives/schedule_run.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dist/transport/thread_transport.h"
#include "tests/dist/collectives/link_network.h"
#include "tests/dist/ddp/random_network.h"
#include "tests/dist/group/random_operation.h"

namespace lockstep::dist {
namespace {

using State = ScheduleRun::State;

constexpr int kAlone[] = {0};

/// Numbers whose sum depends on the order of additions.
Bytes random_elements(DType dtype, uint64_t bytes, std::mt19937_64& random) {
  return with_element_type(dtype, [&]<class T>() {
    std::uniform_real_distribution<float> number(1, 100);
    Bytes result(bytes);
    for (uint64_t at = 0; at < bytes; at += sizeof(T)) {
      const T element = static_cast<T>(number(random));
      std::memcpy(result.data() + at, &element, sizeof(T));
    }
    return result;
  });
}

/// All ranks of a group, run in this thread.
class Group {
 public:
  Group(const Collective& collective, RandomNetwork& network, uint64_t seed)
      : collective_(collective), network_(network), random_(seed) {
    const int size = collective.size;
    // Uses job ranks that differ from the ranks in the group.
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(size - 1 - rank);
    for (int rank = 0; rank < size; ++rank) {
      runs_.push_back(std::make_unique<ScheduleRun>(network.of(job_rank(rank))));
    }
  }

  /// Gives every rank new input and output memory.
  void fill() {
    inputs_.clear();
    memory_.clear();
    before_.clear();
    for (int rank = 0; rank < collective_.size; ++rank) {
      const Operation operation = collective_.operation(rank);
      const uint64_t input = input_bytes(operation, rank, collective_.size);
      const uint64_t output = output_bytes(operation, collective_.size);
      inputs_.push_back(random_elements(operation.dtype, input, random_));
      memory_.push_back(inputs_.back());
      if (!collective_.in_place) {
        before_.push_back(random_elements(operation.dtype, output, random_));
      } else {
        if (output > input) {
          memory_.back() = random_elements(operation.dtype, output, random_);
          std::copy(inputs_.back().begin(), inputs_.back().end(),
                    memory_.back().begin() + static_cast<ptrdiff_t>(own_part(operation, rank)));
        }
        const auto first = memory_.back().begin() +
                           static_cast<ptrdiff_t>(output < input ? own_part(operation, rank) : 0);
        before_.emplace_back(first, first + static_cast<ptrdiff_t>(output));
      }
    }
    outputs_ = before_;
  }

  void start(int rank, uint64_t tag) {
    const size_t i = static_cast<size_t>(rank);
    schedules_.resize(static_cast<size_t>(collective_.size));
    schedules_[i] = collective_.plan(rank);
    start_again(rank, tag);
  }
  /// Starts a rank again with its existing schedule.
  void start_again(int rank, uint64_t tag) {
    const size_t i = static_cast<size_t>(rank);
    runs_[i]->start(schedules_[i],
                    {.input = input(rank), .output = output(rank), .ranks = ranks_, .tag = tag});
  }
  void start_all(uint64_t tag) {
    for (int rank = 0; rank < collective_.size; ++rank) start(rank, tag);
  }

  void step(int rank) {
    network_.of(job_rank(rank)).progress();
    run(rank).advance();
  }
  /// Steps random ranks until all have ended. Returns false if they do not end.
  bool finish() {
    for (int round = 0; round < 200'000; ++round) {
      step(static_cast<int>(random_() % static_cast<uint64_t>(collective_.size)));
      bool running = false;
      for (const auto& run : runs_) running |= run->state() == State::kRunning;
      if (!running) return true;
    }
    return false;
  }

  ScheduleRun& run(int rank) { return *runs_[static_cast<size_t>(rank)]; }
  void destroy_run(int rank) { runs_[static_cast<size_t>(rank)].reset(); }
  bool all_are(State state) const {
    return std::all_of(runs_.begin(), runs_.end(),
                       [&](const auto& run) { return run->state() == state; });
  }

  std::vector<Bytes> results() const {
    std::vector<Bytes> results;
    for (int rank = 0; rank < collective_.size; ++rank) {
      const auto* first = static_cast<const std::byte*>(const_cast<Group*>(this)->output(rank));
      results.emplace_back(first,
                           first + output_bytes(collective_.operation(rank), collective_.size));
    }
    return results;
  }
  std::vector<Bytes> expected() const { return expected_outputs(collective_, inputs_, before_); }
  bool inputs_are_kept() const { return collective_.in_place || memory_ == inputs_; }

 private:
  int job_rank(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  const void* input(int rank) {
    const Operation operation = collective_.operation(rank);
    const bool is_part = collective_.in_place && operation.kind == OpKind::kAllGather;
    return memory_[static_cast<size_t>(rank)].data() + (is_part ? own_part(operation, rank) : 0);
  }
  void* output(int rank) {
    const Operation operation = collective_.operation(rank);
    if (!collective_.in_place) return outputs_[static_cast<size_t>(rank)].data();
    const bool is_part = operation.kind == OpKind::kReduceScatter;
    return memory_[static_cast<size_t>(rank)].data() + (is_part ? own_part(operation, rank) : 0);
  }

  Collective collective_;
  RandomNetwork& network_;
  std::mt19937_64 random_;
  std::vector<int> ranks_;
  std::vector<Bytes> inputs_;
  std::vector<Bytes> memory_;  ///< input memory; with in_place, the output's too
  std::vector<Bytes> before_;  ///< the output before the operation
  std::vector<Bytes> outputs_;
  std::vector<Schedule> schedules_;
  std::vector<std::unique_ptr<ScheduleRun>> runs_;
};

RC_GTEST_PROP(ScheduleRunTest, EveryOperationEndsOnAllRanksWithTheBitsOfItsOrder, ()) {
  const Collective collective = *random_collective();
  const uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  const int window = *rc::gen::inRange(1, 5);
  RandomNetwork network(collective.size, seed, window);
  Group group(collective, network, seed);
  group.fill();
  group.start_all(0);
  RC_ASSERT(group.finish());
  RC_ASSERT(group.all_are(State::kDone));
  RC_ASSERT(group.results() == group.expected());
  RC_ASSERT(group.inputs_are_kept());
  RC_ASSERT(network.left_over() == 0u);
  RC_ASSERT(network.complaints() == std::vector<std::string>());
  RC_ASSERT(network.most_in_flight() <= static_cast<size_t>(window));
}

RC_GTEST_PROP(ScheduleRunTest, OperationsOfSeveralGroupsGoOnSideBySide, ()) {
  const int size = *rc::gen::inRange(2, 5);
  const uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  RandomNetwork network(size, seed);
  Collective collective = dist::collective(OpKind::kAllReduce, size, 300);
  collective.cut = {.segment_bytes = 64, .window = 2, .small_bytes = 0};
  Group first(collective, network, seed), second(collective, network, seed + 1);
  first.fill();
  second.fill();
  first.start_all(kLanes);
  second.start_all(0);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 500; ++i) {
    (random() % 2 == 0 ? first : second).step(static_cast<int>(random() % size));
  }
  RC_ASSERT(first.finish());
  RC_ASSERT(second.finish());
  RC_ASSERT(first.results() == first.expected());
  RC_ASSERT(second.results() == second.expected());
}

RC_GTEST_PROP(ScheduleRunTest, OneRunCarriesOutManyOperations, ()) {
  const uint64_t seed = *rc::gen::arbitrary<uint64_t>();
  RandomNetwork network(3, seed);
  Collective collective = dist::collective(OpKind::kAllReduce, 3, 100);
  collective.cut = {.segment_bytes = 64, .window = 2, .small_bytes = 0};
  collective.in_place = true;
  Group group(collective, network, seed);
  for (uint64_t operation = 0; operation < 4; ++operation) {
    group.fill();
    group.start_all(operation * kLanes);
    RC_ASSERT(group.finish());
    RC_ASSERT(group.results() == group.expected());
  }
}

/// Duration of an operation, and the lower bound from the bytes that its busiest rank sends.
struct Duration {
  int64_t taken_ns = 0;
  int64_t least_ns = 0;
};

/// `hosts`, by rank; empty: every rank has a link.
Duration duration_over_links(OpKind kind, int size, int64_t count,
                             const std::vector<int>& hosts = {}) {
  const Cut cut{.segment_bytes = 8 * 1024, .window = 16};
  LinkNetwork network(size, 10'000, cut.segment_bytes, cut.window, hosts);
  Collective collective = dist::collective(kind, size, count);
  collective.cut = cut;
  collective.hosts = hosts;
  std::vector<int64_t> sent(static_cast<size_t>(size));  // by host, or by rank
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<Schedule> schedules;
  std::vector<Bytes> inputs, outputs;
  std::vector<std::unique_ptr<ScheduleRun>> runs;
  Duration duration;
  for (int rank = 0; rank < size; ++rank) {
    const Operation operation = collective.operation(rank);
    schedules.push_back(collective.plan(rank));
    inputs.emplace_back(input_bytes(operation, rank, size));
    outputs.emplace_back(output_bytes(operation, size));
    runs.push_back(std::make_unique<ScheduleRun>(network.of(rank)));
    const auto link_of = [&](int each) {
      return static_cast<size_t>(hosts.empty() ? each : hosts[static_cast<size_t>(each)]);
    };
    for (const Step& step : schedules.back().steps) {
      if (step.kind != Step::Kind::kSend || link_of(step.peer) == link_of(rank)) continue;
      sent[link_of(rank)] += static_cast<int64_t>(step.slice.bytes);
    }
  }
  duration.least_ns = *std::ranges::max_element(sent);
  for (size_t i = 0; i < ranks.size(); ++i) {
    runs[i]->start(schedules[i],
                   {.input = inputs[i].data(), .output = outputs[i].data(), .ranks = ranks});
  }
  do {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t i = 0; i < ranks.size(); ++i) {
        moved |= network.of(static_cast<int>(i)).progress();
        moved |= runs[i]->advance();
      }
    }
  } while (network.pass_time());
  for (const auto& run : runs) EXPECT_EQ(run->state(), State::kDone);
  duration.taken_ns = network.now_ns();
  return duration;
}

TEST(ScheduleRunTest, LargeOperationsKeepTheLinksBusy) {
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                            OpKind::kBroadcast, OpKind::kAllToAll}) {
    for (const int size : {2, 3, 8}) {
      const bool has_parts = kind != OpKind::kAllReduce && kind != OpKind::kBroadcast;
      const int64_t count = (1 << 19) / (has_parts ? size : 1);
      const Duration duration = duration_over_links(kind, size, count);
      const double busy = static_cast<double>(duration.least_ns) / duration.taken_ns;
      EXPECT_GT(busy, 0.94) << name(kind) << " of " << size << " ranks";
    }
  }
}

TEST(ScheduleRunTest, LargeOperationsOfManyRanksKeepTheLinksOfHostsBusy) {
  for (const OpKind kind :
       {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kBroadcast}) {
    for (const std::vector<int>& hosts :
         {std::vector{0, 0, 1, 1}, std::vector{0, 0, 0, 1, 1, 1, 2, 2, 2},
          std::vector{0, 1, 0, 1, 0, 1}}) {
      const auto size = static_cast<int>(hosts.size());
      const bool has_parts = kind != OpKind::kAllReduce && kind != OpKind::kBroadcast;
      const int64_t count = (1 << 19) / (has_parts ? size : 1);
      const Duration duration = duration_over_links(kind, size, count, hosts);
      const double busy = static_cast<double>(duration.least_ns) / duration.taken_ns;
      EXPECT_GT(busy, 0.94) << name(kind) << " of " << size << " ranks";
    }
  }
}

TEST(ScheduleRunTest, AnOperationOfNothingIsDoneAtOnce) {
  RandomNetwork network(2, 1);
  Group group(collective(OpKind::kAllReduce, 2, 0), network, 1);
  group.fill();
  group.start(0, 0);
  EXPECT_EQ(group.run(0).state(), State::kDone);
  EXPECT_FALSE(group.run(0).advance());
}

TEST(ScheduleRunTest, OneCallCopiesLittleSoThatMessagesAreLookedAfter) {
  // 64 copies of 64 KiB, all of which are ready at once.
  constexpr uint64_t kCopies = 64, kBytes = 64 * 1024;
  Schedule schedule;
  for (uint64_t i = 0; i < kCopies; ++i) {
    Step step;
    step.slice = {Slice::Memory::kOutput, i * kBytes, kBytes};
    step.first_source = static_cast<uint32_t>(i);
    step.source_count = 1;
    schedule.sources.push_back({Slice::Memory::kInput, i * kBytes, kBytes});
    schedule.steps.push_back(step);
  }
  const Bytes input(kCopies * kBytes, std::byte{7});
  Bytes output(input.size());
  RandomNetwork network(1, 1);
  ScheduleRun run(network.of(0));
  run.start(schedule, {.input = input.data(), .output = output.data(), .ranks = kAlone});
  uint64_t copied = 0;
  while (run.state() == State::kRunning) {
    run.advance();
    const auto now = static_cast<uint64_t>(std::ranges::count(output, std::byte{7}));
    EXPECT_GT(now, copied);
    // Reading and writing 64 KiB moves twice as much.
    EXPECT_LE(now - copied, 4 * kBytes);
    copied = now;
  }
  EXPECT_EQ(copied, input.size());
}

TEST(ScheduleRunTest, ABarrierWaitsForAllAndNamesWhoIsMissing) {
  RandomNetwork network(4, 2);
  Group group(collective(OpKind::kBarrier, 4, 0), network, 2);
  group.fill();
  for (const int rank : {0, 1, 3}) group.start(rank, 0);
  for (int i = 0; i < 1000; ++i) {
    for (const int rank : {0, 1, 3}) group.step(rank);
  }
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(group.run(rank).state(), State::kRunning);
    EXPECT_EQ(group.run(rank).awaited(), 1u << 2);
  }
  group.start(2, 0);
  ASSERT_TRUE(group.finish());
  EXPECT_TRUE(group.all_are(State::kDone));
  EXPECT_EQ(group.run(0).awaited(), 0u);
}

TEST(ScheduleRunTest, AMessageThatHasNotLeftNamesItsReceiver) {
  RandomNetwork network(2, 3);
  Group group(collective(OpKind::kSend, 2, 10), network, 3);
  group.fill();
  group.start(0, 0);
  EXPECT_EQ(group.run(0).unsent(), 1u << 1);
  EXPECT_EQ(group.run(0).awaited(), 0u);
  group.start(1, 0);
  EXPECT_EQ(group.run(1).awaited(), 1u << 0);
  EXPECT_TRUE(group.finish());
  EXPECT_EQ(group.run(0).unsent(), 0u);
}

TEST(ScheduleRunTest, ARankThatIsGoneFailsTheRunAndIsNamed) {
  RandomNetwork network(3, 4);
  Collective all_reduce = collective(OpKind::kAllReduce, 3, 3000);
  all_reduce.cut.segment_bytes = 256;
  Group group(all_reduce, network, 4);
  group.fill();
  group.start_all(0);
  for (int i = 0; i < 20; ++i) group.step(i % 3);
  network.kill(0);  // rank 2 of the group, as job ranks are reversed
  for (int i = 0; i < 1000; ++i) group.step(i % 2);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(group.run(rank).state(), State::kFailed);
    EXPECT_EQ(group.run(rank).fault().peer, 2);
    EXPECT_FALSE(group.run(rank).fault().is_mismatch);
    EXPECT_NE(group.run(rank).fault().text.find("rank 2 failed: rank 0 is gone"), std::string::npos)
        << group.run(rank).fault().text;
    EXPECT_EQ(group.run(rank).awaited(), 0u);
  }
}

TEST(ScheduleRunTest, AFailedMessageIsToldWithItsDirection) {
  const char* const texts[] = {"sending to rank 1 failed: ", "receiving from rank 0 failed: "};
  for (const int rank : {0, 1}) {
    RandomNetwork network(2, 4);
    Group group(collective(OpKind::kSend, 2, 100), network, 4);
    group.fill();
    group.start(rank, 0);
    network.kill(rank);  // the other one, as job ranks are reversed
    for (int i = 0; i < 100; ++i) group.step(rank);
    ASSERT_EQ(group.run(rank).state(), State::kFailed);
    const std::string text = group.run(rank).fault().text;
    EXPECT_TRUE(text.starts_with(texts[rank])) << text;
  }
}

TEST(ScheduleRunTest, AMessageOfAnotherLengthThanPlannedIsAMismatch) {
  RandomNetwork network(2, 5);
  Collective gather = collective(OpKind::kAllGather, 2, 10);
  gather.operations[1].count = 7;
  Group group(gather, network, 5);
  group.fill();
  group.start_all(0);
  ASSERT_TRUE(group.finish());
  EXPECT_EQ(group.run(0).state(), State::kFailed);
  EXPECT_EQ(group.run(0).fault().peer, 1);
  EXPECT_TRUE(group.run(0).fault().is_mismatch);
  EXPECT_EQ(group.run(0).fault().text, "rank 1 sent 28 bytes where 40 were expected");
  // Rank 1 receives more than its buffer holds, so the transport itself reports the error.
  EXPECT_EQ(group.run(1).state(), State::kFailed);
  EXPECT_NE(group.run(1).fault().text.find("longer"), std::string::npos);
}

TEST(ScheduleRunTest, CancelledRunsLeaveMemoryAloneAndCanBeginAgain) {
  RandomNetwork network(2, 6);
  Collective all_reduce = collective(OpKind::kAllReduce, 2, 500);
  all_reduce.cut = {.segment_bytes = 64, .window = 4, .small_bytes = 0};
  Group group(all_reduce, network, 6);
  group.fill();
  group.start_all(0);
  for (int i = 0; i < 30; ++i) group.step(i % 2);
  group.run(0).cancel();
  group.run(1).cancel();
  EXPECT_TRUE(group.all_are(State::kIdle));
  const auto results = group.results();
  for (int i = 0; i < 1000; ++i) group.step(i % 2);
  EXPECT_EQ(group.results(), results);

  group.fill();
  group.start_all(kLanes);
  ASSERT_TRUE(group.finish());
  EXPECT_EQ(group.results(), group.expected());
}

TEST(ScheduleRunTest, ARunThatIsDestroyedCancelsItsMessages) {
  RandomNetwork network(2, 7);
  Group pair(collective(OpKind::kSend, 2, 100), network, 7);
  pair.fill();
  pair.start(1, 0);
  EXPECT_EQ(network.left_over(), 1u);
  pair.destroy_run(1);
  EXPECT_EQ(network.left_over(), 0u);
}

TEST(ScheduleRunTest, RanksBeyondTheMaskAreNotTakenForOthersThatAreAwaited) {
  constexpr int kRanks = 70;
  const auto transports = thread_transports(kRanks);
  std::vector<int> ranks(kRanks);
  std::iota(ranks.begin(), ranks.end(), 0);
  const Operation operation{.kind = OpKind::kBarrier};
  const Schedule schedule = plan(operation, 0, kRanks, Cut());
  ScheduleRun run(*transports[0]);
  run.start(schedule, {.ranks = ranks});
  EXPECT_EQ(run.awaited(), ~uint64_t{1}) << "all but this one";
  EXPECT_EQ(run.unsent(), ~uint64_t{1});
}

}  // namespace
}  // namespace lockstep::dist
