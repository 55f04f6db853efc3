#include "train/report/overlap_chart.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/train/report/well_formed_xml.h"
#include "train/report/svg_plot.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

OverlapTimeline timeline() {
  return {.title = "a <run>",
          .backward_end = 100,
          .wait_end = 130,
          .step_end = 150,
          .buckets = {{.bytes = 1 << 20,
                       .ready = 20,
                       .begin = 30,
                       .done = 60,
                       .cause = "hidden",
                       .first = "h.1.w",
                       .last = "h.1.b"},
                      {.bytes = 2 << 20,
                       .ready = 90,
                       .begin = 90,
                       .done = 130,
                       .exposed = 30,
                       .cause = "late bucket"}}};
}

TEST(OverlapChart, NamesOfLanesStandJustLeftOfThePlot) {
  const std::string chart = overlap_chart(timeline());
  const std::regex label("<text x=\"([0-9.]+)\"[^>]*text-anchor=\"end\">");
  std::set<std::string> places;
  for (std::sregex_iterator at(chart.begin(), chart.end(), label), end; at != end; ++at) {
    places.insert((*at)[1]);
  }
  EXPECT_EQ(places, std::set<std::string>{fmt::format("{:.1f}", SvgPlot::kLeft - 8)});
}

TEST(OverlapChart, ShowsEachBucketAndWhatExposedIt) {
  const std::string chart = overlap_chart(timeline());
  EXPECT_THAT(chart, HasSubstr("bucket 1, 1.0 MiB, h.1.w to h.1.b: ready at 20.0, transfer 30.0 to "
                               "60.0 ms, hidden"));
  EXPECT_THAT(chart,
              HasSubstr("bucket 2, 2.0 MiB: ready at 90.0, transfer 90.0 to 130.0 ms, late"));
  EXPECT_THAT(chart, HasSubstr(">1.0 MiB</text>"));
  EXPECT_THAT(chart, HasSubstr(">2.0 MiB, 30.0 ms: late bucket</text>"));
  EXPECT_THAT(chart, HasSubstr("waits 30.0 ms"));
  EXPECT_THAT(chart,
              HasSubstr("forward and backward 100.0 ms + waiting 30.0 ms + optimizer 20.0 ms "
                        "= step 150.0 ms"));
  for (const char* lane : {"compute", "link", "bucket 1", "bucket 2"}) {
    EXPECT_THAT(chart, HasSubstr(std::string(">") + lane + "</text>"));
  }
  EXPECT_THAT(chart, HasSubstr("a &lt;run&gt;"));
}

TEST(OverlapChart, TheLegendNamesEveryColourThatIsDrawn) {
  const std::string chart = overlap_chart(timeline());
  std::set<std::string> drawn, named;
  const std::regex bar(R"re(<rect( class="legend")? x="[^>]* fill="(#[0-9a-f]+)")re");
  for (std::sregex_iterator each(chart.begin(), chart.end(), bar), end; each != end; ++each) {
    ((*each)[1].matched ? named : drawn).insert((*each)[2]);
  }
  EXPECT_EQ(drawn.size(), 5U);
  EXPECT_EQ(named, drawn);
  for (const char* text : {"forward and backward", "bucket queued", "transfer behind backward",
                           "exposed", "optimizer"}) {
    EXPECT_THAT(chart, HasSubstr(std::string(">") + text + "</text>"));
  }
}

TEST(OverlapChart, IsXml) { expect_well_formed_xml(overlap_chart(timeline())); }

TEST(OverlapChart, AStepWithoutBucketsIsAnImageToo) {
  expect_well_formed_xml(overlap_chart(
      {.title = "nothing", .backward_end = 1, .wait_end = 1, .step_end = 1, .buckets = {}}));
}

}  // namespace
}  // namespace lockstep::train
