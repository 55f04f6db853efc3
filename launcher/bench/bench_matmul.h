#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `matmul` to `lockstep bench`: the matrix products of GPT-2's layers, forward and backward,
/// and square ones, in each floating-point type: time and operations a second.
void add_bench_matmul(const Verb& bench);

}  // namespace lockstep::launcher
