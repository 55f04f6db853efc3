#pragma once

#include <cstdint>

#include "dist/simulate/cluster.h"

namespace lockstep::dist {

/// The value below which a standard normal variable is with probability `p`, 0 < p < 1.
double normal_quantile(double p);

/// By how much the computation of the slowest of `ranks` ranks on `hosts` hosts is expected to take
/// longer than that of the mean rank; at least 1. The expected maximum of n normal variables is the
/// quantile (n - 3/8) / (n + 1/4) (Blom 1958); with a part p of slow hosts at least one of h is
/// slow with probability 1 - (1 - p)^h.
double slowest_factor(const Stragglers& stragglers, int64_t ranks, int64_t hosts);

}  // namespace lockstep::dist
