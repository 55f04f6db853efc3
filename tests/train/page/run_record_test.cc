#include "train/page/run_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunRecordTest : public testing::Test {
 protected:
  RunRecordTest() { std::filesystem::create_directories(run_); }

  void put(const std::string& name, std::string_view content) const {
    put_file(run_ / name, content);
  }
  RunRecord read(const RunRecordOptions& options = {}) const { return read_run(run_, options); }
  /// Its events, "20 checkpoint".
  static std::vector<std::string> events(const RunRecord& record) {
    std::vector<std::string> found;
    for (const RunEvent& event : record.events) {
      found.push_back(std::to_string(event.step) + " " + event.kind);
    }
    return found;
  }

  TemporaryDirectory folder_;
  std::filesystem::path run_ = folder_ / "run";
};

TEST_F(RunRecordTest, AFolderThatHoldsNoRunIsRefused) {
  EXPECT_THAT(message_of<DataError>([&] { read(); }), HasSubstr("holds no run"));
  EXPECT_THAT(message_of<DataError>([&] { read_run(folder_ / "absent"); }),
              HasSubstr("is not there"));
}

TEST_F(RunRecordTest, WhatIsMeasuredInEachStepIsACurve) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3,\"lr\":0.5,\"unknown\":7,\"val_loss\":4,\"tokens_per_s\":1000,\"step_"
      "ms\":20}\n"
      "{\"step\":2,\"loss\":2,\"lr\":0.25,\"tokens_per_s\":2000,\"step_ms\":10}\n");
  const RunRecord record = read();
  ASSERT_NE(record.find("loss"), nullptr);
  EXPECT_EQ(record.find("loss")->last().value, 2);
  EXPECT_EQ(record.find("val_loss")->count(), 1);
  EXPECT_FALSE(record.series.contains("step"));
  EXPECT_FALSE(record.series.contains("unknown"));
  EXPECT_EQ(record.steps, 2);
  EXPECT_EQ(record.tokens_per_step, 20);
  // Without an account of the wall time it is that of the steps.
  EXPECT_DOUBLE_EQ(record.find("wall_s")->last().value, 0.03);
}

TEST_F(RunRecordTest, WhatARunInTheMakingLacksIsNamed) {
  put("config.txtpb", "name: \"a\"\n");
  EXPECT_THAT(read().missing, ElementsAre("metrics.jsonl is not there.",
                                          HasSubstr("config_origins.txtpb is not there"),
                                          "environment.json is not there."));
  EXPECT_THAT(read().config, testing::SizeIs(1));
}

TEST_F(RunRecordTest, BrokenFilesAreNamedAndTheRestIsRead) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3}\nno json\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"lo");
  put("environment.json", "{\"host\": ");
  put("samples.jsonl", "{\"step\":1,\"text\":7}\n[]\n{\"step\":2,\"text\":\"two\"}\n{\"st");
  put("goodput.json", "[1]");
  put("overlap.json", std::string(100, '['));
  put("restarts.jsonl", "x\n");
  std::filesystem::create_directories(run_ / "config.txtpb");
  const RunRecord record = read();
  EXPECT_EQ(record.find("loss")->count(), 2);
  ASSERT_EQ(record.samples.size(), 1u);
  EXPECT_EQ(record.samples[0].text, "two");
  for (const char* part : {"metrics.jsonl: 1 line is no JSON object, the first is line 2",
                           "metrics.jsonl has a last line", "environment.json is no JSON object",
                           "samples.jsonl has a last line", "goodput.json is no JSON object",
                           "overlap.json is no JSON object", "config.txtpb cannot be read"}) {
    EXPECT_THAT(record.missing, Contains(HasSubstr(part)));
  }
}

TEST_F(RunRecordTest, LossesThatAreNotFiniteAreCountedAndLeftOut) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3}\n"
      "{\"step\":2,\"loss\":\"NaN\",\"skipped\":true,\"non_finite\":\"layer h.0\"}\n"
      "{\"step\":3,\"loss\":\"Infinity\"}\n");
  const RunRecord record = read();
  EXPECT_EQ(record.find("loss")->count(), 1);
  EXPECT_THAT(events(record), ElementsAre("2 left out"));
  EXPECT_EQ(record.events[0].text, "layer h.0");
  EXPECT_THAT(record.missing,
              Contains(HasSubstr("The loss of 2 steps is not finite, the first of step 2")));
}

