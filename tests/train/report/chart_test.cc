// Axes, curves, and the two renderers: braille and SVG.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/train/report/well_formed_xml.h"
#include "train/report/braille_chart.h"
#include "train/report/svg_chart.h"

namespace lockstep::train {
namespace {

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks) result.push_back(tick.label);
  return result;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

size_t width(const std::string& line) {
  return static_cast<size_t>(
      std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++found;
  return found;
}

/// A falling loss with an evaluation every tenth step.
std::vector<MetricsRecord> falling(int64_t steps) {
  std::vector<MetricsRecord> records;
  for (int64_t step = 1; step <= steps; ++step) {
    const double loss = 1 + 4 / static_cast<double>(step);
    records.push_back({step, loss, {}, step % 10 == 0 ? std::optional(loss + 0.1) : std::nullopt});
  }
  return records;
}

TEST(Axis, MarksAreRoundAndHaveTheSameDecimals) {
  using testing::ElementsAre;
  EXPECT_THAT(labels(linear_axis(0, 3000, 6)),
              ElementsAre("0", "500", "1,000", "1,500", "2,000", "2,500", "3,000"));
  EXPECT_THAT(labels(linear_axis(1.32, 1.5, 4)), ElementsAre("1.35", "1.40", "1.45", "1.50"));
  EXPECT_THAT(labels(linear_axis(-0.2, 0.2, 2)), ElementsAre("−0.2", "0.0", "0.2"));
  EXPECT_THAT(labels(linear_axis(0, 3, 8, 1)), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(labels(logarithmic_axis(1, 30000)), ElementsAre("1", "10", "100", "1,000", "10,000"));
  EXPECT_THAT(labels(logarithmic_axis(3, 60)), ElementsAre("5", "10", "20", "50"));
}

TEST(Axis, PositionsRunFromZeroToOne) {
  const Axis linear = linear_axis(2, 6, 4);
  EXPECT_EQ(linear.position(2), 0);
  EXPECT_EQ(linear.position(3), 0.25);
  EXPECT_DOUBLE_EQ(logarithmic_axis(1, 10000).position(100), 0.5);
  const Axis point = linear_axis(5, 5, 4);
  EXPECT_DOUBLE_EQ(point.position(5), 0.5);
}

TEST(Axes, CoverAllCurves) {
  const std::vector<Curve> curves = {{.name = "a", .points = {{4, 2}, {400, 1}}},
                                     {.name = "b", .points = {{2, 3}, {90, 2.5}}}};
  const Axes linear = axes_of(curves, false, 5, 5);
  EXPECT_EQ(linear.x.min, 0) << "steps count from the beginning";
  EXPECT_EQ(linear.x.max, 400);
  EXPECT_LT(linear.y.min, 1);
  EXPECT_GT(linear.y.min, 0.5);
  EXPECT_GT(linear.y.max, 3);
  EXPECT_LT(linear.y.max, 3.5);
  const Axes logarithmic = axes_of(curves, true, 5, 5);
  EXPECT_TRUE(logarithmic.x.logarithmic);
  EXPECT_EQ(logarithmic.x.min, 2) << "the first step that a curve has";
  EXPECT_EQ(logarithmic.x.max, 400);
}

TEST(LossCurves, TheLaterOfRepeatedStepsCountsAndGapsAreLeftOut) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<MetricsRecord> records = {
      {1, 5.0, {}, {}}, {2, 4.0, {}, 4.5}, {3, nan, {}, {}}, {2, 3.0, {}, {}}};
  const std::vector<Curve> curves = loss_curves("run", 3, records);
  ASSERT_EQ(curves.size(), 2U);
  ASSERT_EQ(curves[0].points.size(), 2U);
  EXPECT_EQ(curves[0].points[1].y, 3.0);
  EXPECT_EQ(curves[0].label(), "run train");
  EXPECT_EQ(curves[1].label(), "run eval");
  EXPECT_TRUE(curves[1].sparse);
  EXPECT_EQ(curves[1].group, 3);
}

TEST(Buckets, KeepMeanAndSpread) {
  Curve curve;
  for (int i = 0; i <= 100; ++i) curve.points.push_back({double(i), i % 2 == 0 ? 1.0 : 3.0});
  const std::vector<Bucket> result = buckets(curve, linear_axis(0, 100, 5), 10);
  ASSERT_EQ(result.size(), 10U);
  for (const Bucket& bucket : result) {
    EXPECT_NEAR(bucket.mean, 2, 0.1);
    EXPECT_EQ(bucket.min, 1);
    EXPECT_EQ(bucket.max, 3);
  }
  EXPECT_DOUBLE_EQ(result[0].x, 4.5);
}

TEST(BrailleChart, NoLineIsWiderThanTheTerminal) {
  std::vector<Curve> curves = loss_curves("a run with a rather long name for it", 0, falling(200));
  for (int columns = 30; columns < 140; columns += 7) {
    for (const bool log_x : {false, true}) {
      for (const std::string& line :
           lines(braille_chart(curves, {.columns = columns, .log_x = log_x}))) {
        EXPECT_LE(width(line), static_cast<size_t>(columns)) << line;
      }
    }
  }
}

TEST(BrailleChart, ALineFromCornerToCorner) {
  Curve curve{"down", 0, false, {}};
  for (int i = 0; i <= 40; ++i) curve.points.push_back({double(i), 40.0 - i});
  const std::vector<std::string> drawn =
      lines(braille_chart(std::vector{curve}, {.columns = 30, .rows = 4}));
  ASSERT_EQ(drawn.size(), 4U + 2U + 1U);
  // The first and the last cell of the plot contain dots; no dot is above the line.
  EXPECT_TRUE(says(drawn[0], "⠤⢄"));
  EXPECT_TRUE(drawn[3].ends_with(" 1"));
  EXPECT_TRUE(says(drawn[6], "1 ⠤⠤⠤ down  0.0000"));
}

TEST(BrailleChart, HasAtLeastFourRows) {
  const Curve curve{"down", 0, false, {{0, 1}, {1, 0}}};
  for (const int rows : {0, 1, 3}) {
    EXPECT_EQ(lines(braille_chart(std::vector{curve}, {.columns = 30, .rows = rows})).size(), 7U);
  }
}

TEST(BrailleChart, TheLastMarkOfTheStepsIsUnderTheLastStep) {
  Curve curve{"flat", 0, false, {}};
  for (int i = 0; i <= 40; ++i) curve.points.push_back({double(i), 1.0});
  const std::vector<std::string> drawn =
      lines(braille_chart(std::vector{curve}, {.columns = 30, .rows = 4}));
  const auto columns = std::ranges::count_if(
      drawn[4], [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
  ASSERT_TRUE(drawn[5].ends_with("40")) << drawn[5];
  EXPECT_GE(std::ssize(drawn[5]), columns - 1) << drawn[5];
  EXPECT_LE(std::ssize(drawn[5]), columns + 2) << drawn[5];
}

TEST(BrailleChart, TheLinesOfOneRunDifferInNameAndStyle) {
  const std::string chart =
      braille_chart(loss_curves(std::string(100, 'n'), 0, falling(30)), {.columns = 40});
  EXPECT_TRUE(says(chart, "1 ⠤⠤⠤ nn"));
  EXPECT_TRUE(says(chart, "... train  "));
  EXPECT_TRUE(says(chart, "2 ⠤ ⠤ nn"));
  EXPECT_TRUE(says(chart, "... eval  "));
}

TEST(BrailleChart, ASparseCurveIsABrokenLine) {
  const auto row_of = [](bool sparse) {
    const Curve level{"level", 0, sparse, {{0, 1}, {40, 1}}};
    std::string row;
    for (const std::string& line :
         lines(braille_chart(std::vector{level}, {.columns = 40, .rows = 4}))) {
      if (line.ends_with(" 1")) row = line;
    }
    return row;
  };
  EXPECT_GT(count(row_of(true), " "), count(row_of(false), " ") + 5);
}

TEST(BrailleChart, ColourOnlyWhenAsked) {
  const std::vector<Curve> curves = loss_curves("run", 0, falling(30));
  EXPECT_EQ(braille_chart(curves, {}).find('\x1b'), std::string::npos);
  EXPECT_TRUE(says(braille_chart(curves, {.colour = true}), "\x1b[36m"));
}

TEST(BrailleChart, ASingleStepIsDrawn) {
  EXPECT_TRUE(
      says(braille_chart(loss_curves("run", 0, falling(1)), {}), "1 ⠤⠤⠤ run train  5.0000"));
}

TEST(SvgChart, HasALineALegendAndMarksForEvaluations) {
  std::vector<Curve> curves = loss_curves("a<b & \"c\"", 0, falling(50));
  for (Curve& curve : loss_curves("second", 1, falling(30))) curves.push_back(std::move(curve));
  const std::string svg = svg_chart(curves, false);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(says(svg, ">a&lt;b &amp; &quot;c&quot; train</text>"));
  EXPECT_TRUE(says(svg, ">a&lt;b &amp; &quot;c&quot; eval</text>"));
  EXPECT_EQ(count(svg, "<path class=\"line\""), 4U);
  EXPECT_EQ(count(svg, "<circle"), 5U + 3U + 2U);  // evaluations, and one per legend entry
  EXPECT_TRUE(says(svg, "#0072b2"));
  EXPECT_TRUE(says(svg, "#d55e00"));
  EXPECT_EQ(svg.find("href"), std::string::npos);
}

TEST(SvgChart, TheLegendIsAsWideAsItsLongestName) {
  const auto width = [](const std::string& name) {
    const std::string svg = svg_chart(loss_curves(name, 0, falling(5)), false);
    const size_t legend = svg.rfind("<rect", svg.find("fill-opacity=\".88\""));
    return std::stod(svg.substr(svg.find("width=\"", legend) + 7));
  };
  EXPECT_LT(width("a"), width("a run with a long name"));
  EXPECT_LT(width("a"), 250);
}

TEST(SvgChart, EqualCurvesAreSeenToBeTwo) {
  std::vector<Curve> curves = loss_curves("first", 0, falling(15));
  for (Curve& curve : loss_curves("second", 1, falling(15))) curves.push_back(std::move(curve));
  const std::string svg = svg_chart(curves, false);
  EXPECT_NE(svg.find("second train = first train"), svg.npos);
  EXPECT_NE(svg.find(R"(class="line under")"), svg.npos);
  expect_well_formed_xml(svg);
  const std::string text = braille_chart(curves, {.columns = 60, .colour = true});
  EXPECT_NE(text.find(", the same as 1\n"), text.npos);
  // Both colours are there, in turn.
  EXPECT_GT(count(text, "\x1b[36m"), 2U);
  EXPECT_GT(count(text, "\x1b[33m"), 2U);
}

TEST(SvgChart, FollowsThePaperThatTheViewerPrefers) {
  const std::string svg = svg_chart(loss_curves("run", 0, falling(15)), false);
  EXPECT_NE(svg.find("prefers-color-scheme:dark"), svg.npos);
  EXPECT_EQ(svg.find("fill=\"#fff\""), svg.npos);
}

TEST(SvgChart, ManyStepsDoNotMakeALargeFile) {
  const std::string svg = svg_chart(loss_curves("run", 0, falling(20000)), false);
  EXPECT_LT(svg.size(), 200000U);
  EXPECT_TRUE(says(svg, "class=\"band\""));
}

TEST(SvgChart, IsWellFormedXml) {
  expect_well_formed_xml(svg_chart(loss_curves("<&>\x01", 0, falling(40)), true));
}

TEST(BrailleChart, ARunsNameIsCutToItsFirstLetterWhereTheMetricTakesTheLine) {
  const Curve curve{.name = "baseline", .points = {{0, 1}, {1, 2}}, .metric = "validation"};
  const std::string legend = lines(braille_chart({&curve, 1}, {.columns = 30, .rows = 4})).back();
  EXPECT_THAT(legend, testing::HasSubstr(" b validation  "));
}

TEST(Axis, EndsWhereAStepIsLostInTheNumber) {
  EXPECT_LE(linear_axis(1e20, 1e20 + 16384, 6).ticks.size(), 20u);
}

TEST(Axis, MayShowNumbersWhoseDifferenceIsNone) {
  const Axis axis = linear_axis(-1.5e308, 1.7e308, 5);
  EXPECT_EQ(axis.position(-1.5e308), 0);
  EXPECT_EQ(axis.position(1.7e308), 1);
  EXPECT_NEAR(axis.position(1e307), 0.5, 0.01);
  ASSERT_EQ(axis.ticks.size(), 7u);
  EXPECT_EQ(axis.ticks[0].label, "-1.5e+308");
  EXPECT_EQ(axis.ticks[3].label, "0");
}

}  // namespace
}  // namespace lockstep::train
