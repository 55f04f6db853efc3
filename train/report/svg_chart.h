#pragma once

#include <span>
#include <string>

#include "train/report/curve.h"

namespace lockstep::train {

/// A self-contained SVG image of loss curves over steps: axes with round marks, a legend with each
/// curve's last value. Where several steps share a column, the line is their mean and a light band
/// their spread. Text is text, in the reader's own sans-serif font. `curves` must hold a point.
std::string svg_chart(std::span<const Curve> curves, bool log_x);

}  // namespace lockstep::train
