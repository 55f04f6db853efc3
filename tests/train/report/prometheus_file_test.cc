#include "train/report/prometheus_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

StepReport report_of(int64_t step) {
  StepReport report;
  report.step = step;
  report.loss = 2.5;
  report.tokens_per_s = 1000;
  report.step_ms = 12;
  return report;
}

class PrometheusFileTest : public testing::Test {
 protected:
  std::string text() const { return file_content(directory_.prometheus()); }

  TemporaryDirectory folder_;
  RunDirectory directory_ =
      RunDirectory::create_at(folder_ / "my run", RunDirectory::Existing::kRefuse);
};

TEST_F(PrometheusFileTest, HasTheFirstStepAtOnceAndTheLastAtTheEnd) {
  PrometheusFile file(directory_, 10);
  EXPECT_FALSE(std::filesystem::exists(directory_.prometheus()));
  file.update(report_of(1), std::nullopt, nullptr);
  EXPECT_THAT(text(), HasSubstr("lockstep_steps_done{run=\"my run\"} 1\n"));
  file.update(report_of(2), EvaluationReport{.step = 2, .loss = 3}, nullptr);
  file.update(report_of(3), std::nullopt, nullptr);
  file.finish();
  EXPECT_THAT(text(), HasSubstr("lockstep_steps_done{run=\"my run\"} 3\n"));
  EXPECT_THAT(text(), HasSubstr("lockstep_steps_wanted{run=\"my run\"} 10\n"));
  // The newest evaluation stays.
  EXPECT_THAT(text(), HasSubstr("lockstep_held_out_loss{run=\"my run\"} 3\n"));
  EXPECT_THAT(text(), HasSubstr("lockstep_held_out_step{run=\"my run\"} 2\n"));
}

TEST_F(PrometheusFileTest, EveryLineIsASampleOrItsDescription) {
  const std::string text =
      prometheus_text("a\"b\\c\nd", 3, report_of(1), std::nullopt, RunTimes{}, 5);
  EXPECT_THAT(text, HasSubstr("{run=\"a\\\"b\\\\c\\nd\"}"));
  std::istringstream lines(text);
  int samples = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP lockstep_") || line.starts_with("# TYPE lockstep_")) continue;
    EXPECT_TRUE(line.starts_with("lockstep_")) << line;
    EXPECT_EQ(line.find('\r'), line.npos);
    ++samples;
  }
  EXPECT_GE(samples, 12);
}

TEST_F(PrometheusFileTest, NumbersThatAreNotFiniteAreWrittenAsPrometheusReadsThem) {
  StepReport report = report_of(1);
  report.loss = std::numeric_limits<double>::quiet_NaN();
  report.grad_norm = std::numeric_limits<double>::infinity();
  const std::string text = prometheus_text("a", 3, report, std::nullopt, std::nullopt, 5);
  EXPECT_THAT(text, HasSubstr("lockstep_loss{run=\"a\"} NaN\n"));
  EXPECT_THAT(text, HasSubstr("lockstep_gradient_norm{run=\"a\"} +Inf\n"));
  EXPECT_THAT(text, Not(HasSubstr("goodput")));
}

TEST_F(PrometheusFileTest, ThatItCannotBeWrittenDisturbsNothing) {
  std::filesystem::create_directories(directory_.prometheus() / "x");
  PrometheusFile file(directory_, 10);
  file.update(report_of(1), std::nullopt, nullptr);
  file.finish();
  EXPECT_TRUE(std::filesystem::is_directory(directory_.prometheus()));
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "metrics.prom.partial"));
}

TEST_F(PrometheusFileTest, HasEveryNumberOfAStepUnderItsName) {
  StepReport report = report_of(4);
  report.grad_norm = 0.75;
  report.learning_rate = 0.5;
  report.step_ms = 250;
  report.data_wait_ms = 125;
  report.exposed_comm_ms = 0;
  report.memory_bytes = 4096;
  report.mfu = 0;
  EvaluationReport evaluation{.step = 3, .loss = 1.5};
  evaluation.bits_per_byte = 2.25;
  RunTimes times;
  times.wall = 100;
  times.used[0] = 25;
  times.starts = 3;
  times.restarts = 2;
  std::string samples;
  std::istringstream lines(prometheus_text("a", 8, report, evaluation, times, 1.5));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) samples += line + "\n";
  }
  EXPECT_EQ(samples,
            "lockstep_updated_timestamp_seconds{run=\"a\"} 1.5\n"
            "lockstep_steps_done{run=\"a\"} 4\n"
            "lockstep_steps_wanted{run=\"a\"} 8\n"
            "lockstep_loss{run=\"a\"} 2.5\n"
            "lockstep_gradient_norm{run=\"a\"} 0.75\n"
            "lockstep_learning_rate{run=\"a\"} 0.5\n"
            "lockstep_step_seconds{run=\"a\"} 0.25\n"
            "lockstep_data_wait_seconds{run=\"a\"} 0.125\n"
            "lockstep_exposed_communication_seconds{run=\"a\"} 0\n"
            "lockstep_tokens_per_second{run=\"a\"} 1000\n"
            "lockstep_memory_peak_bytes{run=\"a\"} 4096\n"
            "lockstep_model_flops_utilisation_ratio{run=\"a\"} 0\n"
            "lockstep_held_out_step{run=\"a\"} 3\n"
            "lockstep_held_out_loss{run=\"a\"} 1.5\n"
            "lockstep_held_out_bits_per_byte{run=\"a\"} 2.25\n"
            "lockstep_goodput_ratio{run=\"a\"} 0.25\n"
            "lockstep_starts{run=\"a\"} 3\n"
            "lockstep_restarts{run=\"a\"} 2\n");
  report.exposed_comm_ms = -1;
  report.mfu = -1;
  evaluation.bits_per_byte = std::numeric_limits<double>::quiet_NaN();
  report.loss = -std::numeric_limits<double>::infinity();
  const std::string less = prometheus_text("a", 8, report, evaluation, times, 1.5);
  EXPECT_THAT(less, HasSubstr("lockstep_loss{run=\"a\"} -Inf\n"));
  for (const char* name : {"exposed_communication", "utilisation", "bits_per_byte"}) {
    EXPECT_THAT(less, Not(HasSubstr(name)));
  }
}

}  // namespace
}  // namespace lockstep::train
