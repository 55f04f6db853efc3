#pragma once

#include <string>

#include "train/report/coordinates.h"

namespace lockstep::train {

/// A self-contained SVG image of a coordinate check: for each kind of layer a line of the mean size
/// after the last step over the width, and a broken line of that before the first, on logarithmic
/// axes, so that what is the same at all widths is level. The legend has exponents and verdicts.
/// Sizes that are not finite, or 0, are left out.
std::string coordinate_chart(const CoordinateCheck& check);

}  // namespace lockstep::train
