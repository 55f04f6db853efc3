#include "train/page/curves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "train/page/html.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;

RunRecord run_with(const std::string& name, const std::string& member,
                   const std::vector<StepSeries::Point>& points) {
  RunRecord run;
  run.name = name;
  StepSeries& series = run.series.try_emplace(member).first->second;
  for (const StepSeries::Point& each : points) series.add(each.step, each.value);
  return run;
}

nlohmann::json curves_of(const std::vector<RunRecord>& runs) {
  return nlohmann::json::parse(curves_json(runs));
}

TEST(ValueText, GroupsThousandsAndShowsFiveDigitsBelow) {
  const ChartKind plain{"", "", Scale::kPlain, {}}, timed{"", "ms", Scale::kPlain, {}};
  EXPECT_EQ(value_text(plain, 999.994), "999.99");
  EXPECT_EQ(value_text(plain, 1000), "1,000");
  EXPECT_EQ(value_text(plain, -1000), "-1,000");
  EXPECT_EQ(value_text(plain, -999.5), "-999.5");
  EXPECT_EQ(value_text(plain, 1234567.6), "1,234,568");
  EXPECT_EQ(value_text(plain, 999999999999999), "999,999,999,999,999");
  EXPECT_EQ(value_text(plain, 1e15), "1e+15");
  EXPECT_EQ(value_text(timed, 2.5), "2.5 ms");
}

TEST(ValueText, OfSharesIsInPercentAndOfBytesInBinaryUnits) {
  const ChartKind share{"", "nats", Scale::kPercent, {}}, bytes{"", "", Scale::kBytes, {}};
  EXPECT_EQ(value_text(share, 0.3125), "31.2 %");
  EXPECT_EQ(value_text(bytes, 1536), "1.5 KiB");
  EXPECT_EQ(value_text(bytes, -1), "0 B");
  EXPECT_EQ(value_text(bytes, 1e30), value_text(bytes, 1e18));
}

TEST(Curves, StepsAreDifferencesInLeb128AndValuesLittleEndianSingles) {
  const nlohmann::json json =
      curves_of({run_with("a", "loss", {{1, 1.0}, {129, 2.0}, {256, -0.5}, {20000, 1e300}})});
  const nlohmann::json& series = json["runs"][0]["series"]["loss"];
  EXPECT_EQ(series["count"], 4);
  EXPECT_EQ(series["steps"], html::base64({"\x01\x80\x01\x7f\xa0\x9a\x01", 7}));
  EXPECT_EQ(series["values"],
            html::base64({"\0\0\x80\x3f\0\0\0\x40\0\0\0\xbf\xff\xff\x7f\x7f", 16}));
}

TEST(Curves, AChartHasTheLinesOfWhichARunHasValues) {
  const nlohmann::json json =
      curves_of({run_with("a", "val_loss", {{1, 1}}), run_with("b", "mfu", {{1, 0.5}, {2, 0.25}})});
  ASSERT_EQ(json["charts"].size(), 2u);
  EXPECT_EQ(json["charts"][0].dump(),
            R"({"lines":[{"label":"held out","member":"val_loss","sparse":true}],)"
            R"("scale":"plain","title":"Loss","unit":"nats"})");
  EXPECT_EQ(json["charts"][1].dump(),
            R"({"lines":[{"label":"MFU","member":"mfu","sparse":false}],)"
            R"("scale":"percent","title":"Model FLOP utilisation","unit":""})");
  EXPECT_FALSE(json["runs"][0]["series"].contains("mfu"));
  EXPECT_TRUE(json["runs"][1]["series"].contains("mfu"));
}

