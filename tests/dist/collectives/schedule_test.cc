#include "dist/collectives/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "dist/collectives/leaf_deal.h"
#include "dist/collectives/sum_order.h"
#include "tests/dist/group/random_operation.h"

namespace lockstep::dist {
namespace {

using Memory = Slice::Memory;

bool is_message(const Step& step) {
  return step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive;
}

std::vector<Slice> sources_of(const Schedule& schedule, const Step& step) {
  const auto first = schedule.sources.begin() + step.first_source;
  return {first, first + step.source_count};
}

/// Sizes in bytes of the messages of each (from, to, lane), in order.
using Messages = std::map<std::tuple<int, int, int>, std::vector<uint64_t>>;

Messages messages(const Collective& collective, Step::Kind kind) {
  Messages result;
  for (int rank = 0; rank < collective.size; ++rank) {
    for (const Step& step : collective.plan(rank).steps) {
      if (step.kind != kind) continue;
      const auto ends =
          kind == Step::Kind::kSend ? std::pair(rank, step.peer) : std::pair(step.peer, rank);
      result[{ends.first, ends.second, step.lane}].push_back(step.slice.bytes);
    }
  }
  return result;
}

/// A range of one rank's memory in a single address space. Input and output overlap if in place.
struct Span {
  uint64_t begin;
  uint64_t end;
  bool is_written;
};
bool meet(const Span& a, const Span& b) {
  return a.begin < b.end && b.begin < a.end && (a.is_written || b.is_written);
}

class Line {
 public:
  Line(const Collective& collective, int rank) {
    constexpr uint64_t kFar = uint64_t{1} << 40;
    const Operation operation = collective.operation(rank);
    const uint64_t input = input_bytes(operation, rank, collective.size);
    const uint64_t output = output_bytes(operation, collective.size);
    if (collective.in_place) {
      (input < output ? input_ : output_) = own_part(operation, rank);
    } else {
      output_ = kFar;
    }
    scratch_ = 2 * kFar;
  }
  Span at(const Slice& slice, bool is_written) const {
    const uint64_t base = slice.memory == Memory::kInput    ? input_
                          : slice.memory == Memory::kOutput ? output_
                                                            : scratch_;
    return {base + slice.offset, base + slice.offset + slice.bytes, is_written};
  }

