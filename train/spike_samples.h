#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/sample_origin.h"

namespace lockstep::train {

/// Up to three samples with the largest losses, each above its even share, with what part of the
/// batch's loss each has: "sample 3 (kjv.txt, byte 1234) has 41 % of the loss, sample 7 (...)
/// 12 %". `origins` may be empty. Empty text if no loss is above its even share.
std::string describe_largest(std::span<const double> losses, std::span<const SampleOrigin> origins);

}  // namespace lockstep::train
