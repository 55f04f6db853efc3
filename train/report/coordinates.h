#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// Mean size, |x|, of what layers of one kind compute, and how far it has moved since before the
/// first step, mean |x - x before|. The first entry is before the first step.
struct LayerCoordinates {
  std::string layer;                       ///< "attention output"
  std::vector<std::vector<double>> sizes;  ///< [step][width]
  std::vector<std::vector<double>> moves;  ///< [step][width]; zeros before the first step
};

/// How sizes follow the width.
enum class WidthVerdict : uint8_t { kConstant, kGrows, kShrinks, kNotFinite };
std::string_view to_string(WidthVerdict verdict);

/// Exponent e of the fit size ~ width^e: the slope of a least-squares line through the logarithms.
/// NaN unless all sizes are finite and above 0. Needs two different widths.
double width_exponent(std::span<const int64_t> widths, std::span<const double> sizes);

/// What models of several widths computed in their first steps: a coordinate check (Yang et al.
/// 2022, appendix D.1). A parametrization under which settings carry over from width to width keeps
/// sizes and moves of every layer as they are.
struct CoordinateCheck {
  std::vector<int64_t> widths;  ///< rising
  int64_t steps = 0;
  int64_t seeds = 0;     ///< over which is averaged
  double threshold = 0;  ///< an exponent further from 0 than this is growth, or shrinking
  std::vector<LayerCoordinates> layers;

  /// The exponents after `step`.
  double size_exponent(const LayerCoordinates& layer, int64_t step) const;
  double move_exponent(const LayerCoordinates& layer, int64_t step) const;
  /// Judges the exponents after the last step.
  WidthVerdict verdict(const LayerCoordinates& layer) const;
  bool passed() const;
};

/// Tables for a person: sizes by step and width, exponents and verdicts.
std::string coordinates_text(const CoordinateCheck& check);
/// One JSON object on one line.
std::string coordinates_json(const CoordinateCheck& check);

}  // namespace lockstep::train
