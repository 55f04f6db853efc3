#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dist/flight/flight_analysis.h"
#include "dist/flight/flight_log.h"
#include "tests/dist/flight/flight_job.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr uint64_t kWorld = FlightJob::kWorld;

std::vector<int> ranks_of(const std::vector<AbsentRank>& absent) {
  std::vector<int> ranks;
  for (const AbsentRank& one : absent) ranks.push_back(one.rank);
  return ranks;
}

TEST(Explain, ARankThatNeverArrivesIsNamedWithTheLastThatItCameTo) {
  FlightJob job(8);
  for (int rank = 0; rank < 8; ++rank) {
    for (int i = 0; i < 3; ++i) job.done(rank, kWorld);
    job.log(rank).process = 4100 + rank;
    if (rank == 5) continue;
    job.fail(rank, kWorld, 1 << 5);
    job.log(rank).reason = "TimeoutError: rank 5 did not arrive.\nLook at its log.";
  }
  EXPECT_EQ(explain(job.logs()),
            R"(Logs of 8 of 8 ranks.
Others wait for rank 5, in no operation: see what the program does there, and the end of what it printed. Rank 5 was process 4105 on alpha.

Group world (ranks 0-7) stands at all_reduce #3 of 1,024 float32, sum:
  ranks 0-4, 6, 7: failed after waiting for rank 5 for up to 60.0 s
  rank 5: never came to it; last of the group: all_reduce #2 of 1,024 float32, sum, done 96.5 s before the log; now in: no operation

Why the logs were written:
  ranks 0-4, 6, 7: TimeoutError: rank 5 did not arrive.
    Look at its log.
  rank 5: asked to
)");
}

TEST(Explain, AMissingLogIsNamedWhereItsRankWasAwaited) {
  FlightJob job(4);
  for (int rank = 0; rank < 4; ++rank) job.start(rank, kWorld).awaited_ranks = 0b0100;
  job.lose(2);
  const std::string text = explain(job.logs());
  EXPECT_THAT(text, HasSubstr("Logs of 3 of 4 ranks; none of rank 2.\n"
                              "Others wait for rank 2, without a log"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 1, 3: waiting for rank 2 for up to 99.0 s"));
  EXPECT_THAT(text, HasSubstr("rank 2: no log"));
}

TEST(Explain, OfSeveralLogsOfARankTheNewestCounts) {
  FlightJob job(2);
  for (int rank = 0; rank < 2; ++rank) job.done(rank, kWorld);
  const FlightLog before = job.log(0);
  job.start(0, kWorld);
  job.log(0).written_ns = before.written_ns + 1;
  const std::string text = explain(job.logs());
  EXPECT_THAT(text, HasSubstr("rank 0: waiting for rank 1"));
  for (const bool first : {true, false}) {
    std::vector<FlightLog> logs = job.logs();
    logs.insert(first ? logs.begin() : logs.end(), before);
    EXPECT_EQ(explain(logs), text);
  }
}

TEST(Explain, AMissingLogThatNobodyWaitsForIsNotBlamed) {
  FlightJob job(3);
  job.done(0, kWorld);
  job.done(1, kWorld);
  job.lose(2);
  EXPECT_THAT(explain(job.logs()), StartsWith("Logs of 2 of 3 ranks; none of rank 2.\n"
                                              "Every operation that a rank came to has ended.\n"));
}

TEST(Explain, GroupsUsedInOppositeOrderAreADeadlock) {
  FlightJob job(4);
  job.add_group(2, "dp", {0, 1, 2, 3});
  job.add_group(3, "tp", {0, 1, 2, 3});
  for (int rank = 0; rank < 4; ++rank) {
    job.done(rank, 2);
    job.start(rank, rank < 2 ? 2 : 3).awaited_ranks = rank < 2 ? 0b1100 : 0b0011;
  }
  EXPECT_THAT(
      explain(job.logs()),
      HasSubstr("Likely a deadlock: rank 0 waits for rank 2 in all_reduce #1 of 1,024 float32, sum "
                "(group "
                "dp), rank 2 waits for rank 0 in all_reduce #0 of 1,024 float32, sum (group tp). "
                "All ranks must use the groups in the same order.\n"));
  EXPECT_THAT(analyse(job.logs()).idle, IsEmpty());
}

TEST(Explain, ACircleOfThreeGroupsIsFound) {
  FlightJob job(6);
  for (int i = 0; i < 3; ++i) {
    job.add_group(static_cast<uint64_t>(10 + i), "pair", {i, (i + 1) % 3});
    job.start(i, static_cast<uint64_t>(10 + i)).awaited_ranks = 0b10;
  }
  // A rank that waits for the cycle is not part of it.
  job.add_group(20, "outer", {3, 0});
  job.start(3, 20);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.cycle.size(), 3u);
  for (const WaitLink& link : analysis.cycle) EXPECT_EQ(link.waits_for, (link.rank + 1) % 3);
}

TEST(Explain, ACircleIsFoundBehindALowerRankThatWaitsForIt) {
  FlightJob job(4);
  for (int i = 1; i <= 3; ++i) {
    job.add_group(static_cast<uint64_t>(10 + i), "pair", {i, i % 3 + 1});
    job.start(i, static_cast<uint64_t>(10 + i)).awaited_ranks = 0b10;
  }
  job.add_group(20, "outer", {0, 1});
  job.start(0, 20).awaited_ranks = 0b10;
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.cycle.size(), 3u);
  for (const WaitLink& link : analysis.cycle) EXPECT_EQ(link.waits_for, link.rank % 3 + 1);
}

