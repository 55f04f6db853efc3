#include "train/page/metrics_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RunRecord record_of(const std::vector<std::string>& lines, const RunRecordOptions& options = {}) {
  RunRecord record;
  MetricsReader reader(record, options);
  int64_t number = 0;
  for (const std::string& line : lines) reader.read(line, ++number);
  reader.finish();
  return record;
}

/// "20 checkpoint: ...".
std::vector<std::string> events_of(const std::vector<std::string>& lines) {
  std::vector<std::string> texts;
  for (const RunEvent& each : record_of(lines).events) {
    texts.push_back(fmt::format("{} {}: {}", each.step, each.kind, each.text));
  }
  return texts;
}

TEST(MetricsReader, StepsThatNoRunReachesAreNoSteps) {
  EXPECT_EQ(record_of({R"({"step":9007199254740992,"loss":1})"}).steps, int64_t{1} << 53);
  EXPECT_EQ(record_of({R"({"step":0,"loss":1})"}).find("loss")->count(), 1);
  for (const char* step : {"9007199254740993", "-1", "1.5", "\"1\"", "18446744073709551615"}) {
    const RunRecord record = record_of({fmt::format(R"({{"step":{},"loss":1}})", step)});
    EXPECT_EQ(record.find("loss"), nullptr) << step;
    EXPECT_EQ(record.steps, 0) << step;
  }
}

TEST(MetricsReader, ZerosThatAPowerCutLeftAreSkipped) {
  const RunRecord record =
      record_of({std::string(5, '\0') + R"({"step":1,"loss":2})", std::string(3, '\0')});
  EXPECT_EQ(record.find("loss")->last().value, 2);
  EXPECT_THAT(record.missing,
              ElementsAre("metrics.jsonl: 1 line is no JSON object, the first is line 2."));
}

TEST(MetricsReader, SaysWhatItLeavesOut) {
  const RunRecord record =
      record_of({R"({"step":1,"loss":2})", "[1]", "", R"({"step":2,"loss":"-Infinity"})",
                 R"({"step":3,"loss":"NaN"})", R"({"step":4,"loss":"many"})"});
  EXPECT_THAT(record.missing,
              ElementsAre("metrics.jsonl: 2 lines are no JSON object, the first is line 2.",
                          "The loss of 2 steps is not finite, the first of step 2; curves leave "
                          "them out."));
  EXPECT_EQ(record.find("loss")->not_finite(), 2);
  EXPECT_THAT(record_of({R"({"step":7,"loss":"Infinity"})"}).missing,
              ElementsAre("The loss of 1 step is not finite, the first of step 7; curves leave "
                          "them out."));
  EXPECT_THAT(record_of({R"({"step":7,"lr":"NaN","loss":1})"}).missing, IsEmpty());
}

TEST(MetricsReader, KeepsNoMoreEventsThanAsked) {
  std::vector<std::string> lines;
  for (int step = 1; step <= 5; ++step) {
    lines.push_back(fmt::format(R"({{"step":{},"spike":"s"}})", step));
  }
  RunRecordOptions options;
  options.events = 3;
  const RunRecord record = record_of(lines, options);
  EXPECT_EQ(record.events.size(), 3u);
  EXPECT_EQ(record.events.back().step, 3);
  EXPECT_EQ(record.events_left_out, 2);
}

TEST(MetricsReader, TellsStartsWithTheirStep) {
  EXPECT_THAT(
      events_of({R"({"step":1,"starts":1,"restarts":0})", R"({"step":1,"starts":2,"restarts":0})",
                 R"({"step":5,"starts":3,"restarts":1})", R"({"step":6})",
                 R"({"step":7,"starts":3,"restarts":1})", R"({"step":8,"starts":4,"restarts":1})"}),
      ElementsAre("0 resume: start 2 of the run",
                  "4 restart: start 3 of the run, from the checkpoint of this step",
                  "7 resume: start 4 of the run, from the checkpoint of this step"));
  EXPECT_THAT(events_of({R"({"step":4,"starts":3,"restarts":2})"}), IsEmpty())
      << "nothing is known of what was before";
}

TEST(MetricsReader, ACheckpointIsThatOfTheStepBefore) {
  EXPECT_THAT(events_of({R"({"step":1,"starts":1,"checkpoint_s":0.25})",
                         R"({"step":2,"starts":1,"checkpoint_s":1.5})", R"({"step":3})",
                         R"({"step":4,"starts":1,"checkpoint_s":1.5})",
                         R"({"step":5,"starts":1,"checkpoint_s":1.625})"}),
              ElementsAre("1 checkpoint: training stood still for 1.250 s",
                          "4 checkpoint: training stood still for 0.125 s"));
}

TEST(MetricsReader, TellsWhyAStepIsAnEvent) {
  EXPECT_THAT(
      events_of({R"({"step":1,"skipped":true})", R"({"step":2,"skipped":true,"spike":"4 nats"})",
                 R"({"step":3,"skipped":true,"non_finite":"h.0","spike":"4 nats"})",
                 R"({"step":4,"spike":"5 nats"})", R"({"step":5,"audit":"rank 1 is wrong"})",
                 R"({"log_lost":"disk full"})", R"({"rollback_to":2})"}),
      ElementsAre("1 left out: overflow under the loss scale", "2 left out: 4 nats",
                  "3 left out: h.0", "4 spike: 5 nats", "5 audit: rank 1 is wrong",
                  "5 warning: messages were lost: disk full", "2 rollback: from step 5"));
}

TEST(MetricsReader, GoesBackWithTheRun) {
  const RunRecord rolled = record_of({R"({"step":1,"loss":1})", R"({"step":2,"loss":2})",
                                      R"({"step":3,"loss":3})", R"({"rollback_to":2})"});
  EXPECT_EQ(rolled.steps, 2);
  EXPECT_EQ(rolled.find("loss")->last(), (StepSeries::Point{2, 2}));
  const RunRecord again =
      record_of({R"({"step":1,"loss":1,"lr":1})", R"({"step":2,"loss":2,"lr":2})",
                 R"({"step":3,"loss":3,"lr":3})", R"({"step":2,"loss":9})"});
  EXPECT_EQ(again.steps, 2);
  EXPECT_EQ(again.find("loss")->last(), (StepSeries::Point{2, 9}));
  EXPECT_EQ(again.find("lr")->last(), (StepSeries::Point{1, 1})) << "also where it has no value";
  EXPECT_EQ(record_of({R"({"step":2,"loss":1})", R"({"rollback_to":9})"}).steps, 2);
}

TEST(MetricsReader, CountsTheTokensOfAStepAndTheTimeOfAll) {
  const RunRecord record = record_of({R"({"step":1,"step_ms":10,"tokens_per_s":0})",
                                      R"({"step":2,"step_ms":"NaN","tokens_per_s":1})",
                                      R"({"step":3,"step_ms":20,"tokens_per_s":3180})",
                                      R"({"step":4,"step_ms":20,"tokens_per_s":100000})"});
  EXPECT_EQ(record.tokens_per_step, 64) << "3180 tokens/s for 20 ms, to the next whole number";
  EXPECT_DOUBLE_EQ(record.find("wall_s")->last().value, 0.05);
  EXPECT_EQ(record_of({R"({"step":1,"step_ms":10,"wall_s":7})"}).find("wall_s")->last().value, 7);
  EXPECT_EQ(record_of({R"({"step":1,"step_ms":1000,"tokens_per_s":1e12})"}).tokens_per_step, 0);
}

}  // namespace
}  // namespace lockstep::train
