#pragma once

#include <string>

#include "train/report/memory_timeline.h"

namespace lockstep::train {

/// A self-contained SVG image of memory over time: areas stacked by group, the peak marked, a
/// legend with each group's bytes at the peak. `timeline` must hold at least one moment.
std::string memory_chart(const MemoryTimeline& timeline);

}  // namespace lockstep::train