TEST(Explain, RanksThatCalledDifferentOperationsAreShownWithThem) {
  FlightJob job(4);
  for (int rank = 0; rank < 4; ++rank) {
    job.done(rank, kWorld);
    job.start(rank, kWorld, rank == 3 ? OpKind::kBroadcast : OpKind::kAllReduce,
              rank == 2 ? 2048 : 1024);
  }
  const std::string text = explain(job.logs());
  EXPECT_THAT(text, HasSubstr("The ranks of group world called different operations as number 1"));
  EXPECT_THAT(text, HasSubstr("ranks 0, 1: called all_reduce #1 of 1,024 float32, sum\n"
                              "  rank 2: called all_reduce #1 of 2,048 float32, sum\n"
                              "  rank 3: called broadcast #1 of 1,024 float32 from rank 0\n"));
}

TEST(Explain, ADisagreementCountsThoughBothSidesEnded) {
  FlightJob job(2);
  job.done(0, kWorld, OpKind::kBroadcast);
  job.done(1, kWorld, OpKind::kReduce);
  job.start(0, kWorld);
  job.start(1, kWorld);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  EXPECT_EQ(analysis.stuck_operations[0].sequence, 0u);
  EXPECT_EQ(analysis.stuck_operations[0].versions.size(), 2u);
}

TEST(Explain, TheFirstOperationThatDidNotEndIsShownOfEachGroup) {
  FlightJob job(2);
  job.add_group(5, "other", {0, 1});
  job.done(0, kWorld);
  job.start(0, kWorld);
  job.queue(0, kWorld);
  job.done(1, kWorld);
  job.start(1, kWorld);
  job.start(0, 5);
  job.start(1, 5);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 2u);
  EXPECT_EQ(analysis.stuck_operations[0].group.name, "world");
  EXPECT_EQ(analysis.stuck_operations[0].sequence, 1u);
  EXPECT_EQ(analysis.stuck_operations[1].group.name, "other");
}

TEST(Explain, RanksOfASubgroupAreThoseOfTheJob) {
  FlightJob job(8);
  job.add_group(4, "sub", {6, 2, 4});
  for (const int rank : {6, 4}) {
    FlightRecord& record = job.start(rank, 4, OpKind::kBroadcast);
    record.signature.root = 1;
    record.awaited_ranks = 0b010;
  }
  const std::string text = explain(job.logs());
  EXPECT_THAT(text, HasSubstr("Group sub (ranks 2, 4, 6) stands at broadcast #0 of 1,024 float32 "
                              "from rank 2:"));
  EXPECT_THAT(text, HasSubstr("ranks 4, 6: waiting for rank 2 for up to"));
  EXPECT_THAT(analyse(job.logs()).idle, ElementsAre(2));
}

