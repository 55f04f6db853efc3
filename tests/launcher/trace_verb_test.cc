#include <nlohmann/json.hpp>

#include "tests/dist/flight/flight_job.h"
#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

class TraceVerb : public Program {
 protected:
  /// Writes the logs of four ranks of which the last did not reach the second operation.
  void put_logs(const std::string& folder) const {
    dist::FlightJob job(4);
    for (int rank = 0; rank < 4; ++rank) {
      job.done(rank, dist::FlightJob::kWorld);
      if (rank < 3) job.start(rank, dist::FlightJob::kWorld).awaited_ranks = 0b1000;
    }
    std::filesystem::create_directories(folder_ / folder);
    for (const dist::FlightLog& log : job.logs()) {
      put_file(folder_ / fmt::format("{}/flight.rank{}.json", folder, log.rank),
               dist::format_flight_log(log));
    }
    put_file(folder_ / (folder + "/flight.rank1.json.partial-77"), "{");
  }
};

TEST_F(TraceVerb, ExplainsTheLogsOfAFolder) {
  put_logs("logs");
  const Result result = run("trace logs");
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_TRUE(says(result.output, "Logs of 4 of 4 ranks.\nOthers wait for rank 3"));
  EXPECT_TRUE(says(result.output, "ranks 0-2: waiting for rank 3"));
}

TEST_F(TraceVerb, FindsTheLogsOfARunAndTakesFiles) {
  put_logs("run/flight");
  const std::string of_run = run("trace run").output;
  EXPECT_TRUE(says(of_run, "Logs of 4 of 4 ranks."));
  EXPECT_EQ(run("trace run/flight/*.json").output, of_run);
  EXPECT_TRUE(says(run("trace run/flight/flight.rank[012].json").output,
                   "Logs of 3 of 4 ranks; none of rank 3."));
}

TEST_F(TraceVerb, TellsToolsTheSame) {
  put_logs("logs");
  const auto json = nlohmann::json::parse(run("trace logs --json").output);
  EXPECT_EQ(json["world_size"], 4);
  EXPECT_EQ(json["idle"], std::vector<int>{3});
  ASSERT_EQ(json["standstills"].size(), 1u);
  const auto& standstill = json["standstills"][0];
  EXPECT_EQ(standstill["group"], "world");
  EXPECT_EQ(standstill["sequence"], 1);
  EXPECT_EQ(standstill["waiting"][0]["waits_for"], std::vector<int>{3});
  EXPECT_EQ(standstill["absent"][0]["rank"], 3);
  EXPECT_EQ(standstill["absent"][0]["last"]["kind"], "all_reduce");
}

TEST_F(TraceVerb, WhatIsNoLogIsAnErrorOfItsData) {
  put_file(folder_ / "broken.json", "{\"format\": \"lockstep");
  std::filesystem::create_directories(folder_ / "empty");
  const Result broken = run("trace broken.json");
  EXPECT_EQ(broken.status, 3);
  EXPECT_TRUE(says(broken.errors, "broken.json: not JSON from byte"));
  const Result empty = run("trace empty");
  EXPECT_EQ(empty.status, 3);
  EXPECT_TRUE(says(empty.errors, "holds no flight log"));
  EXPECT_EQ(run("trace absent").status, 3);
  EXPECT_EQ(run("trace").status, 2);
}

}  // namespace
}  // namespace lockstep::launcher
