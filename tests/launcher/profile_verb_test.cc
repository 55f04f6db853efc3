// `lockstep train --profile` and `lockstep profile`.

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "profile/chrome_trace.h"
#include "tests/launcher/ranks.h"

namespace lockstep::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Json = nlohmann::json;

class ProfileVerb : public Program {
 protected:
  /// Trains one step of six that is profiled.
  Result train(const std::string& more = "") const {
    put_config("run.txtpb");
    return run("train run.txtpb --run-dir out --profile wait=1,warmup=1,active=2 " + more);
  }
  profile::Profile trace(const std::string& name = "trace-0.json.gz") const {
    return profile::read_trace_file(folder_ / "out/profile" / name);
  }
  static int64_t count(const profile::Profile& profile, SpanKind kind) {
    return std::ranges::count(profile.spans, kind, &profile::ProfileSpan::kind);
  }
};

TEST_F(ProfileVerb, TrainPrintsATableAndWritesATrace) {
  const Result result = train();
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("2 steps of "));
  EXPECT_THAT(result.output, HasSubstr("of peak"));
  EXPECT_THAT(run("profile out --top 0").output, HasSubstr("AddmmBackward0"));
  EXPECT_THAT(result.output, HasSubstr("memory on cpu: "));
  const profile::Profile recorded = trace();
  EXPECT_EQ(recorded.steps, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(recorded.lost(), 0u);
  EXPECT_GT(count(recorded, SpanKind::kOperator), 20);
  EXPECT_GT(count(recorded, SpanKind::kNode), 10);
  EXPECT_GT(count(recorded, SpanKind::kMemory), 20);
}

TEST_F(ProfileVerb, TheRunsBitsAreThoseOfOneWithoutAProfile) {
  ASSERT_EQ(train().status, 0);
  ASSERT_EQ(run("train run.txtpb --run-dir plain").status, 0);
  EXPECT_EQ(run("compare out plain").status, 0) << run("compare out plain").output;
}

TEST_F(ProfileVerb, ShowsTheTableAgainInOtherOrdersAndForPrograms) {
  ASSERT_EQ(train().status, 0);
  EXPECT_THAT(run("profile out --top 2").output, HasSubstr(" more)"));
  EXPECT_THAT(run("profile out --by module --top 0").output, HasSubstr("h.0.attn"));
  EXPECT_THAT(run("profile out --by shapes --top 0").output, HasSubstr("[2,8,8]"));
  std::istringstream lines(run("profile out --json --sort calls").output);
  int64_t before = INT64_MAX;
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    const Json row = Json::parse(line);
    EXPECT_LE(row["calls"], before);
    before = row["calls"];
  }
  EXPECT_GT(rows, 20);
  const Result unknown = run("profile out --sort colour");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("expected one of self, total"));
}

TEST_F(ProfileVerb, WritesFoldedStacksAndAMergedTrace) {
  ASSERT_EQ(train().status, 0);
  const Result result = run("profile out --stacks stacks.txt --merge all.json.gz");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(file_content(folder_ / "stacks.txt"), HasSubstr(";forward;"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "all.json.gz"));
}

TEST_F(ProfileVerb, TheConfigCanAskForItToo) {
  put_config("run.txtpb", "profile { wait: 0 warmup: 0 active: 1 repeat: 2 }\n");
  const Result result = run("train run.txtpb --run-dir out --log-format json");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, Not(HasSubstr("of peak")));
  EXPECT_EQ(trace().steps, (std::vector<int64_t>{0}));
  EXPECT_EQ(trace("trace-0.cycle-2.json.gz").steps, (std::vector<int64_t>{1}));
  EXPECT_THAT(run("profile out --cycle 2").output, HasSubstr("1 steps of "));
}

TEST_F(ProfileVerb, AShortRunSaysThatNothingWasRecorded) {
  put_config("run.txtpb");
  const Result result = run("train run.txtpb --run-dir out --steps 3 --profile");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("nothing: the run made 3 steps"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/profile"));
}

TEST_F(ProfileVerb, FullBuffersAreSaid) {
  const Result result = train("--set profile.buffer_spans=50");
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("spans did not fit the buffers"));
}

