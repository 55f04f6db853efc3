#pragma once

#include <span>
#include <string>

#include "train/report/curve.h"

namespace lockstep::train {

struct BrailleOptions {
  int columns = 80;  ///< of the terminal; at least 30 are used
  int rows = 16;     ///< of the plot itself; at least 4 are used
  bool colour = false;
  bool log_x = false;
};

/// Loss curves over steps in Unicode braille characters (2 x 4 dots each), with axis marks and a
/// legend. A digit or letter at the right edge names the curve that ends there, so that curves can
/// be distinguished without colour. Lines end with '\n' and are no wider than `columns` (names are
/// cut). `curves` must hold at least one point.
std::string braille_chart(std::span<const Curve> curves, const BrailleOptions& options);

}  // namespace lockstep::train
