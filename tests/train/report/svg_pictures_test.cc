// Whole pictures of small charts, so that no line of one moves unseen.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/core/base/temporary_directory.h"
#include "train/report/braille_chart.h"
#include "train/report/memory_chart.h"
#include "train/report/overlap_chart.h"
#include "train/report/svg_chart.h"

namespace lockstep::train {
namespace {

/// The picture that a chart must be, to be looked at with a browser.
std::string picture(const std::string& name) {
  return file_content(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests/train/golden" / name);
}

TEST(SvgPictures, OfLosses) {
  const std::vector<Curve> curves = {
      {.name = "a", .points = {{1, 4}, {2, 3}, {4, 2}}, .metric = "train"},
      {.name = "a", .sparse = true, .points = {{2, 3.5}, {4, 2.5}}, .metric = "eval"},
      {.name = "b", .group = 8, .points = {{1, 4}, {2, 3}, {4, 2}}, .metric = "train"}};
  EXPECT_EQ(svg_chart(curves, false), picture("losses.svg"));
  EXPECT_EQ(braille_chart(curves, {.columns = 40, .rows = 6}),
            "4 ┤        ⠐⠤⣀                        \n"
            "  │           ⠉⠒⢄⡀  ⠠⠄⢀               \n"
            "3 ┤              ⠈⠑⠢⢄⡀ ⠁⠐⠂⠠⠄⢀         \n"
            "  │                  ⠈⠉⠒⠢⠤⣀⡀ ⠁⠈⠂⠠⠄⢀⡀   3\n"
            "  │                        ⠈⠉⠒⠒⠤⢄⣀  ⠈⠒ 2\n"
            "2 ┤                               ⠉⠑⠒⠤ 1\n"
            "  └───────────────────────────────────\n"
            "   0                2                4\n"
            "  1 ⠤⠤⠤ a train  2.0000\n"
            "  2 ⠤ ⠤ a eval  2.5000\n"
            "  3 ⠤⠤⠤ b train  2.0000, the same as 1\n");
  EXPECT_EQ(braille_chart(curves, {.columns = 30, .rows = 4, .colour = true, .log_x = true}),
            "4 ┤\x1b[32m⠉⠒⠒⠤⢄⣀⡀\x1b[0m                  \n"
            "  │      \x1b[32m⠈⠉⠑⠒⠤⠤⣈\x1b[36m⡁⠐⠂⠠⡀\x1b[0m        3\n"
            "  │             \x1b[36m⠈⠉⠒⠢⠤⣈⡁⠐⠂⠠⠄⢀\x1b[0m 2\n"
            "2 ┤                   \x1b[36m⠈⠉⠒⠢⠤⣀\x1b[0m 1\n"
            "  └─────────────────────────\n"
            "   1           2\n"
            "  \x1b[36m1 ⠤⠤⠤\x1b[0m a train  2.0000\n"
            "  \x1b[36m2 ⠤ ⠤\x1b[0m a eval  2.5000\n"
            "  \x1b[32m3 ⠤⠤⠤\x1b[0m b train  2.0000, the same as 1\n");
}

TEST(SvgPictures, OfManyStepsHaveABand) {
  Curve curve{.name = "a", .points = {}};
  for (int i = 0; i < 1200; ++i) curve.points.push_back({double(i), double(i % 3)});
  const std::string svg = svg_chart({&curve, 1}, false);
  const size_t band = svg.find(R"(<path class="band")");
  ASSERT_NE(band, svg.npos);
  EXPECT_EQ(svg.substr(band, 60),
            R"(<path class="band" d="M64.7 64.4L66.6 64.4L68.6 64.4L70.6 64)");
  const size_t end = svg.find("Z\"/>", band);
  EXPECT_EQ(svg.substr(end - 40, 44), R"(6 435.6L68.6 435.6L66.6 435.6L64.7 435.6Z"/>)");
}

TEST(SvgPictures, OfMemory) {
  MemoryTimeline timeline{
      .device = "cpu",
      .title = "step 2",
      .groups = {"held when it began", "mm", "a.module.with.a.name.that.is.long"},
      .moments = {{0, {4096, 0, 0}},
                  {2.5, {4096, 2048, 0}},
                  {5, {4096, 2048, 1024}},
                  {10, {4096, 0, 1024}}},
      .peak = 2};
  EXPECT_EQ(memory_chart(timeline), picture("memory.svg"));
  timeline.moments[1].bytes = {4096, 4096, 0};
  timeline.peak = 1;
  const std::string svg = memory_chart(timeline);
  const size_t peak = svg.find(R"(<line class="peak")");
  ASSERT_NE(peak, svg.npos);
  EXPECT_EQ(svg.substr(peak, svg.find("</text>", peak) - peak),
            R"svg(<line class="peak" x1="220.5" y1="68.0" x2="220.5" y2="468"/>
<circle cx="220.5" cy="68.0" r="3.5" class="ink"/>
<text class="label" x="228.5" y="62.0">peak 8.0 KiB)svg");
}

TEST(SvgPictures, OfCommunication) {
  EXPECT_EQ(overlap_chart({.title = "a <run>",
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
                                        .cause = "late bucket",
                                        .first = "x",
                                        .last = "x"}}}),
            picture("communication.svg"));
}

}  // namespace
}  // namespace lockstep::train
