#include "dist/group/operation_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/hash_words.h"
#include "dist/rendezvous/rank_list.h"
#include "dist/transport/thread_transport.h"

namespace lockstep::dist {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = OperationRun::Clock;
using Where = Answer::Where;

const Clock::time_point kBegin{1h};

/// Operation 7 of the world group, begun at kBegin on one rank while no other rank has called it.
class Waiting {
 public:
  Waiting(OpKind kind, int rank, int size, int root = 0, const std::vector<int>& hosts = {})
      : transports_(thread_transports(size)), run(*transports_[static_cast<size_t>(rank)]) {
    const auto group = std::make_shared<GroupMembers>();
    group->name = "world";
    group->rank = rank;
    group->ranks = every_rank(size);
    run.group = group;
    run.operation = {.kind = kind, .root = root, .count = 1};
    run.signature = signature_of(*group, {run.operation, 7});
    const HostLayout layout = hosts.empty() ? HostLayout::one_host(size) : HostLayout(hosts);
    run.schedule = plan(run.operation, rank, layout, Cut());
    run.run.start(run.schedule, {.input = &byte_, .output = &byte_, .ranks = group->ranks});
    run.begun = kBegin;
  }

  void answer(int rank, Where where, uint64_t called = 0, uint64_t awaited = 0) {
    run.answers[rank] = {.where = where, .called = called, .awaited = awaited};
  }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
  std::byte byte_{};