 private:
  uint64_t input_ = 0;
  uint64_t output_ = 0;
  uint64_t scratch_ = 0;
};

/// The ranges that a step accesses. A copy onto its own source accesses none.
std::vector<Span> touched(const Line& line, const Schedule& schedule, const Step& step) {
  if (step.kind == Step::Kind::kSend) return {line.at(step.slice, false)};
  std::vector<Span> spans = {line.at(step.slice, true)};
  for (const Slice& source : sources_of(schedule, step)) spans.push_back(line.at(source, false));
  if (step.kind == Step::Kind::kCopy && spans[0].begin == spans[1].begin) return {};
  return spans;
}

/// For every step, the set of steps that end before it begins.
class Precedence {
 public:
  explicit Precedence(const Schedule& schedule)
      : words_(schedule.steps.size() / 64 + 1), bits_(schedule.steps.size() * words_) {
    for (size_t id = 0; id < schedule.steps.size(); ++id) {
      const Step& step = schedule.steps[id];
      const uint64_t* own = &bits_[id * words_];
      for (uint32_t i = 0; i < step.next_count; ++i) {
        uint64_t* next = &bits_[schedule.next[step.first_next + i] * words_];
        for (size_t word = 0; word < words_; ++word) next[word] |= own[word];
        next[id / 64] |= uint64_t{1} << id % 64;
      }
    }
  }
  bool is_before(size_t earlier, size_t later) const {
    return (bits_[later * words_ + earlier / 64] >> earlier % 64 & 1) != 0;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

RC_GTEST_PROP(ScheduleTest, WhatOneRankSendsTheOtherReceivesInThatOrder, ()) {
  const Collective collective = *random_collective();
  RC_ASSERT(messages(collective, Step::Kind::kSend) == messages(collective, Step::Kind::kReceive));
}

RC_GTEST_PROP(ScheduleTest, StepsWaitForEarlierOnesAndSayForHowMany, ()) {
  const Collective collective = *random_collective();
  for (int rank = 0; rank < collective.size; ++rank) {
    const Schedule schedule = collective.plan(rank);
    std::vector<uint32_t> waits(schedule.steps.size());
    for (uint32_t id = 0; id < schedule.steps.size(); ++id) {
      const Step& step = schedule.steps[id];
      RC_ASSERT(step.first_next + step.next_count <= schedule.next.size());
      for (uint32_t i = 0; i < step.next_count; ++i) {
        const uint32_t next = schedule.next[step.first_next + i];
        RC_ASSERT(next > id);
        RC_ASSERT(next < schedule.steps.size());
        ++waits[next];
      }
      RC_ASSERT(step.waits_for == waits[id]);
    }
  }
}

RC_GTEST_PROP(ScheduleTest, SlicesLieInTheirMemoryAndMessagesKeepToTheCut, ()) {
  const Collective collective = *random_collective();
  for (int rank = 0; rank < collective.size; ++rank) {
    const Operation operation = collective.operation(rank);
    const Schedule schedule = collective.plan(rank);
    const auto check = [&](const Slice& slice) {
      const uint64_t limit =
          slice.memory == Memory::kInput    ? input_bytes(operation, rank, collective.size)
          : slice.memory == Memory::kOutput ? output_bytes(operation, collective.size)
                                            : schedule.scratch_bytes;
      RC_ASSERT(slice.offset + slice.bytes <= limit);
      RC_ASSERT(slice.bytes % size_of(operation.dtype) == 0u);
    };
    for (const Step& step : schedule.steps) {
      check(step.slice);
      for (const Slice& source : sources_of(schedule, step)) {
        check(source);
        if (step.kind == Step::Kind::kCopy) {
          RC_ASSERT(source.bytes == step.slice.bytes);
          continue;
        }
        const OrderedReduction& how = schedule.reductions[step.reduction];
        RC_ASSERT(source.bytes / size_of(how.from) == step.slice.bytes / size_of(how.to));
      }
      if (is_message(step)) {
        RC_ASSERT(step.peer != rank);
        RC_ASSERT(step.peer >= 0 && step.peer < collective.size);
        RC_ASSERT(step.lane < kLanes);
        RC_ASSERT(step.slice.bytes <= collective.cut.segment_bytes);
      }
    }
  }
}

/// Two steps of a rank that may run together and access one address, of which one writes it.
std::optional<std::pair<size_t, size_t>> steps_that_meet(const Collective& collective, int rank) {
  const Schedule schedule = collective.plan(rank);
  const Line line(collective, rank);
  const Precedence precedence(schedule);
  std::vector<std::pair<Span, size_t>> spans;
  for (size_t id = 0; id < schedule.steps.size(); ++id) {
    for (const Span& span : touched(line, schedule, schedule.steps[id])) {
      spans.emplace_back(span, id);
    }
  }
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.begin, a.second) < std::pair(b.first.begin, b.second);
  });
  for (size_t i = 0; i < spans.size(); ++i) {
    const auto& [span, id] = spans[i];
    for (size_t j = i + 1; j < spans.size() && spans[j].first.begin < span.end; ++j) {
      const auto& [other, other_id] = spans[j];
      if (id == other_id || !meet(span, other)) continue;
      const std::pair both = std::minmax(id, other_id);
      if (!precedence.is_before(both.first, both.second)) return both;
    }
  }
  return std::nullopt;
}

RC_GTEST_PROP(ScheduleTest, StepsThatMayRunTogetherDoNotMeetInMemory, ()) {
  const Collective collective = *random_collective();
  for (int rank = 0; rank < collective.size; ++rank) {
    RC_ASSERT(!steps_that_meet(collective, rank));
  }
}

/// Reductions in place over these hosts, by every way, in one message and in many.
std::vector<Collective> sums_over(const std::vector<int>& hosts) {
  std::vector<Collective> all;
  const auto size = static_cast<int>(hosts.size());
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const int64_t count : {60, 100, 700}) {
        for (const HostWay way : {HostWay::kParts, HostWay::kExchange, HostWay::kTree}) {
          for (const int window : {1, 2}) {
            Collective& one = all.emplace_back(collective(kind, size, count, dtype));
            one.hosts = hosts;
            one.in_place = true;
            one.cut = {.segment_bytes = 256, .window = window, .small_bytes = 0, .way = way};
            if (kind == OpKind::kReduceScatter || dtype == DType::kBF16) continue;
            Collective& tree = all.emplace_back(one);
            std::vector<int64_t> leaves(hosts.size(), 3);
            leaves.back() = 1;
            for (Operation& each : tree.operations) {
              each.deal = LeafDeal::of_counts(leaves);
              each.reduction = {.leaves = static_cast<int32_t>(each.deal.leaves())};
              each.input_stride = bytes_of(each) + 64;
            }
          }
        }
      }
    }
  }
  return all;
}

