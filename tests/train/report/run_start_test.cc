#include "train/report/run_start.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dist/flight/flight_log.h"
#include "dist/group/thread_group.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

RunDirectory directory_at(const TemporaryDirectory& folder) {
  return RunDirectory::create_at(folder.path(), RunDirectory::Existing::kContinue);
}

TEST(RunStart, TheLastStartIsReadWithItsEnd) {
  const TemporaryDirectory folder;
  const RunDirectory directory = directory_at(folder);
  EXPECT_FALSE(read_last_start(folder.path()));
  std::vector<std::string> ids;
  for (const std::string_view how : {std::string_view(), kStopped, kFinished}) {
    auto groups = dist::thread_group(2);
    ids.push_back(groups[0]->start_id());
    EXPECT_EQ(groups[1]->start_id(), ids.back());
    std::thread other([&] { RunStart::follow(*groups[1]); });
    RunStart start(directory, groups[0].get());
    other.join();
    start.begin();
    if (!how.empty()) start.end(how);
    const auto last = read_last_start(folder.path());
    ASSERT_TRUE(last);
    EXPECT_EQ(last->id, ids.back());
    EXPECT_EQ(last->ranks, 2);
    EXPECT_EQ(last->end, how);
    EXPECT_EQ(last->ended_well(), !how.empty());
  }
  EXPECT_NE(ids[0], ids[1]);
}

TEST(RunStart, ALineThatAKilledProcessLeftIsSkipped) {
  const TemporaryDirectory folder;
  put_file(folder / "starts.jsonl",
           "{\"start\":\"a\",\"ranks\":3,\"begun\":\"x\"}\nno json\n[]\n"
           "{\"start\":\"b\",\"ended\":\"x\",\"how\":\"finished\"}\n{\"start\":\"a\",\"ra");
  const auto last = read_last_start(folder.path());
  ASSERT_TRUE(last);
  EXPECT_EQ(last->id, "a");
  EXPECT_FALSE(last->ended_well());
}

TEST(RunStart, OneRankKeepsNothing) {
  const TemporaryDirectory folder;
  RunStart start(directory_at(folder), nullptr);
  start.begin();
  start.end(kFinished);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RunStart, FlightLogsGoToTheDirectoryOnAllRanksWithTheSameStart) {
  const TemporaryDirectory folder;
  const RunDirectory directory = directory_at(folder);
  const auto errors = dist::run_thread_ranks(2, [&](dist::ProcessGroup& group) {
    if (group.rank() == 0) {
      const RunStart start(directory, &group);
    } else {
      RunStart::follow(group);
    }
    group.barrier().wait();
    if (group.rank() == 1) throw DataError("[shards] broken");
    group.barrier().wait();
  });
  EXPECT_NE(errors[0], nullptr);
  std::vector<dist::FlightLog> logs;
  for (const int rank : {0, 1}) {
    logs.push_back(
        dist::read_flight_log(folder / ("flight/flight.rank" + std::to_string(rank) + ".json")));
  }
  EXPECT_EQ(logs[0].start, logs[1].start);
  EXPECT_FALSE(logs[0].start.empty());
  EXPECT_NE(logs[0].reason.find("rank 1 failed: [shards] broken"), std::string::npos);
}

TEST(LastStart, IsThatOfTheLinesThatRunStartWrote) {
  const auto last = [](const std::string& more) {
    return parse_last_start("{\"start\":\"a\",\"ranks\":3,\"at_ns\":5}\n" + more);
  };
  EXPECT_EQ(last("")->id, "a");
  EXPECT_EQ(last("")->ranks, 3);
  EXPECT_EQ(last("")->told_ns, 5);
  EXPECT_EQ(last("")->end, "");
  const auto stopped = last("{\"start\":\"a\",\"how\":\"stopped\",\"at_ns\":7}\n");
  EXPECT_EQ(stopped->end, "stopped");
  EXPECT_EQ(stopped->told_ns, 7);
  EXPECT_EQ(last("{\"start\":\"a\",\"how\":\"finished\"}\n")->end, "finished");
  EXPECT_EQ(last("{\"start\":\"a\",\"how\":\"finished\"}\n")->told_ns, 5);
  EXPECT_EQ(last("{\"start\":\"b\",\"how\":\"finished\"}\n")->end, "") << "another start's";
  EXPECT_EQ(last("{\"start\":\"a\",\"how\":\"somehow\"}\n")->end, "");
  for (const char* ranks : {"0", "-1", "2147483648", "1.5", "\"2\""}) {
    EXPECT_EQ(last(fmt::format("{{\"start\":\"b\",\"ranks\":{}}}\n", ranks))->id, "a") << ranks;
  }
  EXPECT_EQ(last("{\"start\":\"b\",\"ranks\":1}\n")->id, "b");
  EXPECT_EQ(last("{\"start\":\"b\",\"ranks\":1,\"at_ns\":-1}\n")->id, "a");
  EXPECT_EQ(last("{\"start\":\"b\",\"ranks\":1}\n")->told_ns, 0);
  for (const char* hosts : {"[0.5]", "[-1]", "[\"a\"]", "{}", "7"}) {
    const auto start = last(fmt::format("{{\"start\":\"b\",\"ranks\":2,\"hosts\":{}}}\n", hosts));
    EXPECT_TRUE(start->hosts.empty()) << hosts;
  }
}

TEST(LastStart, TellsWhetherAllStartsHadTheSameRanks) {
  const auto last = [](const std::string& text) { return *parse_last_start(text); };
  const std::string two = "{\"start\":\"a\",\"ranks\":2}\n";
  const std::string apart = "{\"start\":\"b\",\"ranks\":2,\"hosts\":[0.0,1.0]}\n";
  EXPECT_TRUE(last(two).is_as_before);
  EXPECT_TRUE(last(two + "{\"start\":\"a\",\"how\":\"stopped\"}\n" + two).is_as_before);
  EXPECT_EQ(last(apart).hosts, (std::vector<int>{0, 1}));
  EXPECT_TRUE(last(apart + apart).is_as_before);
  EXPECT_FALSE(last(two + apart).is_as_before);
  EXPECT_FALSE(last(two + "{\"start\":\"b\",\"ranks\":3}\n").is_as_before);
  EXPECT_FALSE(last(two + apart + two + two).is_as_before) << "an earlier one was another";
}

}  // namespace
}  // namespace lockstep::train
