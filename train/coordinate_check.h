#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "train/report/coordinates.h"

namespace lockstep::config {
class RunConfig;
}

namespace lockstep::train {

struct CoordinateOptions {
  std::vector<int64_t> widths = {};  ///< rising, at least two
  int64_t steps = 4;                 ///< at least one
  int64_t seeds = 2;                 ///< runs of each width, whose numbers are averaged
  double threshold = 0.25;           ///< CoordinateCheck::threshold
};

/// Trains models of several widths for a few steps and measures what their layers compute. The
/// sizes are those of one forward pass on the first micro-batch of training data, the same for all
/// widths and steps, without dropout. `config_of` returns the resolved config of a width and a seed
/// number from 0. Writes no file. A function of the configs, of all bits. Throws ConfigError for
/// models that have no blocks of attention and MLP, and as Trainer does.
CoordinateCheck check_coordinates(
    const CoordinateOptions& options,
    const std::function<config::RunConfig(int64_t width, int64_t seed)>& config_of);

}  // namespace lockstep::train