TEST(ScheduleTest, SumsOverHostsKeepToMemoryAndMessagesByWhateverWay) {
  for (const std::vector<int>& hosts :
       {std::vector{0, 0, 1, 1}, {0, 1, 2}, {0, 1, 1, 2, 2}, {0, 0, 1, 2, 3, 3, 4}}) {
    for (const Collective& each : sums_over(hosts)) {
      for (int rank = 0; rank < each.size; ++rank) {
        EXPECT_FALSE(steps_that_meet(each, rank)) << each << ", rank " << rank;
        for (const Step& step : each.plan(rank).steps) {
          const uint64_t sent = is_message(step) ? step.slice.bytes : 0;
          EXPECT_LE(sent, each.cut.segment_bytes) << each << ", rank " << rank;
        }
      }
    }
  }
}

RC_GTEST_PROP(ScheduleTest, AResultLiesWhereOneOfItsSourcesDoesOrApart, ()) {
  const Collective collective = *random_collective();
  for (int rank = 0; rank < collective.size; ++rank) {
    const Schedule schedule = collective.plan(rank);
    const Line line(collective, rank);
    for (const Step& step : schedule.steps) {
      if (is_message(step)) continue;
      const Span result = line.at(step.slice, true);
      for (const Slice& slice : sources_of(schedule, step)) {
        const Span source = line.at(slice, false);
        RC_ASSERT(source.begin == result.begin || !meet(source, result));
      }
    }
  }
}

RC_GTEST_PROP(ScheduleTest, ScratchMemoryIsAWindowOfSegmentsFromEachRank, ()) {
  const Collective collective = *random_collective();
  for (int rank = 0; rank < collective.size; ++rank) {
    const Schedule schedule = collective.plan(rank);
    // One sum from each other rank, or, over leaves, as many subtrees as the other ranks have; and,
    // where hosts exchange partial sums, those.
    size_t others = static_cast<size_t>(collective.size - 1);
    const LeafDeal deal = collective.operation(rank).deal;
    if (!deal.is_empty()) {
      others = schedule.reductions[0].joins.size() - subtrees(deal.of(rank)).size();
    }
    if (schedule.reductions.size() > 1) {
      others += sum_order(collective.layout(), deal).partials.size();
    }
    RC_ASSERT(schedule.scratch_bytes <=
              static_cast<uint64_t>(collective.cut.window) * collective.cut.segment_bytes * others);
  }
}

TEST(ScheduleTest, AllReduceSendsTheLeastPossible) {
  for (const int size : {2, 3, 4, 5, 6, 7, 8}) {
    const int64_t part = 64 * 1024;  // elements owned by each rank
    Collective all_reduce = collective(OpKind::kAllReduce, size, part * size);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(bytes_sent(all_reduce.plan(rank)),
                2u * static_cast<uint64_t>(size - 1) * static_cast<uint64_t>(part) * 4)
          << size << " ranks";
    }
    const Collective scatter = collective(OpKind::kReduceScatter, size, part);
    const Collective gather = collective(OpKind::kAllGather, size, part);
    EXPECT_EQ(bytes_sent(scatter.plan(0)), static_cast<uint64_t>(size - 1) * part * 4);
    EXPECT_EQ(bytes_sent(gather.plan(0)), static_cast<uint64_t>(size - 1) * part * 4);
  }
}

