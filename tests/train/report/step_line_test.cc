#include "train/report/step_line.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/non_finite.h"

namespace lockstep::train {
namespace {

StepReport step_eleven() {
  StepReport report;
  report.step = 11;
  report.loss = 4.12344;
  report.grad_norm = 1.25;
  report.learning_rate = 3e-4;
  report.step_ms = 12.344;
  report.tokens_per_s = 180000.4;
  report.memory_bytes = 432013312;
  report.mfu = 0.31;
  return report;
}

TEST(StepLine, NanoGptsSpelling) {
  EXPECT_EQ(step_line(LogFormat::kNanoGpt, step_eleven(), {.total_steps = 100}),
            "iter 10: loss 4.1234, time 12.34ms, mfu 31.00%");
  StepReport unknown = step_eleven();
  unknown.mfu = -1;
  EXPECT_EQ(step_line(LogFormat::kNanoGpt, unknown, {}),
            "iter 10: loss 4.1234, time 12.34ms, mfu -100.00%");
}

TEST(StepLine, LlmCsSpelling) {
  EXPECT_EQ(step_line(LogFormat::kLlmC, step_eleven(),
                      {.total_steps = 100, .loss_z = 0.1, .norm_z = -2.345}),
            "step   11/100 | loss 4.123440 (+0.10z)| norm 1.2500 (-2.35z)| lr 3.00e-04 | 12.34 ms "
            "| 31.0% bf16 MFU | 180000 tok/s");
  EXPECT_TRUE(says(step_line(LogFormat::kLlmC, step_eleven(), {.loss_z = kNaN, .norm_z = kNaN}),
                   "loss 4.123440 (+nanz)| norm 1.2500 (+nanz)|"));
}

TEST(StepLine, JsonHasTheMembersOfTheMetricsFile) {
  EXPECT_EQ(
      step_line(LogFormat::kJson, step_eleven(), {}),
      "{\"step\":11,\"loss\":4.12344,\"grad_norm\":1.25,\"lr\":3e-04,\"step_ms\":12.344,"
      "\"data_wait_ms\":0,\"tokens_per_s\":180000.4,\"memory_peak_bytes\":432013312,\"mfu\":0.31}");
}

TEST(StepLine, JsonShowsCommunicationWhereThereIsAny) {
  StepReport ranks = step_eleven();
  ranks.exposed_comm_ms = 2.5;
  ranks.sent_bytes = 0;
  EXPECT_TRUE(
      says(step_line(LogFormat::kJson, ranks, {}), "\"exposed_comm_ms\":2.5,\"sent_bytes\":0,"));
  EXPECT_FALSE(says(step_line(LogFormat::kJson, ranks, {}), "rank_leaves"));
  ranks.rank_leaves = {11, 5};
  EXPECT_TRUE(says(step_line(LogFormat::kJson, ranks, {}), "\"rank_leaves\":[11,5]"));
}

TEST(StepLine, TextShowsMfuOnlyWhereThePeakIsKnown) {
  EXPECT_EQ(step_line(LogFormat::kText, step_eleven(), {.total_steps = 100, .eta = "3 s"}),
            "step  11/100 | loss 4.1234 | grad norm 1.250 | lr 3.000e-04 | 12.3 ms | 180000 tok/s "
            "| 31.0% MFU | 412.0 MiB | ETA 3 s");
  StepReport unknown = step_eleven();
  unknown.mfu = -1;
  EXPECT_EQ(step_line(LogFormat::kText, unknown, {}).find("MFU"), std::string::npos);
  EXPECT_EQ(step_line(LogFormat::kJson, unknown, {}).find("mfu"), std::string::npos);
}

TEST(StepLine, EvaluationsFollowTheFormat) {
  const EvaluationReport evaluation = {
      .step = 500, .train_loss = 2.5, .loss = 2.25, .bits_per_byte = 3.2461, .sampled = true};
  EXPECT_EQ(evaluation_line(LogFormat::kNanoGpt, evaluation),
            "step 500: train loss 2.5000, val loss 2.2500");
  EXPECT_EQ(evaluation_line(LogFormat::kLlmC, evaluation), "val loss 2.250000");
  EXPECT_EQ(evaluation_line(LogFormat::kJson, evaluation),
            "{\"step\":500,\"val_loss\":2.25,\"val_bits_per_byte\":3.2461}");
  EXPECT_EQ(evaluation_line(LogFormat::kText, evaluation),
            "step 500: held-out loss 2.2500, 3.2461 bits per byte (sampled)");
}

TEST(StepLine, EvaluationsSayOnlyWhatIsKnown) {
  const EvaluationReport classifier = {
      .step = 5, .loss = 0.25, .bits_per_byte = kNaN, .accuracy = 0.9731};
  EXPECT_EQ(evaluation_line(LogFormat::kText, classifier),
            "step 5: held-out loss 0.2500, 97.31 % correct");
  EXPECT_EQ(evaluation_line(LogFormat::kJson, classifier),
            "{\"step\":5,\"val_loss\":0.25,\"val_accuracy\":0.9731}");
}

TEST(StepLine, AWaitForDataIsShownWhereItCounts) {
  StepReport waited = step_eleven();
  waited.data_wait_ms = 0.5;
  EXPECT_EQ(measurements(waited).find("wait"), std::string::npos);
  waited.data_wait_ms = 5;
  EXPECT_TRUE(says(measurements(waited), "| data wait 5.0 ms"));
}

TEST(StepLine, AStepThatUpdatedNothingSaysSo) {
  StepReport skipped = step_eleven();
  skipped.skipped = true;
  EXPECT_TRUE(says(measurements(skipped), "| skipped"));
  EXPECT_TRUE(says(step_line(LogFormat::kJson, skipped, {}), "\"skipped\":true"));
}

TEST(LogFormat, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(parse_log_format("llmc"), LogFormat::kLlmC);
  EXPECT_EQ(parse_log_format("text"), LogFormat::kText);
  EXPECT_TRUE(says(message_of<ConfigError>([] { parse_log_format("jsn"); }),
                   "one of text, json, nanogpt, llmc. Did you mean json?"));
}

TEST(ModelFlopsUsed, IsTheShareOfThePeak) {
  EXPECT_DOUBLE_EQ(model_flops_used(1e9, 500, 1), 0.5);
  EXPECT_EQ(model_flops_used(1e9, 500, 0), -1);
}

TEST(ZScore, IsUnknownUntilTheWindowIsFull) {
  ZScore score;
  for (size_t i = 0; i + 1 < ZScore::kWindow; ++i) EXPECT_TRUE(std::isnan(score.update(1)));
  EXPECT_EQ(score.update(1), 0);
  // One value among 127 equal ones is sqrt(127) standard deviations from the mean, for any value.
  EXPECT_NEAR(score.update(7), std::sqrt(127.0), 1e-9);
}

TEST(ZScore, ForgetsWhatLeftTheWindow) {
  ZScore score;
  for (size_t i = 0; i < ZScore::kWindow; ++i) score.update(1000);
  for (size_t i = 0; i + 1 < ZScore::kWindow; ++i) score.update(3);
  EXPECT_EQ(score.update(3), 0);
}

}  // namespace
}  // namespace lockstep::train