 public:
  OperationRun run;
};

/// Rank 2 of 4 waits for all others.
Waiting barrier_of_rank_2() { return {OpKind::kBarrier, 2, 4}; }

TEST(OperationRun, DescribesWhereEachAwaitedRankIs) {
  Waiting early = barrier_of_rank_2();
  early.answer(0, Where::kNotYet, 0);
  early.answer(1, Where::kNotYet, 5);
  EXPECT_EQ(describe_wait(early.run),
            "; rank 0 has not called any operation of the group; rank 1 has not come to it: the "
            "last it called is #4; rank 3 does not answer");
  Waiting late = barrier_of_rank_2();
  late.answer(0, Where::kDone);
  late.answer(1, Where::kThere);
  late.answer(3, Where::kThere, 8, 0b110);
  EXPECT_EQ(describe_wait(late.run),
            "; rank 0 is done with it; rank 1 has called it; rank 3 has called it, and waits for "
            "rank 1, 2 of world");
  EXPECT_EQ(describe_wait(Waiting(OpKind::kBarrier, 0, 1).run), "; no rank is waited for");
}

TEST(OperationRun, IsHeldUpByRanksThatTheAwaitedOnesWaitFor) {
  // Rank 1 waits for rank 0 of its host, which waits for the other host's rank 2, and that for 3.
  Waiting far(OpKind::kBarrier, 1, 4, 0, {0, 0, 1, 1});
  EXPECT_EQ(far.run.concerned(), 0b0001u);
  far.answer(0, Where::kThere, 0, 0b0100);
  far.answer(2, Where::kThere, 0, 0b1010);
  EXPECT_EQ(far.run.awaited(), 0b0001u);
  EXPECT_EQ(far.run.concerned(), 0b1101u) << "without this rank";
  far.answer(3, Where::kNotYet, 7);
  EXPECT_THAT(describe_wait(far.run), HasSubstr("; rank 3 has not come to it"));
  EXPECT_THAT(describe_delay(far.run, kBegin + 1s), HasSubstr("; rank 3 has not come to it"));
  EXPECT_FALSE(reports_delay(far.run, kBegin + 1s)) << "rank 0 does";
  // What ranks wait for that are done, or have not come, does not count.
  far.answer(2, Where::kDone, 0, 0b1000);
  EXPECT_EQ(far.run.concerned(), 0b0101u);
}

TEST(OperationRun, SilenceEndsWithTheFirstAwaitedRankThatWasAsked) {
  Waiting waiting(OpKind::kBroadcast, 2, 4, 1);  // rank 1 alone is awaited
  EXPECT_EQ(waiting.run.awaited(), 0b10u);
  waiting.run.limits.silence = 2s;
  EXPECT_EQ(waiting.run.silence_ends(), Clock::time_point::max());
  waiting.run.asked = {{0, kBegin}, {64 + 1, kBegin}};
  EXPECT_EQ(waiting.run.silence_ends(), Clock::time_point::max());
  waiting.run.asked[1] = kBegin + 1s;
  EXPECT_EQ(waiting.run.silence_ends(), kBegin + 3s);
  Waiting all = barrier_of_rank_2();
  all.run.limits.silence = 2s;
  all.run.asked = {{0, kBegin + 5s}, {1, kBegin + 4s}, {3, kBegin + 6s}};
  EXPECT_EQ(all.run.silence_ends(), kBegin + 6s);
}

TEST(OperationRun, IsNextLookedAtWhenTheFirstOfItsTimesComes) {
  Waiting waiting = barrier_of_rank_2();
  OperationRun& run = waiting.run;
  run.limits = {.whole = 10s, .silence = 4s};
  run.next_question = kBegin + 20s;
  run.next_notice = kBegin + 20s;
  EXPECT_EQ(run.next_look(), kBegin + 10s);
  run.asked[0] = kBegin + 5s;
  EXPECT_EQ(run.next_look(), kBegin + 9s);
  run.next_notice = kBegin + 8s;
  EXPECT_EQ(run.next_look(), kBegin + 8s);
  run.next_question = kBegin + 7s;
  EXPECT_EQ(run.next_look(), kBegin + 7s);
}

TEST(OperationRun, ARankIsSilentHalfASecondAfterAQuestion) {
  Waiting waiting(OpKind::kBroadcast, 2, 4, 1);
  EXPECT_FALSE(awaits_silent(waiting.run, kBegin));
  waiting.run.asked = {{0, kBegin}};  // not awaited
  EXPECT_FALSE(awaits_silent(waiting.run, kBegin + 1h));
  waiting.run.asked[1] = kBegin;
  EXPECT_FALSE(awaits_silent(waiting.run, kBegin + 499ms));
  EXPECT_TRUE(awaits_silent(waiting.run, kBegin + 500ms));
}

TEST(OperationRun, TheLowestRankThatHasCalledItReportsTheDelay) {
  const auto reports = [](const Waiting& waiting) { return reports_delay(waiting.run, kBegin); };
  EXPECT_TRUE(reports(Waiting(OpKind::kBarrier, 0, 4)));
  Waiting waiting = barrier_of_rank_2();
  EXPECT_TRUE(reports(waiting)) << "ranks 0 and 1 have not called it";
  waiting.answer(3, Where::kThere);
  waiting.answer(0, Where::kNotYet, 3);
  EXPECT_TRUE(reports(waiting));
  waiting.answer(0, Where::kDone);
  EXPECT_TRUE(reports(waiting));
  waiting.answer(1, Where::kThere);
  EXPECT_FALSE(reports(waiting));
  waiting.run.asked[1] = kBegin - 500ms;
  EXPECT_TRUE(reports(waiting)) << "rank 1 has called it, but is silent by now";

  Waiting other(OpKind::kBroadcast, 2, 4, 1);
  EXPECT_FALSE(reports(other)) << "rank 0 is not awaited: it has called the broadcast";
  other.answer(0, Where::kDone);
  EXPECT_TRUE(reports(other));
}

TEST(OperationRun, ADelayIsToldWithTheAbsentRanksOrAsSlow) {
  Waiting waiting = barrier_of_rank_2();
  const auto now = kBegin + 1500ms;
  waiting.run.asked = {{0, now - 1300ms}, {3, now - 100ms}};
  waiting.answer(1, Where::kNotYet, 1);
  EXPECT_EQ(describe_delay(waiting.run, now),
            "barrier #7 in group world takes 1.5 s so far; rank 0 has not answered for 1.3 s; rank "
            "1 has not come to it: the last it called is #0; rank 3 has not told where it is");
  for (const int rank : {0, 1, 3}) waiting.answer(rank, Where::kThere);
  EXPECT_EQ(describe_delay(waiting.run, now),
            "barrier #7 in group world takes 1.5 s so far; rank 0 has not answered for 1.3 s");
  waiting.run.asked.clear();
  EXPECT_EQ(describe_delay(waiting.run, now),
            "barrier #7 in group world takes 1.5 s so far; all have come, the data to and from "
            "rank 0, 1, 3 are slow");
  EXPECT_EQ(describe_end(waiting.run, now), "barrier #7 in group world has ended after 1.5 s");
}

GroupMembers members(int rank) {
  return {.id = 5, .index = 3, .name = "pair", .ranks = {4, 6}, .rank = rank};
}

Operation message(OpKind kind, int peer, uint32_t tag) {
  return {.kind = kind, .dtype = DType::kF32, .root = peer, .user_tag = tag, .count = 10};
}

TEST(SignatureOf, AMessageIsAlikeOnItsTwoRanksAndUnlikeAllOthers) {
  const Signature sent = signature_of(members(0), {message(OpKind::kSend, 1, 9), 2});
  EXPECT_EQ(sent, signature_of(members(1), {message(OpKind::kReceive, 0, 9), 2}));
  EXPECT_EQ(sent.group, hash_words(std::array<uint64_t, 4>{5, 0, 1, 9}));
  EXPECT_EQ(to_string(sent, members(0)), "send #2 of 10 float32 to rank 1 in group pair");
  const Signature back = signature_of(members(1), {message(OpKind::kSend, 0, 9), 2});
  const Signature tagged = signature_of(members(0), {message(OpKind::kSend, 1, 8), 2});
  EXPECT_EQ((std::set<uint64_t>{sent.group, back.group, tagged.group}.size()), 3u);
  const Operation collective{.kind = OpKind::kBroadcast, .root = 1, .count = 10};
  EXPECT_EQ(signature_of(members(0), {collective, 2}), signature_of(collective, 5, 2));
}

TEST(FirstTag, IsMadeOfTheGroupTheNumberAndTheSignature) {
  const GroupMembers group = members(0);
  const Operation collective{.kind = OpKind::kAllReduce, .dtype = DType::kF32, .count = 10};
  const Signature signature = signature_of(group, {collective, 256 + 17});
  EXPECT_EQ(first_tag(group, collective, signature),
            (3u << 22) + (17u << 14) + ((hash(signature) % 4096) << 2));
  const Operation send = message(OpKind::kSend, 1, 40'000);
  const Signature sent = signature_of(group, {send, 1});
  const uint64_t tag = (1u << 29) + (3u << 22) + (40'000u << 6) + ((hash(sent) % 16) << 2);
  EXPECT_EQ(first_tag(group, send, sent), tag);
  EXPECT_EQ(first_tag(group, message(OpKind::kReceive, 1, 40'000), sent), tag);
}

TEST(MustFollow, HoldsForMessagesOfOneTagInOneDirection) {
  const auto transports = thread_transports(1);
  const auto run_of = [&](OpKind kind, uint64_t group) {
    auto run = std::make_unique<OperationRun>(*transports[0]);
    run->operation.kind = kind;
    run->signature.group = group;
    return run;
  };
  const auto send = run_of(OpKind::kSend, 1);
  EXPECT_TRUE(must_follow(*send, *run_of(OpKind::kSend, 1)));
  EXPECT_FALSE(must_follow(*send, *run_of(OpKind::kSend, 2)));
  EXPECT_FALSE(must_follow(*send, *run_of(OpKind::kReceive, 1)));
  const auto receive = run_of(OpKind::kReceive, 1);
  EXPECT_TRUE(must_follow(*receive, *run_of(OpKind::kReceive, 1)));
  EXPECT_FALSE(must_follow(*run_of(OpKind::kBarrier, 1), *run_of(OpKind::kBarrier, 1)));
}

}  // namespace
}  // namespace lockstep::dist
