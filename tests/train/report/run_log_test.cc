#include "train/report/run_log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/core/base/temporary_directory.h"
#include "train/report/metrics_history.h"

namespace lockstep::train {
namespace {

StepReport logged_step(int64_t step) {
  StepReport report;
  report.step = step;
  report.loss = 2.5;
  report.grad_norm = 0.75;
  report.learning_rate = 0.5;
  report.step_ms = 12;
  report.tokens_per_s = 1000;
  report.memory_bytes = 4096;
  return report;
}

std::string event_bytes(const std::filesystem::path& folder) {
  std::string bytes;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const bool is_events = file.path().filename().string().starts_with("events.out.tfevents.");
    if (is_events) bytes += file_content(file.path());
  }
  return bytes;
}

class RunLogTest : public testing::Test {
 protected:
  RunLogTest() : terminal_(std::fopen((folder_ / "terminal").c_str(), "w")) {}
  ~RunLogTest() override { std::fclose(terminal_); }
  TemporaryDirectory folder_;
  RunDirectory directory_ =
      RunDirectory::create_at(folder_ / "run", RunDirectory::Existing::kRefuse);
  std::FILE* terminal_;
};

TEST_F(RunLogTest, EventsHaveWhatWasMeasuredAlsoWhereItIsZero) {
  const char* const tags[] = {"perf/exposed_comm_ms", "perf/sent_bytes", "perf/mfu"};
  {
    RunLog log(directory_, terminal_, {.total_steps = 2});
    log.record(logged_step(1), std::nullopt);
  }
  for (const char* tag : tags)
    EXPECT_EQ(event_bytes(directory_.path()).find(tag), std::string::npos);
  {
    RunLog log(directory_, terminal_, {.total_steps = 2});
    StepReport report = logged_step(2);
    report.exposed_comm_ms = 0;
    report.sent_bytes = 0;
    report.mfu = 0;
    log.record(report, std::nullopt);
  }
  for (const char* tag : tags)
    EXPECT_NE(event_bytes(directory_.path()).find(tag), std::string::npos);
}

TEST_F(RunLogTest, TellsTheTerminalAndBothFiles) {
  RunLog log(directory_, terminal_, {.total_steps = 2});
  for (const int64_t step : {1, 2}) {
    log.show(logged_step(step));
    std::optional<EvaluationReport> evaluation;
    if (step == 2) evaluation = {.step = 2, .train_loss = 2.5, .loss = 2.25, .bits_per_byte = 3};
    log.record(logged_step(step), evaluation);
  }
  log.close();
  EXPECT_EQ(file_content(directory_.metrics()),
            "{\"step\":1,\"loss\":2.5,\"grad_norm\":0.75,\"lr\":0.5,\"step_ms\":12,"
            "\"data_wait_ms\":0,\"tokens_per_s\":1000,\"memory_peak_bytes\":4096}\n"
            "{\"step\":2,\"loss\":2.5,\"grad_norm\":0.75,\"lr\":0.5,\"step_ms\":12,"
            "\"data_wait_ms\":0,\"tokens_per_s\":1000,\"memory_peak_bytes\":4096,"
            "\"val_loss\":2.25,\"val_bits_per_byte\":3}\n");
  EXPECT_TRUE(says(file_content(folder_ / "terminal"), "step 1/2 | loss 2.5000"));
  EXPECT_TRUE(says(file_content(folder_ / "terminal"), "step 2: held-out loss 2.2500"));
  const std::string events = event_bytes(directory_.path());
  for (const char* tag :
       {"train/loss", "train/grad_norm", "train/lr", "val/loss", "val/bits_per_byte",
        "perf/step_ms", "perf/tokens_per_s", "perf/data_wait_ms", "perf/memory_peak_bytes"}) {
    EXPECT_TRUE(says(events, tag)) << tag;
  }
  for (const char* tag : {"perf/mfu", "perf/exposed_comm_ms", "perf/sent_bytes", "val/accuracy"}) {
    EXPECT_EQ(events.find(tag), events.npos) << tag;
  }
}

TEST_F(RunLogTest, WhatOnlySomeRunsKnowIsRecordedThere) {
  RunLog log(directory_, terminal_, {.total_steps = 1});
  StepReport report = logged_step(1);
  report.exposed_comm_ms = 1.5;
  report.sent_bytes = 100;
  log.record(report, EvaluationReport{.step = 1, .loss = 2, .accuracy = 0.5});
  const std::string events = event_bytes(directory_.path());
  for (const char* tag : {"perf/exposed_comm_ms", "perf/sent_bytes", "val/accuracy"}) {
    EXPECT_TRUE(says(events, tag)) << tag;
  }
}

TEST_F(RunLogTest, AKnownPeakIsRecordedAsMfu) {
  RunLog log(directory_, terminal_, {.total_steps = 1});
  StepReport known = logged_step(1);
  known.mfu = 0.25;
  log.record(known, std::nullopt);
  EXPECT_TRUE(says(file_content(directory_.metrics()), "\"mfu\":0.25"));
  EXPECT_TRUE(says(event_bytes(directory_.path()), "perf/mfu"));
}

TEST_F(RunLogTest, GoingBackTakesTheLaterStepsBack) {
  RunLog log(directory_, terminal_, {.total_steps = 3});
  for (const int64_t step : {1, 2, 3}) log.record(logged_step(step), std::nullopt);
  log.go_back(1);
  StepReport other = logged_step(2);
  other.loss = 9;
  log.record(other, std::nullopt);
  log.close();
  const std::vector<MetricsRecord> records = read_metrics(directory_.path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].loss, 9);
}

TEST_F(RunLogTest, GoingOnAppendsToTheMetrics) {
  for (const int64_t step : {1, 2}) {
    RunLog log(directory_, terminal_, {.total_steps = 2, .first_step = step});
    log.record(logged_step(step), std::nullopt);
    log.close();
  }
  const std::vector<MetricsRecord> records = read_metrics(directory_.path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].step, 2);
}

}  // namespace
}  // namespace lockstep::train
