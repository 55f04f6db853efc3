#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds `matmul` to `lockstep bench`: the matrix products of GPT-2's layers, forward and backward,
/// and square ones, in each floating-point type: time and operations a second.
void add_bench_matmul(CLI::App& bench);

}  // namespace lockstep::launcher