TEST_F(RunRecordTest, SpikesAreEvents) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3,\"spike\":\"loss 3\"}\n"
      "{\"step\":2,\"loss\":4,\"skipped\":true,\"spike\":\"loss 4\"}\n");
  const RunRecord record = read();
  EXPECT_THAT(events(record), ElementsAre("1 spike", "2 left out"));
  EXPECT_EQ(record.events[0].text, "loss 3");
  EXPECT_EQ(record.events[1].text, "loss 4");
}

TEST_F(RunRecordTest, EventsStandWhereTheyHappened) {
  put("metrics.jsonl",
      "{\"step\":1,\"loss\":3,\"checkpoint_s\":0,\"starts\":1,\"restarts\":0}\n"
      "{\"step\":2,\"loss\":3}\n"
      "{\"step\":3,\"loss\":3,\"checkpoint_s\":0.5,\"starts\":1,\"restarts\":0}\n"
      "{\"step\":4,\"loss\":3,\"checkpoint_s\":0.5,\"starts\":2,\"restarts\":1}\n"
      "{\"step\":5,\"loss\":3,\"checkpoint_s\":0.5,\"starts\":3,\"restarts\":1}\n"
      "{\"rollback_to\":2}\n"
      "{\"log_lost\":\"No space left on device\"}\n"
      "{\"step\":3,\"loss\":7}\n");
  put("restarts.jsonl", "{\"cause\":\"rank 1 was killed\",\"step_lost\":4,\"resumed_from\":3}\n");
  const RunRecord record = read();
  EXPECT_THAT(events(record), ElementsAre("2 checkpoint", "2 rollback", "2 warning", "3 restart",
                                          "4 resume", "4 failure"));
  EXPECT_EQ(record.steps, 3);
  EXPECT_EQ(record.find("loss")->last().value, 7);
  EXPECT_EQ(record.find("loss")->count(), 3);
}

TEST_F(RunRecordTest, OfThousandsOfSamplesTheFirstTheLastAndSomeBetweenAreKept) {
  std::string text;
  for (int step = 1; step <= 5000; ++step) {
    text += "{\"step\":" + std::to_string(step) + ",\"text\":\"t\"}\n";
  }
  put("samples.jsonl", text);
  put("config.txtpb", "");
  RunRecordOptions options;
  options.samples = 50;
  const RunRecord record = read(options);
  EXPECT_LE(record.samples.size(), 51u);
  EXPECT_GE(record.samples.size(), 25u);
  EXPECT_EQ(record.samples.front().step, 1);
  EXPECT_EQ(record.samples.back().step, 5000);
  EXPECT_EQ(record.samples_left_out, 5000 - std::ssize(record.samples));
}

TEST_F(RunRecordTest, ALongSampleIsCut) {
  put("config.txtpb", "");
  put("samples.jsonl", "{\"step\":1,\"text\":\"" + std::string(1 << 20, 'a') + "\"}\n");
  RunRecordOptions options;
  options.samples = 0;
  options.sample_bytes = 0;
  const RunRecord record = read(options);
  ASSERT_EQ(record.samples.size(), 1u);
  EXPECT_LT(record.samples[0].text.size(), size_t{1} << 17);
  EXPECT_THAT(record.samples[0].text, HasSubstr(" bytes more"));
}

TEST_F(RunRecordTest, ACheckpointOfANewerVersionIsAWarning) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  std::filesystem::create_directories(run_ / "checkpoints/step-00000001");
  put("checkpoints/step-00000001/checkpoint.json",
      "{\"format\": \"lockstep checkpoint\", \"format_version\": 99}\n");
  const RunRecord record = read();
  ASSERT_THAT(events(record), ElementsAre("1 warning"));
  EXPECT_THAT(record.events[0].text, HasSubstr("OF A NEWER VERSION"));
}