TEST(Explain, AnAbsentRankThatWaitsElsewhereIsNotTheCause) {
  FlightJob job(3);
  job.add_group(4, "pair", {1, 2});
  job.start(0, kWorld).awaited_ranks = 0b010;
  job.start(1, 4).awaited_ranks = 0b10;
  const FlightAnalysis analysis = analyse(job.logs());
  EXPECT_THAT(analysis.idle, ElementsAre(2));
  EXPECT_THAT(explain(job.logs()), HasSubstr("rank 1: never came to it; last of the group: none; "
                                             "now in: all_reduce #0 of 1,024 float32, sum (group "
                                             "pair)"));
}

TEST(Explain, WithoutTheRecordOfWhoIsAwaitedThoseThatAreAbsentAre) {
  FlightJob job(4);
  job.start(0, kWorld);
  job.done(1, kWorld);
  job.lose(3);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  EXPECT_THAT(analysis.stuck_operations[0].waiting.at(0).on, ElementsAre(2, 3));
  EXPECT_THAT(analysis.stuck_operations[0].done, ElementsAre(1));
  EXPECT_THAT(ranks_of(analysis.stuck_operations[0].absent), ElementsAre(2));
  EXPECT_THAT(analysis.stuck_operations[0].without_log, ElementsAre(3));
}

TEST(Explain, RanksThatAreThereAreNotBlamedWhileOneIsAbsent) {
  FlightJob job(4);
  job.start(0, kWorld).awaited_ranks = 0b1110;
  job.start(1, kWorld).awaited_ranks = 0b1101;
  job.start(3, kWorld).awaited_ranks = 0b0011;  // waits for their results, which need rank 2
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  EXPECT_THAT(analysis.stuck_operations[0].waiting.at(0).on, ElementsAre(2));
  EXPECT_THAT(analysis.stuck_operations[0].waiting.at(1).on, ElementsAre(2));
  EXPECT_THAT(analysis.stuck_operations[0].waiting.at(2).on, ElementsAre(0, 1));
  EXPECT_THAT(explain(job.logs()), HasSubstr("ranks 0, 1: waiting for rank 2 for up to"));
}

TEST(Explain, ARankThatHasGoneOnIsDoneThoughItForgotTheOperation) {
  FlightJob job(2);
  job.start(0, kWorld);
  for (int i = 0; i < 5; ++i) job.done(1, kWorld);
  job.log(1).records.erase(job.log(1).records.begin(), job.log(1).records.begin() + 4);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  EXPECT_THAT(analysis.stuck_operations[0].done, ElementsAre(1));
  EXPECT_THAT(analysis.stuck_operations[0].absent, IsEmpty());
}

TEST(Explain, DataThatAllCalledForButDidNotArriveIsNamed) {
  FlightJob job(3);
  for (int rank = 0; rank < 3; ++rank) job.start(rank, kWorld);
  job.log(0).records[0].awaited_ranks = 0b010;
  EXPECT_THAT(explain(job.logs()),
              HasSubstr("All ranks of group world came to all_reduce #0 of 1,024 float32, sum, "
                        "which did not end: data of rank 1 did not arrive.\n"));
}

TEST(Explain, AnOperationThatHasNotStartedOnARankIsNamed) {
  FlightJob job(3);
  job.queue(2, kWorld);
  job.start(0, kWorld).awaited_ranks = 0b100;
  job.start(1, kWorld).awaited_ranks = 0b100;
  const std::string text = explain(job.logs());
  EXPECT_THAT(text, HasSubstr("it has not started on rank 2."));
  EXPECT_THAT(text, HasSubstr("rank 2: came to it 99.0 s ago; it has not started"));
}

