#include "profile/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "profile/collective_labels.h"
#include "tests/core/expect_error.h"
#include "tests/profile/made_up_profile.h"

namespace lockstep::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 72 bytes take 0.9 us, 6 operations 6 ns.
constexpr MachinePeaks kPeaks{.f32_flops = 1e9, .bf16_flops = 2e9, .bytes_per_second = 80e6};

std::vector<std::string> names(const std::vector<TableRow>& rows) {
  std::vector<std::string> all;
  for (const TableRow& row : rows) all.push_back(row.name);
  return all;
}

TEST(Table, AddsCallsOfOneNameAndTellsSelfFromTotal) {
  Profile profile = made_up_profile();
  profile.spans.push_back(profile.spans[1]);
  const std::vector<TableRow> rows = rows_of(profile, kPeaks, {});
  EXPECT_THAT(names(rows), ElementsAre("step", "add.Tensor", "augment", "AddBackward0"));
  EXPECT_EQ(rows[0].self_ns, 6'750);
  EXPECT_EQ(rows[0].total_ns, 10'000);
  EXPECT_EQ(rows[1].calls, 2);
  EXPECT_EQ(rows[1].total_ns, 4'500);
  EXPECT_EQ(rows[1].flops, 12);
}

TEST(Table, ShareOfPeakIsTheLongerOfArithmeticAndMemory) {
  const std::vector<TableRow> rows = rows_of(made_up_profile(), kPeaks, {});
  EXPECT_NEAR(rows[1].share_of_peak(), 0.9 / 2.25, 1e-9);
  EXPECT_EQ(rows[2].share_of_peak(), 0);
}

TEST(Table, TimeInsideACallOfTheSameNameCountsOnceInTotal) {
  Profile profile = made_up_profile();
  profile.spans[2].name = "add.Tensor";
  profile.spans[2].kind = SpanKind::kOperator;
  profile.spans[2].parent = 1;
  const std::vector<TableRow> rows = rows_of(profile, kPeaks, {});
  EXPECT_EQ(rows[1].calls, 2);
  EXPECT_EQ(rows[1].total_ns, 2'250);
}

TEST(Table, GroupsByShapesAndModules) {
  EXPECT_EQ(rows_of(made_up_profile(), kPeaks, {.group = GroupBy::kShapes})[1].group,
            "[2,3] (0 tensors)");
  EXPECT_EQ(rows_of(made_up_profile(), kPeaks, {.group = GroupBy::kModule})[1].group, "h.0");
}

TEST(Table, SortsByAnyColumn) {
  const Profile profile = made_up_profile();
  EXPECT_THAT(names(rows_of(profile, kPeaks, {.sort = SortBy::kName})),
              ElementsAre("AddBackward0", "add.Tensor", "augment", "step"));
  EXPECT_THAT(names(rows_of(profile, kPeaks, {.sort = SortBy::kBytes})),
              ElementsAre("add.Tensor", "AddBackward0", "augment", "step"));
  EXPECT_EQ(parse_sort("total"), SortBy::kTotal);
  expect_error<ConfigError>([] { (void)parse_sort("colour"); }, "expected one of self, total");
}

TEST(Table, ShowsTheTopAndAddsUpTheRest) {
  const std::string text = table_text(made_up_profile(), kPeaks, {.top = 2});
  EXPECT_THAT(text, HasSubstr("1 steps of 0.01 ms, rank 1"));
  EXPECT_THAT(text, HasSubstr("add.Tensor"));
  EXPECT_THAT(text, Not(HasSubstr("augment")));
  EXPECT_THAT(text, HasSubstr("(2 more)"));
  EXPECT_THAT(text, HasSubstr("3 spans did not fit"));
}

/// Two steps of 10 ms with two products of 2 ms, one inside a call of 3 ms, and a sum of 1 ms.
Profile profile_of_milliseconds() {
  Profile profile;
  profile.threads = {{100, "main", 0}};
  profile.steps = {0, 1};
  const auto add = [&](SpanKind kind, const char* name, int64_t parent, int64_t ms,
                       int64_t self_ms) {
    ProfileSpan span;
    span.kind = kind;
    span.name = name;
    span.parent = parent;
    span.duration_ns = ms * 1'000'000;
    span.self_ns = self_ms * 1'000'000;
    profile.spans.push_back(span);
  };
  add(SpanKind::kStep, "step", ProfileSpan::kNone, 10, 5);
  add(SpanKind::kOperator, "linear", 0, 3, 1);
  add(SpanKind::kOperator, "mm", 1, 2, 2);
  add(SpanKind::kStep, "step", ProfileSpan::kNone, 10, 7);
  add(SpanKind::kOperator, "mm", 3, 2, 2);
  add(SpanKind::kOperator, "sum", 3, 1, 1);
  for (const size_t product : {2, 4}) {
    profile.spans[product].flops = 8'000'000;
    profile.spans[product].bytes = 3'000'000;
  }
  profile.spans[5].flops = 1'000'000;
  add(SpanKind::kMemory, "allocate", 2, 0, 0);
  profile.spans.back().bytes = 3 << 20;
  return profile;
}

TEST(Table, FiguresHaveTheUnitsOfTheirTitles) {
  const MachinePeaks peaks{.f32_flops = 8e9, .bf16_flops = 16e9, .bytes_per_second = 12e9};
  const std::string head =
      R"(2 steps of 10.00 ms; peak 8 GFLOP/s in f32, 16 in bf16, 12.0 GB/s
name                     in          calls    self ms    self   total ms   each us  GFLOP/s    GB/s of peak      MiB
step                     step            2     12.000   60.0%     20.000    6000.0
)";
  EXPECT_EQ(
      table_text(profile_of_milliseconds(), peaks, {}),
      head +
          R"(mm                       forward         2      4.000   20.0%      4.000    2000.0      4.0     1.5     50%      3.0
linear                   forward         1      1.000    5.0%      3.000    1000.0
sum                      forward         1      1.000    5.0%      1.000    1000.0      1.0             12%
)");
  // The rest is the sum of the other rows, without a total.
  EXPECT_EQ(
      table_text(profile_of_milliseconds(), peaks, {.top = 1}),
      head +
          R"((3 more)                 range           4      6.000   30.0%               1500.0      2.8     1.0     35%      3.0
)");
}

TEST(Table, TellsProgramsAllRows) {
  std::istringstream lines(table_json(made_up_profile(), kPeaks, {.top = 1}));
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1]["name"], "add.Tensor");
  EXPECT_EQ(rows[1]["phase"], "forward");
  EXPECT_EQ(rows[1]["self_ms"], 0.00225);
}

/// A profile with two sums of bucket 1, one of bucket 2 and one without a label.
Profile with_collectives() {
  Profile profile = made_up_profile();
  profile.threads.push_back({102, "collectives 1"});
  int64_t begin = 1'000;
  const auto add = [&](const char* label, int64_t ns) {
    ProfileSpan span;
    span.kind = SpanKind::kCollective;
    span.name = "all_reduce";
    span.note = "world";
    span.label = label;
    span.thread = 2;
    span.begin_ns = begin += 500;
    span.duration_ns = span.self_ns = ns;
    span.bytes = 1 << 20;
    profile.spans.push_back(span);
  };
  add("bucket 1", 300);
  add("bucket 2", 450);
  add("", 1);
  add("bucket 1", 100);
  return profile;
}

TEST(Table, CollectivesAreListedByTheirLabels) {
  const Profile profile = with_collectives();
  const std::vector<LabelRow> rows = label_rows(profile);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].label, "bucket 2");
  EXPECT_EQ(rows[1].label, "bucket 1");
  EXPECT_EQ(rows[1].calls, 2);
  EXPECT_EQ(rows[1].total_ns, 400);
  EXPECT_EQ(rows[1].longest_ns, 300);
  EXPECT_EQ(rows[1].bytes, 2 << 20);
  EXPECT_THAT(table_text(profile, kPeaks, {}), HasSubstr("bucket 2         all_reduce"));
  EXPECT_EQ(
      labels_text(profile, 1),
      R"(collectives of                      calls   total ms   each us longest us      MiB    GB/s  group
bucket 2         all_reduce             1      0.000       0.5        0.5     1.00 2330.17  world
(1 more)                                2      0.000       0.2        0.3     2.00 5242.88
)");
  EXPECT_THAT(table_text(made_up_profile(), kPeaks, {}), Not(HasSubstr("collectives of")));
}

TEST(Table, ByModuleCollectivesAreGroupedByTheirLabels) {
  std::vector<std::string> labels;
  for (const TableRow& row : rows_of(with_collectives(), kPeaks, {.group = GroupBy::kModule})) {
    if (row.kind == SpanKind::kCollective) labels.push_back(row.group);
  }
  EXPECT_THAT(labels, ElementsAre("bucket 2", "bucket 1", ""));
  EXPECT_THAT(names(rows_of(with_collectives(), kPeaks, {})),
              ElementsAre("step", "add.Tensor", "augment", "all_reduce", "AddBackward0"));
}

}  // namespace
}  // namespace lockstep::profile