TEST(ScheduleTest, NoRankOfABroadcastSendsMuchMoreThanTheTensor) {
  for (const int size : {2, 3, 5, 8}) {
    const int64_t count = 840 * 64;
    const Collective broadcast = collective(OpKind::kBroadcast, size, count);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_LE(bytes_sent(broadcast.plan(rank)), static_cast<uint64_t>(count) * 4);
    }
  }
}

TEST(ScheduleTest, SmallOperationsTakeOneRound) {
  for (const OpKind kind :
       {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather, OpKind::kBroadcast,
        OpKind::kReduce, OpKind::kAllToAll, OpKind::kBarrier}) {
    const Collective small = collective(kind, 5, 2048);  // 8 KiB
    for (int rank = 0; rank < small.size; ++rank) {
      int sends = 0;
      for (const Step& step : small.plan(rank).steps) {
        if (!is_message(step)) continue;
        EXPECT_EQ(step.waits_for, 0u) << name(kind);
        sends += step.kind == Step::Kind::kSend ? 1 : 0;
      }
      EXPECT_LE(sends, small.size - 1) << name(kind);
    }
  }
}

TEST(ScheduleTest, ResultsLeaveBesideTheSegmentsThatAreYetToBeReduced) {
  const Collective all_reduce = collective(OpKind::kAllReduce, 2, 4 << 20);
  std::vector<Step> sends;
  for (const Step& step : all_reduce.plan(0).steps) {
    if (step.kind == Step::Kind::kSend) sends.push_back(step);
  }
  ASSERT_GT(sends.size(), 200u);
  // Sends alternate: a segment for its owner, which waits for no step, and a result, which waits
  // for its reduction. Results have their own lane, so that they do not block segments.
  for (size_t i = 0; i < sends.size(); ++i) {
    EXPECT_EQ(sends[i].waits_for, i % 2);
    EXPECT_NE(sends[i].lane, sends[i ^ 1].lane);
  }
}

TEST(ScheduleTest, OneRankCopiesAndSendsNothing) {
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                            OpKind::kBroadcast, OpKind::kReduce, OpKind::kAllToAll}) {
    uint64_t copied = 0;
    for (const Step& step : collective(kind, 1, 1 << 20).plan(0).steps) {
      EXPECT_EQ(step.kind, Step::Kind::kCopy);
      EXPECT_EQ(step.slice.offset, copied);
      copied += step.slice.bytes;
    }
    EXPECT_EQ(copied, 4u << 20);
  }
  EXPECT_TRUE(collective(OpKind::kBarrier, 1, 0).plan(0).steps.empty());
}

TEST(ScheduleTest, NothingIsSentOfNoElementsButByASend) {
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                            OpKind::kBroadcast, OpKind::kReduce, OpKind::kAllToAll}) {
    EXPECT_TRUE(collective(kind, 3, 0).plan(1).steps.empty()) << name(kind);
  }
  const Collective send = collective(OpKind::kSend, 2, 0);
  EXPECT_EQ(send.plan(0).steps.size(), 1u);
  EXPECT_EQ(send.plan(1).steps.size(), 1u);
}

TEST(ScheduleTest, SizesBeyond32BitsAreCutRight) {
  const int64_t count = (int64_t{1} << 40) + 12345;  // 4 TiB
  for (const OpKind kind : {OpKind::kAllReduce, OpKind::kReduceScatter, OpKind::kAllGather,
                            OpKind::kBroadcast, OpKind::kReduce, OpKind::kAllToAll}) {
    Collective large = collective(kind, 3, count);
    large.cut.segment_bytes = size_t{1} << 36;
    EXPECT_EQ(messages(large, Step::Kind::kSend), messages(large, Step::Kind::kReceive));
    uint64_t end = 0, written = 0;
    const Schedule schedule = large.plan(0);
    for (const Step& step : schedule.steps) {
      if (step.kind == Step::Kind::kSend || step.slice.memory != Memory::kOutput) continue;
      end = std::max(end, step.slice.offset + step.slice.bytes);
      written += step.slice.bytes;
    }
    EXPECT_EQ(end, output_bytes(large.operation(0), 3)) << name(kind);
    EXPECT_EQ(written, end) << name(kind);
  }
}

}  // namespace
}  // namespace lockstep::dist