TEST(Explain, AReceiveWhoseSendNobodyCalledIsShown) {
  FlightJob job(4);
  job.add_group(4, "pipe", {1, 3});
  FlightRecord& receive = job.start(1, 4, OpKind::kReceive);
  receive.signature.root = 1;
  receive.user_tag = 7;
  FlightRecord& other_tag = job.start(3, 4, OpKind::kSend);
  other_tag.user_tag = 8;
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.messages.size(), 2u);
  EXPECT_EQ(analysis.messages[0].peer, 3);
  EXPECT_EQ(analysis.messages[0].peer_is, PendingMessage::Peer::kNotCome);
  EXPECT_THAT(explain(job.logs()), HasSubstr("rank 1: recv #0 of 1,024 float32 from rank 3, tag 7 "
                                             "(group pipe) goes on for 99.0 s; rank 3 did not "
                                             "come to the other side of it"));
  other_tag.user_tag = 7;
  EXPECT_EQ(analyse(job.logs()).messages[0].peer_is, PendingMessage::Peer::kCame);
  job.lose(3);
  EXPECT_EQ(analyse(job.logs()).messages[0].peer_is, PendingMessage::Peer::kWithoutLog);
}

TEST(Explain, MessagesOfOneTagAreToldApartByTheirNumbers) {
  FlightJob job(2);
  FlightRecord& first = job.done(1, kWorld, OpKind::kSend);
  first.signature.root = 0;
  FlightRecord& second = job.start(0, kWorld, OpKind::kReceive);
  second.signature.root = 1;
  second.signature.sequence = 1;
  EXPECT_EQ(analyse(job.logs()).messages.at(0).peer_is, PendingMessage::Peer::kNotCome);
  first.signature.sequence = 1;
  EXPECT_EQ(analyse(job.logs()).messages.at(0).peer_is, PendingMessage::Peer::kCame);
}

TEST(Explain, APeerThatIsAtALaterMessageHasCome) {
  FlightJob job(3);
  job.add_group(2, "other", {0, 1, 2});
  FlightRecord& receive = job.start(0, kWorld, OpKind::kReceive);
  receive.signature.root = 1;
  receive.signature.sequence = 4;
  // The log no longer holds the send of message 4.
  FlightRecord& send = job.start(1, kWorld, OpKind::kSend);
  send.signature.root = 0;
  send.signature.sequence = 6;
  const auto peer_is = [&] { return analyse(job.logs()).messages.at(0).peer_is; };
  EXPECT_EQ(peer_is(), PendingMessage::Peer::kCame);
  send.signature.root = 2;
  EXPECT_EQ(peer_is(), PendingMessage::Peer::kNotCome) << "a message to another rank";
  send.signature.root = 0;
  send.signature.group = 2;
  EXPECT_EQ(peer_is(), PendingMessage::Peer::kNotCome) << "a message of another group";
  send.signature = receive.signature;
  send.signature.root = 0;
  EXPECT_EQ(peer_is(), PendingMessage::Peer::kNotCome) << "the peer receives as well";
}

TEST(Explain, TwoRanksThatReceiveFromEachOtherAreADeadlock) {
  FlightJob job(2);
  job.start(0, kWorld, OpKind::kReceive).signature.root = 1;
  job.start(1, kWorld, OpKind::kReceive).signature.root = 0;
  EXPECT_THAT(explain(job.logs()), HasSubstr("Likely a deadlock: rank 0 waits for rank 1 in recv"));
}

TEST(Explain, OfTwoLogsOfARankTheNewerCounts) {
  FlightJob job(2);
  job.done(0, kWorld);
  job.done(1, kWorld);
  std::vector<FlightLog> logs = job.logs();
  FlightJob before(2);
  before.start(0, kWorld);
  before.log(0).written_ns = 1;
  logs.push_back(before.log(0));
  EXPECT_THAT(analyse(logs).stuck_operations, IsEmpty());
}