TEST_F(RunRecordTest, TheConfigOfANewerVersionIsShownAsItIs) {
  put("config.txtpb", "name: \"a\"\nfuture {\n  speed: WARP\n}\n");
  const RunRecord record = read();
  ASSERT_EQ(record.config.size(), 2u);
  EXPECT_EQ(record.config[1].path, "future.speed");
  EXPECT_EQ(record.config[1].value, "WARP");
}

TEST_F(RunRecordTest, OtherRanksAreToldByTheStartsAloneAndNeedNoFilesOfTheirOwn) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3,\"exposed_comm_ms\":2}\n");
  EXPECT_EQ(read().ranks, 1);
  put("starts.jsonl", "{\"start\":\"a\",\"ranks\":8,\"begun\":\"x\",\"at_ns\":5}\n{\"sta");
  EXPECT_EQ(read().ranks, 8);
  EXPECT_NE(read().find("exposed_comm_ms"), nullptr);
}

TEST_F(RunRecordTest, AMetricsFileAloneIsARun) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  const RunRecord record = read_run(run_ / "metrics.jsonl");
  EXPECT_EQ(record.name, "run");
  EXPECT_THAT(record.missing, IsEmpty());
  put("metrics.jsonl", "");
  EXPECT_THAT(message_of<DataError>([&] { read_run(run_ / "metrics.jsonl"); }),
              HasSubstr("holds no step"));
}

TEST_F(RunRecordTest, TheNewestTimesOfTheRanksCount) {
  put("metrics.jsonl",
      "{\"step\":1,\"rank_steps\":5,\"rank_compute_ms\":[1,2],\"rank_data_wait_ms\":[3,4],"
      "\"rank_exposed_comm_ms\":[5,6],\"rank_core_wait_ms\":[7,8]}\n"
      "{\"step\":2,\"rank_steps\":5,\"rank_compute_ms\":[9,10],\"rank_data_wait_ms\":[3,4],"
      "\"rank_exposed_comm_ms\":[5,6],\"rank_numbers\":[3,70]}\n"
      "{\"step\":3}\n");
  const std::optional<RankComparison> found = read().rank_times;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->steps, 5);
  EXPECT_THAT(found->ranks, ElementsAre(RankTimes{3, 9, 3, 5, -1}, RankTimes{70, 10, 4, 6, -1}));
}

TEST_F(RunRecordTest, TimesOfRanksThatDoNotFitEachOtherAreLeftOut) {
  const std::string good =
      "{\"step\":1,\"rank_compute_ms\":[1,2],\"rank_data_wait_ms\":[3,4],"
      "\"rank_exposed_comm_ms\":[5,6]";
  put("metrics.jsonl", good + "}\n");
  EXPECT_TRUE(read().rank_times);
  for (const char* bad : {",\"rank_core_wait_ms\":[7]}\n", ",\"rank_numbers\":[0]}\n",
                          ",\"rank_numbers\":[0,-1]}\n", ",\"rank_numbers\":[0,1e300]}\n"}) {
    put("metrics.jsonl", good + bad);
    EXPECT_FALSE(read().rank_times) << bad;
  }
  for (const char* list : {"[]", "7", "[1,\"x\"]", "[1,\"NaN\"]", "[1,null]", "[1]", "{}"}) {
    put("metrics.jsonl", std::string("{\"step\":1,\"rank_compute_ms\":") + list +
                             ",\"rank_data_wait_ms\":[3,4],\"rank_exposed_comm_ms\":[5,6]}\n");
    EXPECT_FALSE(read().rank_times) << list;
  }
}

TEST_F(RunRecordTest, TheNewestDealOfLeavesCountsAndEachIsAnEvent) {
  put("metrics.jsonl",
      "{\"step\":1,\"rank_leaves\":[3,3,2]}\n{\"step\":2}\n"
      "{\"step\":3,\"rank_leaves\":[4,3,1]}\n{\"step\":4}\n");
  const RunRecord record = read();
  EXPECT_THAT(record.rank_leaves, ElementsAre(4, 3, 1));
  ASSERT_EQ(record.events.size(), 2u);
  EXPECT_EQ(record.events[1].step, 3);
  EXPECT_EQ(record.events[1].kind, "deal");
  EXPECT_EQ(record.events[1].text, "leaves by rank: 4, 3, 1");
  for (const char* bad : {"[]", "7", "[1,-1]", "[1,1.5]", "[1e300]", "[1,\"x\"]", "{}"}) {
    put("metrics.jsonl", std::string("{\"step\":1,\"rank_leaves\":") + bad + "}\n");
    EXPECT_THAT(read().rank_leaves, IsEmpty()) << bad;
    EXPECT_THAT(read().events, IsEmpty()) << bad;
  }
}

