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

}  // namespace
}  // namespace lockstep::train