TEST_F(ProfileVerb, ARunThatFailsLeavesWhatItRecorded) {
  put_config("run.txtpb", "optimizer { learning_rate: 1000 clip_grad_norm: 0 sgd { } }\n");
  const Result result =
      run("train run.txtpb --run-dir out --steps 200 --profile wait=0,warmup=0,active=1000");
  EXPECT_EQ(result.status, 7) << result.errors;
  EXPECT_FALSE(trace().steps.empty());
}

TEST_F(ProfileVerb, OnADeviceWithStreamsKernelsAreTiedToTheirLaunches) {
  put_config("run.txtpb", "device: \"host:0\"\n");
  const Result result = run("train run.txtpb --run-dir out --profile wait=1,warmup=1,active=2");
  ASSERT_EQ(result.status, 0) << result.errors;
  const profile::Profile recorded = trace();
  int64_t tied = 0;
  for (const profile::ProfileSpan& span : recorded.spans) {
    if (span.kind != SpanKind::kKernel || span.cause < 0) continue;
    const profile::ProfileSpan& launch = recorded.spans[static_cast<size_t>(span.cause)];
    EXPECT_EQ(launch.kind, SpanKind::kLaunch);
    EXPECT_LE(launch.begin_ns, span.begin_ns);
    EXPECT_EQ(recorded.threads[span.thread].device, 0);
    ++tied;
  }
  EXPECT_GT(tied, 20);
  EXPECT_GT(count(recorded, SpanKind::kWait), 0);
}

TEST_F(ProfileVerb, WhatCannotBeReadIsAnErrorOfItsData) {
  put_config("run.txtpb");
  const Result schedule = run("train run.txtpb --run-dir out --profile wait=2,activ=3");
  EXPECT_EQ(schedule.status, 2);
  EXPECT_THAT(schedule.errors, HasSubstr("no part \"activ=3\""));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_EQ(run("profile empty").status, 3);
  EXPECT_THAT(run("profile empty").errors, HasSubstr("holds no trace of cycle 1"));
  put_file(folder_ / "broken.json", "{}");
  EXPECT_EQ(run("profile broken.json").status, 3);
}

class ProfileOfRanks : public RanksTest {};

TEST_F(ProfileOfRanks, EveryRankWritesItsTrace) {
  put_config("run.txtpb");
  const Result result =
      run("launch -np 2 --oversubscribe --allow-run-as-root run.txtpb --run-dir out --set "
          "train.batch_size=4 "
          "--profile wait=1,warmup=1,active=2");
  ASSERT_EQ(result.status, 0) << result.errors;
  for (int rank = 0; rank < 2; ++rank) {
    const profile::Profile recorded =
        profile::read_trace_file(folder_ / fmt::format("out/profile/trace-{}.json.gz", rank));
    EXPECT_EQ(recorded.rank.rank, rank);
    EXPECT_EQ(recorded.rank.size, 2);
    EXPECT_EQ(recorded.steps, (std::vector<int64_t>{2, 3}));
    EXPECT_GT(
        std::ranges::count(recorded.spans, SpanKind::kCollective, &profile::ProfileSpan::kind), 2);
    EXPECT_TRUE(std::ranges::count(recorded.spans, "bucket 1", &profile::ProfileSpan::label));
  }
  const Result shown = run("profile out --rank 1 --merge all.json.gz");
  ASSERT_EQ(shown.status, 0) << shown.errors;
  EXPECT_THAT(shown.output, HasSubstr("rank 1"));
  EXPECT_THAT(shown.output, HasSubstr("worked longest"));
  EXPECT_THAT(shown.output, HasSubstr("\nbucket 1 "));
  EXPECT_THAT(shown.output, Not(HasSubstr("ranks are there")));
  std::filesystem::remove(folder_ / "out/profile/trace-1.json.gz");
  EXPECT_THAT(run("profile out").output, HasSubstr("Traces of 1 of 2 ranks are there"));
}

}  // namespace
}  // namespace lockstep::launcher