TEST_F(RunRecordTest, StepsThatNoRunCanHaveMadeAreNone) {
  put("config.txtpb", "");
  put("metrics.jsonl",
      "{\"step\":2,\"loss\":3}\n{\"step\":18446744073709551615,\"loss\":4}\n"
      "{\"step\":-4,\"loss\":5}\n{\"step\":2.5,\"loss\":6}\n{\"rollback_to\":-1}\n");
  put("restarts.jsonl",
      "{\"cause\":\"a\",\"step_lost\":18446744073709551615}\n{\"cause\":7,\"step_lost\":-7}\n");
  put("samples.jsonl",
      "{\"step\":18446744073709551615,\"text\":\"a\"}\n{\"step\":1,\"text\":\"b\"}\n");
  const RunRecord record = read();
  EXPECT_EQ(record.steps, 2);
  EXPECT_EQ(record.find("loss")->count(), 1);
  EXPECT_THAT(events(record), ElementsAre("0 failure", "0 failure"));
  ASSERT_EQ(record.samples.size(), 1u);
  EXPECT_EQ(record.samples[0].text, "b");
}

TEST_F(RunRecordTest, StepsWithoutALossAreTold) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":[3]}\n");
  EXPECT_THAT(read().missing, Contains(HasSubstr("steps without a loss: another version")));
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n");
  EXPECT_THAT(read().missing, testing::Not(Contains(HasSubstr("without a loss"))));
}

TEST_F(RunRecordTest, AFolderAndAFileAreNamedAfterTheRunsFolder) {
  put("metrics.jsonl", "{\"step\":1,\"loss\":3}\n{\"st");
  EXPECT_EQ(read().name, "run");
  EXPECT_EQ(read_run(run_ / "").name, "run");
  EXPECT_EQ(read_run(run_ / ".").name, "run");
  EXPECT_EQ(read_run(run_).path, run_);
  const RunRecord alone = read_run(run_ / "metrics.jsonl");
  EXPECT_EQ(alone.path, run_ / "metrics.jsonl");
  EXPECT_THAT(alone.missing, ElementsAre("The last line of the metrics is not whole."));
}

TEST_F(RunRecordTest, TheEnvironmentIsAListOfFactsWithTheirPaths) {
  put("environment.json",
      R"({"command_line": ["lockstep", "train", 7], "working_directory": "/w", "host": "h",)"
      R"( "libraries": {"zlib": "1.2", "deep": {"x": 0.1}}, "cores": [0, 1], "none": []})");
  const RunRecord record = read();
  EXPECT_THAT(record.command_line, ElementsAre("lockstep", "train", "7"));
  EXPECT_EQ(record.working_directory, "/w");
  using testing::Pair;
  EXPECT_THAT(
      record.environment,
      ElementsAre(Pair("working_directory", "/w"), Pair("host", "h"), Pair("libraries.zlib", "1.2"),
                  Pair("libraries.deep.x", "0.1"), Pair("cores", "0 1"), Pair("none", "")));
  put("environment.json", R"({"command_line": "lockstep"})");
  EXPECT_THAT(read().command_line, IsEmpty());
}

TEST_F(RunRecordTest, GoodputHasItsNumbersAndHowTheRunEnded) {
  put("metrics.jsonl", "");
  EXPECT_EQ(read().ended, "");
  put("goodput.json", R"({"wall_s": 2.5, "starts": 3, "ended": "finished", "note": "x"})");
  const RunRecord record = read();
  EXPECT_THAT(record.goodput,
              ElementsAre(testing::Pair("starts", 3.0), testing::Pair("wall_s", 2.5)));
  EXPECT_EQ(record.ended, "finished");
}

