#include "train/report/overlap_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/train/report/well_formed_xml.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;
using testing::Not;

OverlapTimeline timeline() {
  return {.title = "a <run>",
          .backward_end = 100,
          .wait_end = 130,
          .step_end = 150,
          .buckets = {{.bytes = 1 << 20, .ready = 20, .done = 60, .cause = "hidden"},
                      {.bytes = 2 << 20, .ready = 90, .done = 130, .cause = "late bucket"}}};
}

TEST(OverlapChart, ShowsEachBucketAndWhatExposedIt) {
  const std::string chart = overlap_chart(timeline());
  EXPECT_THAT(chart, HasSubstr("1.0 MiB: 20.0 to 60.0 ms, hidden"));
  EXPECT_THAT(chart, HasSubstr("2.0 MiB: 90.0 to 130.0 ms, late bucket"));
  EXPECT_THAT(chart, HasSubstr(">late bucket</text>"));
  EXPECT_THAT(chart, Not(HasSubstr(">hidden</text>")));
  EXPECT_THAT(chart, HasSubstr("waits 30.0 ms"));
  EXPECT_THAT(chart, HasSubstr("a &lt;run&gt;"));
}

TEST(OverlapChart, TheLegendNamesEveryColourThatIsDrawn) {
  const std::string chart = overlap_chart(timeline());
  std::set<std::string> drawn, named;
  const std::regex bar(R"re(<rect( class="legend")? x="[^>]* fill="(#[0-9a-f]+)")re");
  for (std::sregex_iterator each(chart.begin(), chart.end(), bar), end; each != end; ++each) {
    ((*each)[1].matched ? named : drawn).insert((*each)[2]);
  }
  EXPECT_EQ(drawn.size(), 4U);
  EXPECT_EQ(named, drawn);
  for (const char* text : {"forward and backward", "bucket behind backward",
                           "waiting, and buckets after backward", "optimizer"}) {
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
