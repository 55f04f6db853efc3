#include "train/report/coordinates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/train/report/well_formed_xml.h"
#include "train/report/coordinate_chart.h"

namespace lockstep::train {
namespace {

/// Sizes 0.5 width^size and moves 0.1 width^move after one step.
CoordinateCheck check_of(double size, double move) {
  CoordinateCheck check{.widths = {64, 128, 512}, .steps = 1, .seeds = 1, .threshold = 0.2};
  LayerCoordinates layer{"blocks", {{1, 1, 1}, {}}, {{0, 0, 0}, {}}};
  for (const int64_t width : check.widths) {
    layer.sizes[1].push_back(0.5 * std::pow(static_cast<double>(width), size));
    layer.moves[1].push_back(0.1 * std::pow(static_cast<double>(width), move));
  }
  check.layers.push_back(layer);
  return check;
}

WidthVerdict verdict_of(double size, double move) {
  const CoordinateCheck check = check_of(size, move);
  return check.verdict(check.layers[0]);
}

TEST(Coordinates, TheExponentIsTheSlopeOfTheLogarithms) {
  const CoordinateCheck check = check_of(0.75, -0.5);
  EXPECT_NEAR(check.size_exponent(check.layers[0], 1), 0.75, 1e-12);
  EXPECT_NEAR(check.move_exponent(check.layers[0], 1), -0.5, 1e-12);
  EXPECT_NEAR(check.size_exponent(check.layers[0], 0), 0, 1e-12);
}

TEST(Coordinates, SizesAndMovesMayNotGrowAndMovesMayNotShrink) {
  EXPECT_EQ(verdict_of(0, 0), WidthVerdict::kConstant);
  EXPECT_EQ(verdict_of(0.19, -0.19), WidthVerdict::kConstant);
  EXPECT_EQ(verdict_of(0.21, 0), WidthVerdict::kGrows);
  EXPECT_EQ(verdict_of(0, 0.21), WidthVerdict::kGrows);
  EXPECT_EQ(verdict_of(0, -0.21), WidthVerdict::kShrinks);
  EXPECT_EQ(verdict_of(-0.5, 0), WidthVerdict::kConstant);  // a random classifier's logits
  EXPECT_TRUE(check_of(0, 0).passed());
  EXPECT_FALSE(check_of(0.5, 0).passed());
}

TEST(Coordinates, SizesThatAreNotFiniteFail) {
  CoordinateCheck check = check_of(0, 0);
  check.layers[0].sizes[1][2] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(check.verdict(check.layers[0]), WidthVerdict::kNotFinite);
  EXPECT_FALSE(check.passed());
  EXPECT_NE(coordinates_text(check).find("blocks is not finite"), std::string::npos);
  EXPECT_TRUE(nlohmann::json::parse(coordinates_json(check))["layers"][0]["sizes"][1][2].is_null());
}

TEST(Coordinates, TextAndJsonSayWhatWasFound) {
  const CoordinateCheck check = check_of(1, 0.5);
  const std::string text = coordinates_text(check);
  EXPECT_NE(text.find("failed: blocks grows\n"), std::string::npos) << text;
  EXPECT_NE(text.find("above 0.2."), std::string::npos) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(\nblocks +\+1\.00 +\+0\.50  grows\n)")))
      << text;
  EXPECT_NE(coordinates_text(check_of(0, 0)).find("\npassed\n"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(coordinates_json(check));
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["widths"], nlohmann::json({64, 128, 512}));
  EXPECT_EQ(json["layers"][0]["verdict"], "grows");
  EXPECT_NEAR(json["layers"][0]["size_exponent"].get<double>(), 1, 1e-9);
}

TEST(Coordinates, TheChartNamesEveryLayerWithItsExponents) {
  CoordinateCheck check = check_of(1, 0.5);
  const std::string svg = coordinate_chart(check);
  expect_well_formed_xml(svg);
  EXPECT_NE(svg.find("blocks: grows"), std::string::npos);
  // The legend's line, in the layer's colour, stands left of its name.
  EXPECT_TRUE(std::regex_search(
      svg,
      std::regex(
          R"re(<line class="line" stroke="[^"0-9][^"]*" x1="[0-9.]+" y1="[0-9.]+" x2="[0-9.]+")re")));
  EXPECT_NE(svg.find("size ~ width^1.00, move ~ width^0.50"), std::string::npos);
  // Its exponents stand a line below its name.
  std::smatch lines;
  ASSERT_TRUE(std::regex_search(
      svg, lines,
      std::regex(R"re( y="([0-9.]+)">blocks: grows</text>\s*<text [^>]*y="([0-9.]+)">)re")));
  EXPECT_NEAR(std::stod(lines[2]) - std::stod(lines[1]), 16, 4);
  for (double& size : check.layers[0].sizes[1]) size = std::nan("");
  expect_well_formed_xml(coordinate_chart(check));
}

}  // namespace
}  // namespace lockstep::train