TEST_F(RunRecordTest, OriginsAreTakenFromTheAnnotatedConfig) {
  put("config.txtpb", "name: \"a\"\nseed: 1\n");
  put("config_origins.txtpb", "name: \"a\"  # x.txtpb:1:1\nseed: 2  # default\n");
  const RunRecord record = read();
  ASSERT_EQ(record.config.size(), 2u);
  EXPECT_EQ(record.config[0].origin, "x.txtpb:1:1");
  EXPECT_EQ(record.config[1].origin, "");
  EXPECT_THAT(record.missing,
              ElementsAre("metrics.jsonl is not there.", "environment.json is not there."));
}

TEST_F(RunRecordTest, AFailureTellsCauseHostAndWhereTheRunWentOn) {
  put("metrics.jsonl", "");
  put("restarts.jsonl",
      "{\"cause\":\"killed\",\"host\":\"h1\",\"step_lost\":4,\"resumed_from\":3}\n"
      "[]\n{\"cause\":\"lost\"}\n{\"step_lost\":\"x\"}\n");
  const RunRecord record = read();
  EXPECT_THAT(events(record), ElementsAre("0 failure", "0 failure", "4 failure"));
  EXPECT_EQ(record.events[0].text, "lost");
  EXPECT_EQ(record.events[1].text, "");
  EXPECT_EQ(record.events[2].text, "killed on h1, went on from 3");
}

TEST_F(RunRecordTest, SamplesAreThinnedBySteps) {
  put("config.txtpb", "");
  std::string text;
  for (int step = 1; step <= 11; ++step)
    text += fmt::format("{{\"step\":{},\"text\":\"ab\"}}\n", step);
  put("samples.jsonl", text);
  const auto steps = [&](const RunRecordOptions& options) {
    const RunRecord record = read(options);
    std::vector<int64_t> found;
    for (const RunSample& each : record.samples) found.push_back(each.step);
    EXPECT_EQ(record.samples_left_out, 11 - std::ssize(found));
    return found;
  };
  RunRecordOptions options;
  options.samples = 11;
  EXPECT_EQ(steps(options).size(), 11u);
  options.samples = 10;
  EXPECT_THAT(steps(options), ElementsAre(1, 3, 5, 7, 9, 11));
  options.samples = 4;
  EXPECT_THAT(steps(options), ElementsAre(1, 5, 9, 11));
  options.samples = 100;
  options.sample_bytes = 22;
  EXPECT_EQ(steps(options).size(), 11u);
  options.sample_bytes = 21;
  EXPECT_THAT(steps(options), ElementsAre(1, 3, 5, 7, 9, 11));
}

TEST_F(RunRecordTest, ASampleOf64KibibytesIsWhole) {
  put("config.txtpb", "");
  constexpr size_t kMost = size_t{1} << 16;
  for (const size_t size : {kMost, kMost + 3}) {
    put("samples.jsonl", "{\"step\":1,\"text\":\"" + std::string(size, 'a') + "\"}\n");
    EXPECT_EQ(read().samples[0].text,
              std::string(kMost, 'a') + (size == kMost ? "" : " ... 3 bytes more"));
  }
}

TEST_F(RunRecordTest, CommunicationHasFactsBucketsAndAPicture) {
  put("metrics.jsonl", "");
  put("overlap.json",
      R"({"step_ms": 12.5, "ranks": 2, "buckets": [{"first": "b", "last": "a", "bytes": 64,)"
      R"( "ready_ms": 1, "launched_ms": 2, "done_ms": 3, "exposed_ms": 0.5, "cause": "late"},)"
      R"( {"first": "c"}, 7]})");
  put("overlap.svg", "<svg/>");
  const RecordedOverlap overlap = read().overlap;
  EXPECT_THAT(overlap.facts,
              ElementsAre(testing::Pair("step_ms", "12.5"), testing::Pair("ranks", "2")));
  EXPECT_EQ(overlap.picture, "<svg/>");
  EXPECT_THAT(overlap.buckets,
              ElementsAre(ElementsAre("1", "b to a", "64", "1", "2", "3", "0.5", "late"),
                          ElementsAre("2", "c to -", "-", "-", "-", "-", "-", "-"),
                          ElementsAre("3", "- to -", "-", "-", "-", "-", "-", "-")));
}

}  // namespace
}  // namespace lockstep::train