TEST(Curves, RunsHaveTheirNamesColoursEventsAndTimes) {
  std::vector<RunRecord> runs(8, run_with("a", "wall_s", {{1, 2}}));
  runs[1].name = "b\xff";
  runs[1].tokens_per_step = 64;
  runs[1].events = {{3, "restart", "start 2"}};
  const nlohmann::json json = curves_of(runs);
  EXPECT_EQ(json["colours"].size(), 7u);
  EXPECT_TRUE(json["charts"].empty()) << "the time alone is no chart";
  const nlohmann::json& second = json["runs"][1];
  EXPECT_EQ(second["name"], "b\xef\xbf\xbd");
  EXPECT_EQ(second["tokens_per_step"], 64);
  EXPECT_EQ(second["events"].dump(), R"([{"kind":"restart","step":3,"text":"start 2"}])");
  EXPECT_EQ(second["series"]["wall_s"]["count"], 1);
  EXPECT_EQ(second["colour"], json["colours"][1]);
  EXPECT_EQ(json["runs"][6]["colour"], json["colours"][6]);
  EXPECT_EQ(json["runs"][7]["colour"], json["colours"][0]);
}

TEST(Curves, ThereIsOneForEachQuantityWithItsUnit) {
  std::vector<std::string> members;
  for (const ChartKind& kind : chart_kinds()) {
    for (const ChartLine& line : kind.lines) {
      members.push_back(
          fmt::format("{} {}{}", line.member, value_text(kind, 0.5), line.sparse ? " sparse" : ""));
    }
  }
  EXPECT_THAT(
      members,
      ElementsAre("loss 0.5 nats", "val_loss 0.5 nats sparse", "val_bits_per_byte 0.5 sparse",
                  "val_accuracy 50.0 % sparse", "grad_norm 0.5", "lr 0.5", "tokens_per_s 0.5",
                  "mfu 50.0 %", "step_ms 0.5 ms", "exposed_comm_ms 0.5 ms", "data_wait_ms 0.5 ms",
                  "memory_peak_bytes 0 B", "sent_bytes 0 B", "loss_scale 0.5", "goodput 50.0 %"));
}

TEST(Curves, ALegendNamesEachLineOfAChart) {
  std::vector<std::string> names;
  for (const ChartKind& kind : chart_kinds()) {
    for (const ChartLine& line : kind.lines) {
      names.push_back(fmt::format("{}: {}", kind.title, line.label));
    }
  }
  EXPECT_THAT(names,
              ElementsAre("Loss: training", "Loss: held out", "Bits per byte, held out: held out",
                          "Accuracy, held out: held out", "Gradient norm: gradient norm",
                          "Learning rate: learning rate", "Tokens per second: tokens/s",
                          "Model FLOP utilisation: MFU", "Step time: step",
                          "Waiting: exposed communication", "Waiting: data", "Peak memory: memory",
                          "Sent per step: sent", "Loss scale: loss scale", "Goodput: goodput"));
}

TEST(ExtremesTable, OfOneRunHasARowForEachLine) {
  const std::vector<RunRecord> runs = {run_with("a", "lr", {{1, 3}, {2, 1}, {3, 5}, {1000, 4}})};
  EXPECT_EQ(extremes_table(runs),
            html::table(
                {"First, smallest, largest and last value of each curve",
                 {"Curve", "First", "Smallest", "Largest", "Last"},
                 {{"Learning rate", "3 (step 1)", "1 (step 2)", "5 (step 3)", "4 (step 1,000)"}}}));
}

TEST(ExtremesTable, OfSeveralRunsNamesTheRunBehindTheCurve) {
  const std::vector<RunRecord> runs = {run_with("a", "data_wait_ms", {{1, 3}}),
                                       run_with("b", "data_wait_ms", {{2, 4}})};
  EXPECT_EQ(extremes_table(runs),
            html::table({"First, smallest, largest and last value of each curve",
                         {"Curve", "Run", "First", "Smallest", "Largest", "Last"},
                         {{"Waiting, data", "a", "3 ms (step 1)", "3 ms (step 1)", "3 ms (step 1)",
                           "3 ms (step 1)"},
                          {"Waiting, data", "b", "4 ms (step 2)", "4 ms (step 2)", "4 ms (step 2)",
                           "4 ms (step 2)"}}}));
}

}  // namespace
}  // namespace lockstep::train
