#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `kernels` to `lockstep bench`: how much of a device's memory bandwidth and arithmetic
/// single operators use.
void add_bench_kernels(const Verb& bench);

}  // namespace lockstep::launcher