TEST(Explain, LogsOfAnotherNumberOfRanksAreLeftOut) {
  FlightJob job(2);
  std::vector<FlightLog> logs = job.logs();
  FlightJob before(8);
  before.log(7).written_ns = 1;
  logs.insert(logs.begin(), before.log(7));
  EXPECT_EQ(analyse(logs).world_size, 2);
  EXPECT_THAT(explain(logs), HasSubstr("another job's number of ranks: logs of rank 7."));
}

TEST(Explain, LogsOfAnEarlierStartAreNamedAndLeftOut) {
  // In the first start rank 1 stood at another operation than rank 0 in the second.
  FlightJob first(3);
  first.fail(1, kWorld, 0b001);
  first.log(1).start = "first";
  first.log(1).reason = "of the first start";
  FlightJob second(3);
  for (const int rank : {0, 2}) {
    second.done(rank, kWorld);
    second.fail(rank, kWorld, 0b010);
    second.log(rank).start = "second";
    second.log(rank).written_ns += FlightJob::kSecond;
  }
  second.start(0, kWorld, OpKind::kBroadcast);
  const std::vector<FlightLog> logs = {second.log(0), first.log(1), second.log(2)};
  const FlightAnalysis analysis = analyse(logs);
  EXPECT_EQ(analysis.start, "second");
  EXPECT_THAT(analysis.other_starts, ElementsAre(1));
  EXPECT_THAT(analysis.without_log, ElementsAre(1));
  const std::string text = explain(logs);
  EXPECT_THAT(text, StartsWith("Logs of 2 of 3 ranks; none of rank 1.\n"
                               "Left out, being of another start of the job: logs of rank 1.\n"
                               "Others wait for rank 1, without a log"));
  EXPECT_THAT(text, testing::Not(HasSubstr("different operations")));
  EXPECT_THAT(text, testing::Not(HasSubstr("of the first start")));
}

TEST(Explain, NoLogsAreSaidToBeNone) { EXPECT_EQ(explain({}), "There are no logs.\n"); }

TEST(Explain, ALargeJobsTextStaysShort) {
  FlightJob job(256);
  for (int rank = 0; rank < 256; ++rank) {
    const auto group = static_cast<uint64_t>(1000 + rank);
    job.add_group(group, "of its own", {rank, (rank + 1) % 256});
    job.start(rank, group);
    job.start(rank, kWorld, OpKind::kReceive).signature.root = (rank + 1) % 256;
    job.log(rank).reason = std::to_string(rank);
  }
  const std::string text = explain(job.logs());
  EXPECT_LT(text.size(), 100'000u);
  EXPECT_THAT(text, HasSubstr("and 232 more groups"));
  EXPECT_THAT(text, HasSubstr("and 232 more such lines"));
}

/// If all ranks use blocking collectives of two groups in the same order, stopping at any moment is
/// no deadlock: each rank waits for one that can proceed, or can proceed itself.
RC_GTEST_PROP(ExplainProperty, RanksThatUseGroupsInOneOrderAreNeverADeadlock, ()) {
  const int size = *rc::gen::inRange(2, 6);
  const auto order = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  FlightJob job(size);
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(rank);
  job.add_group(2, "other", all);
  std::vector<size_t> reached;
  for (int rank = 0; rank < size; ++rank) {
    reached.push_back(*rc::gen::inRange<size_t>(0, order.size() + 1));
  }
  const size_t slowest = *std::ranges::min_element(reached);
  for (int rank = 0; rank < size; ++rank) {
    for (size_t i = 0; i < std::min(reached[static_cast<size_t>(rank)], slowest); ++i) {
      job.done(rank, order[i] ? 2 : kWorld);
    }
    if (reached[static_cast<size_t>(rank)] > slowest) job.start(rank, order[slowest] ? 2 : kWorld);
  }
  const FlightAnalysis analysis = analyse(job.logs());
  RC_ASSERT(analysis.cycle.empty());
  const bool stands = std::ranges::max(reached) > slowest;
  RC_ASSERT(analysis.stuck_operations.size() == (stands ? 1u : 0u));
  RC_ASSERT(analysis.idle.empty() != stands);
}

}  // namespace
}  // namespace lockstep::dist
