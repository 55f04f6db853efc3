#include "train/report/run_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/core/base/temporary_directory.h"
#include "tests/core/non_finite.h"

namespace lockstep::train {
namespace {

std::vector<MetricsRecord> steps(int64_t first, int64_t last) {
  std::vector<MetricsRecord> records;
  for (int64_t step = first; step <= last; ++step) {
    records.push_back({step, 1.0 / static_cast<double>(step), 0.1 * static_cast<double>(step), {}});
  }
  return records;
}

TEST(CompareRuns, EqualBitsAreIdentical) {
  const RunComparison result = compare_runs(steps(1, 50), steps(1, 50));
  EXPECT_TRUE(result.identical());
  EXPECT_EQ(describe(result, "a", "b"), "identical: 50 steps, bit for bit\n");
}

TEST(CompareRuns, TheLastBitOfALossCounts) {
  std::vector<MetricsRecord> b = steps(1, 50);
  b[29].loss = std::nextafter(*b[29].loss, 1);
  b[40].loss = 7;
  const RunComparison result = compare_runs(steps(1, 50), b);
  ASSERT_TRUE(result.difference);
  EXPECT_EQ(result.first_differing_step(), 30);
  EXPECT_STREQ(result.difference->quantity, "loss");
  EXPECT_EQ(describe(result, "a", "bb"),
            "first differing step: 30\n"
            "step 30: loss differs (2.1e-16 relative)\n"
            "  a   0.03333333333333333\n"
            "  bb  0.03333333333333334\n");
}

TEST(CompareRuns, GradientNormsCountAsMuchAsLosses) {
  std::vector<MetricsRecord> b = steps(1, 5);
  b[2].grad_norm = 9;
  const RunComparison result = compare_runs(steps(1, 5), b);
  ASSERT_TRUE(result.difference);
  EXPECT_EQ(result.difference->step, 3);
  EXPECT_STREQ(result.difference->quantity, "grad_norm");
}

TEST(CompareRuns, AShorterRunDiffersWhereItEnds) {
  const RunComparison result = compare_runs(steps(1, 30), steps(1, 50));
  EXPECT_FALSE(result.identical());
  EXPECT_FALSE(result.difference);
  EXPECT_EQ(result.first_differing_step(), 31);
  EXPECT_EQ(describe(result, "a", "b"),
            "first differing step: 31\n"
            "step 31: a does not have it (30 steps in a, 50 in b, 30 in both, identical)\n");
}

TEST(CompareRuns, StepsThatOnlyTheSecondLacks) {
  const RunComparison result = compare_runs(steps(1, 9), steps(4, 9));
  ASSERT_TRUE(result.missing);
  EXPECT_FALSE(result.missing->from_a);
  EXPECT_EQ(result.first_differing_step(), 1);
}

TEST(CompareRuns, StepsRunTwiceMustAgreeWithThemselves) {
  std::vector<MetricsRecord> resumed = steps(1, 20);
  for (const MetricsRecord& record : steps(15, 30)) resumed.push_back(record);
  EXPECT_TRUE(compare_runs(resumed, steps(1, 30)).identical());
  resumed[22].loss = 3;  // step 17 of the second time
  for (const bool swapped : {false, true}) {
    const RunComparison result =
        swapped ? compare_runs(steps(1, 30), resumed) : compare_runs(resumed, steps(1, 30));
    EXPECT_EQ(result.first_differing_step(), 17);
    EXPECT_TRUE(says(describe(result, "a", "b"), swapped ? "b again" : "a again"));
  }
}

TEST(CompareRuns, NaNEqualsNaNAndZeroHasASign) {
  std::vector<MetricsRecord> a = {{1, kNaN, 0.0, {}}};
  std::vector<MetricsRecord> b = {{1, -kNaN, 0.0, {}}};
  EXPECT_TRUE(compare_runs(a, b).identical());
  b[0].grad_norm = -0.0;
  EXPECT_FALSE(compare_runs(a, b).identical());
  b[0] = {1, 3.0, 0.0, {}};
  EXPECT_TRUE(says(describe(compare_runs(a, b), "a", "b"), "loss differs (not both finite)"));
}

TEST(CompareRuns, ValidationIsComparedWhereBothHaveIt) {
  const std::vector<MetricsRecord> a = {{1, 1.0, 1.0, 2.0}, {2, 1.0, 1.0, 2.5}};
  std::vector<MetricsRecord> b = {{1, 1.0, 1.0, {}}, {2, 1.0, 1.0, 2.5}};
  EXPECT_TRUE(compare_runs(a, b).identical());
  b[1].val_loss = 2.25;
  EXPECT_STREQ(compare_runs(a, b).difference->quantity, "val_loss");
}

TEST(ReadMetrics, NumbersComeBackAsTheyWereWritten) {
  const TemporaryDirectory folder;
  put_file(folder / "metrics.jsonl",
           "{\"event\":\"resumed\"}\n"
           "{\"step\":1,\"loss\":0.1,\"grad_norm\":\"NaN\",\"lr\":3e-04}\n"
           "{\"step\":2,\"loss\":\"-Infinity\",\"grad_norm\":5e-324,\"val_loss\":2}\n"
           "{\"step\":3,\"lo");  // interrupted while writing
  const std::vector<MetricsRecord> records = read_metrics(folder.path());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].loss, 0.1);
  EXPECT_TRUE(std::isnan(*records[0].grad_norm));
  EXPECT_FALSE(records[0].val_loss);
  EXPECT_EQ(records[1].loss, -kInfinity);
  EXPECT_EQ(records[1].grad_norm, 5e-324);
  EXPECT_EQ(records[1].val_loss, 2);
  EXPECT_EQ(read_metrics(folder / "metrics.jsonl").size(), 2U);
}

TEST(ReadMetrics, FilesThatAreNoMetricsAreNamed) {
  const TemporaryDirectory folder;
  const auto message = [&] { return message_of<DataError>([&] { read_metrics(folder.path()); }); };
  EXPECT_TRUE(says(message(), "metrics.jsonl: No such file"));
  put_file(folder / "metrics.jsonl", "");
  EXPECT_TRUE(says(message(), "holds no step"));
  put_file(folder / "metrics.jsonl", "{\"step\":1}\nnonsense\n");
  EXPECT_TRUE(says(message(), "metrics.jsonl:2: expected a JSON object"));
  put_file(folder / "metrics.jsonl", "{\"step\":1}\n{\"rollback_to\":0.5}\n");
  EXPECT_TRUE(says(message(), "metrics.jsonl:2: rollback_to: expected the step"));
  put_file(folder / "metrics.jsonl", "{\"step\":1}\n" + std::string(1'000'000, '[') + "\n");
  EXPECT_TRUE(says(message(), "metrics.jsonl:2: [json] nested deeper than 64"));
}

}  // namespace
}  // namespace lockstep::train
