#pragma once

#include <span>
#include <string>

#include "train/report/curve.h"

namespace lockstep::train {

/// A self-contained SVG image of loss curves over steps: axes with round marks, a legend with each
/// curve's last value. If several steps share a column, the line is their mean and a light band
/// their range. Text is kept as text, in the viewer's sans-serif font. `curves` must hold at least
/// one point.
std::string svg_chart(std::span<const Curve> curves, bool log_x);

}  // namespace lockstep::train
