// The lines of an explanation, word for word.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dist/flight/flight_analysis.h"
#include "dist/flight/flight_log.h"
#include "tests/dist/flight/flight_job.h"

namespace lockstep::dist {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kAll = FlightJob::kWorld;

TEST(ExplainLines, SayWhatEachRankOfAStuckOperationDoes) {
  FlightJob job(7);
  job.add_group(2, "other", {5, 6});
  for (const int rank : {0, 1, 2, 3, 4, 5}) job.done(rank, kAll);
  job.log(5).records[0].tensors = 3;
  job.start(0, kAll).awaited_ranks = 0b0100000;
  job.fail(1, kAll, 0b0100000);
  job.queue(2, kAll);
  FlightRecord& unstarted = job.queue(3, kAll);
  unstarted.state = FlightRecord::State::kFailed;
  unstarted.ended_ns = unstarted.queued_ns + FlightJob::kSecond;
  job.done(4, kAll);
  job.start(5, 2, OpKind::kReceive).signature.root = 1;
  job.log(5).records.back().user_tag = 9;
  job.lose(6);
  job.log(0).reason = "";
  EXPECT_EQ(explain(job.logs()),
            R"(Logs of 6 of 7 ranks; none of rank 6.
Others wait for rank 6, without a log: killed, stopped, or the log lies elsewhere.

Group world (ranks 0-6) stands at all_reduce #1 of 1,024 float32, sum:
  rank 0: waiting for rank 5 for 98.0 s
  rank 1: failed after waiting for rank 5 for 60.0 s
  rank 2: came to it 98.0 s ago; it has not started, work before it goes on
  rank 3: came to it; it failed before it started
  rank 5: never came to it; last of the group: all_reduce #0 of 1,024 float32, sum, 3 tensors together, done 98.5 s before the log; now in: recv #0 of 1,024 float32 from rank 6, tag 9 (group other)
  rank 6: no log
  rank 4: done with it

Sends and receives that did not end:
  rank 5: recv #0 of 1,024 float32 from rank 6, tag 9 (group other) goes on for 98.0 s; rank 6 left no log

Why the logs were written:
  rank 0: no reason
  ranks 1-5: asked to
)");
}

TEST(ExplainLines, OfAnOperationThatAllAreInSayForHowLong) {
  FlightJob job(3);
  for (const int rank : {0, 1, 2}) job.start(rank, kAll);
  EXPECT_EQ(explain(job.logs()),
            R"(Logs of 3 of 3 ranks.
All ranks of group world came to all_reduce #0 of 1,024 float32, sum, which did not end.

Group world (ranks 0-2) stands at all_reduce #0 of 1,024 float32, sum:
  ranks 0-2: in it for up to 99.0 s

Why the logs were written:
  ranks 0-2: asked to
)");
  FlightJob failed(2);
  for (const int rank : {0, 1}) failed.fail(rank, kAll, 0);
  EXPECT_THAT(explain(failed.logs()),
              HasSubstr("\n  ranks 0, 1: failed in it after up to 60.0 s\n"));
}

TEST(ExplainLines, OfARankThatNeverUsedTheGroupSayThatItCameToNone) {
  FlightJob job(3);
  for (const int rank : {0, 1}) {
    job.done(rank, kAll);
    job.start(rank, kAll);
  }
  EXPECT_THAT(explain(job.logs()),
              HasSubstr("Group world (ranks 0-2) stands at all_reduce #1 of 1,024 float32, sum:\n"
                        "  ranks 0, 1: waiting for rank 2 for up to 98.0 s\n"
                        "  rank 2: never came to it; last of the group: none; now in: no "
                        "operation\n"));
}

TEST(ExplainLines, OfMessagesSayWhereTheOtherSideIs) {
  FlightJob job(3);
  FlightRecord& sent = job.start(0, kAll, OpKind::kSend);
  sent.signature.root = 1;
  sent.state = FlightRecord::State::kFailed;
  sent.ended_ns = sent.queued_ns + 2 * FlightJob::kSecond;
  job.start(1, kAll, OpKind::kReceive).signature.root = 0;
  EXPECT_EQ(explain(job.logs()),
            R"(Logs of 3 of 3 ranks.
No rank stands out; what each waits for:

Sends and receives that did not end:
  rank 0: send #0 of 1,024 float32 to rank 1, tag 0 (group world) failed after 2.0 s; rank 1 came to the other side of it
  rank 1: recv #0 of 1,024 float32 from rank 0, tag 0 (group world) goes on for 99.0 s; rank 0 came to the other side of it

Why the logs were written:
  ranks 0-2: asked to
)");
}

TEST(ExplainLines, OfADeadlockWithMessagesSayWhatToChange) {
  FlightJob job(2);
  job.start(0, kAll, OpKind::kReceive).signature.root = 1;
  job.start(1, kAll).awaited_ranks = 0b01;
  EXPECT_THAT(explain(job.logs()),
              HasSubstr("Likely a deadlock: rank 0 waits for rank 1 in recv #0 of 1,024 float32 "
                        "from rank 1, tag 0 (group world), rank 1 waits for rank 0 in all_reduce "
                        "#0 of 1,024 float32, sum (group world). One of them must come to "
                        "another's operation first.\n"));
}

TEST(ExplainLines, NameTheProcessesOfUpToFourIdleRanks) {
  FlightJob job(7);
  job.start(0, kAll).awaited_ranks = 0b1111110;
  for (int rank = 0; rank < 7; ++rank) job.log(rank).process = 100 + rank;
  EXPECT_THAT(explain(job.logs()),
              HasSubstr("Others wait for ranks 1-6, in no operation: see what the program does "
                        "there, and the end of what it printed. Rank 1 was process 101 on alpha. "
                        "Rank 2 was process 102 on alpha. Rank 3 was process 103 on alpha. Rank 4 "
                        "was process 104 on alpha.\n"));
}

TEST(ExplainLines, AreShownUpToTwentyFourOfThem) {
  const auto lines_of = [](int ranks) {
    FlightJob job(ranks);
    for (int rank = 0; rank < ranks; ++rank) job.log(rank).reason = std::to_string(rank);
    return explain(job.logs());
  };
  EXPECT_THAT(lines_of(24), EndsWith("  rank 23: 23\n"));
  EXPECT_THAT(lines_of(25), EndsWith("  rank 23: 23\n  and 1 more such lines\n"));
  FlightJob job(2);
  for (uint64_t group = 10; group < 34; ++group) {
    job.add_group(group, "many", {0, 1});
    job.start(0, group);
  }
  EXPECT_THAT(explain(job.logs()), Not(HasSubstr("more groups")));
  job.add_group(34, "many", {0, 1});
  job.start(0, 34);
  EXPECT_THAT(explain(job.logs()), HasSubstr("\nand 1 more groups\n"));
}

TEST(ExplainLines, NameAllThatAreLeftOut) {
  FlightJob job(2);
  std::vector<FlightLog> logs = job.logs();
  FlightJob other(8);
  for (const int rank : {3, 5}) {
    logs.push_back(other.log(rank));
    logs.back().written_ns = 1;
    logs.back().start = rank == 3 ? "before" : "";
  }
  EXPECT_THAT(explain(logs),
              HasSubstr("Logs of 2 of 2 ranks.\n"
                        "Left out, being of another start of the job: logs of rank 3.\n"
                        "Left out, being of another job's number of ranks: logs of rank 5.\n"
                        "Every operation that a rank came to has ended.\n"));
}

TEST(ExplainLines, OfADisagreementNameTheOperationOnBothSidesAndNoTransfer) {
  FlightJob job(2);
  job.start(0, kAll);
  job.start(1, kAll, OpKind::kAllReduce, 2048);
  EXPECT_EQ(explain(job.logs()),
            R"(Logs of 2 of 2 ranks.
The ranks of group world called different operations as number 0 of the group. All must call the same ones in the same order.

Group world (ranks 0, 1) stands at #0, which its ranks disagree about:
  rank 0: called all_reduce #0 of 1,024 float32, sum
  rank 1: called all_reduce #0 of 2,048 float32, sum

Why the logs were written:
  ranks 0, 1: asked to
)");
}

TEST(Analyse, RanksBeyondTheMaskAreAwaitedUnlessTheyCame) {
  FlightJob job(67);
  job.start(0, kAll).awaited_ranks = 0b10;
  job.done(65, kAll);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  EXPECT_THAT(analysis.stuck_operations[0].waiting.at(0).on, ElementsAre(1, 64, 66));
}

TEST(Analyse, AGroupThatNoLogDescribesHasTheRanksThatUsedIt) {
  FlightJob job(3);
  for (const int rank : {2, 0}) {
    FlightRecord& record = job.start(rank, 77, OpKind::kBroadcast);
    record.signature.root = 5;
    set_group_name(record, "unknown");
  }
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  const StuckOperation& stuck = analysis.stuck_operations[0];
  EXPECT_EQ(stuck.group.id, 77u);
  EXPECT_EQ(stuck.group.name, "unknown");
  EXPECT_THAT(stuck.group.ranks, ElementsAre(0, 2));
  EXPECT_EQ(stuck.versions.at(0).signature.root, 5);
}

TEST(Analyse, TheFirstOperationOnWhichRanksDifferIsFoundBehindThatWhichIsOpen) {
  FlightJob job(3);
  for (const int rank : {0, 1, 2}) job.done(rank, kAll);
  job.done(0, kAll, OpKind::kBroadcast);
  job.done(1, kAll, OpKind::kReduce);
  job.start(2, kAll, OpKind::kReduce);
  job.start(0, kAll);
  job.done(1, kAll, OpKind::kBarrier);
  const FlightAnalysis analysis = analyse(job.logs());
  ASSERT_EQ(analysis.stuck_operations.size(), 1u);
  const StuckOperation& stuck = analysis.stuck_operations[0];
  EXPECT_EQ(stuck.sequence, 1u);
  ASSERT_EQ(stuck.versions.size(), 2u);
  EXPECT_THAT(stuck.versions[0].ranks, ElementsAre(0));
  EXPECT_THAT(stuck.versions[1].ranks, ElementsAre(1, 2));
  EXPECT_THAT(stuck.done, ElementsAre(0, 1));
}

TEST(ExplainLines, NameTheBucketOrUnitOfAnOperation) {
  FlightJob job(2);
  for (const int rank : {0, 1}) set_label(job.done(rank, kAll), "bucket 1");
  set_label(job.start(0, kAll), "bucket 2");
  job.lose(1);
  EXPECT_THAT(explain(job.logs()),
              HasSubstr("stands at all_reduce #1 of 1,024 float32, sum, of bucket 2:"));
}

}  // namespace
}  // namespace lockstep::dist
