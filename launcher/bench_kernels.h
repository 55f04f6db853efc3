#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds `kernels` to `lockstep bench`: how much of a device's memory bandwidth and arithmetic
/// single operators use.
void add_bench_kernels(CLI::App& bench);

}  // namespace lockstep::launcher
