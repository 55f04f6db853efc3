#pragma once

#include <cstdint>

namespace lockstep::cpu {

/// log |gamma(x)|: infinite at 0, -1, -2, ... . Unlike std::lgamma it writes no global sign.
double log_gamma(double x);

/// The derivative of log gamma: -inf at 0, inf at -0, NaN at -1, -2, ....
double digamma(double x);

/// The n-th derivative of digamma for n >= 1: infinite at 0, -1, -2, ....
double polygamma(int64_t n, double x);

}  // namespace lockstep::cpu
