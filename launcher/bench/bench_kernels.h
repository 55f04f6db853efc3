#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `kernels` to `lockstep bench`: the memory bandwidth and arithmetic rate that single
/// operators reach on a device.
void add_bench_kernels(const Verb& bench);

}  // namespace lockstep::launcher
