#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `matmul` to `lockstep bench`: time and operations per second of the matrix products of
/// GPT-2's layers, forward and backward, and of square ones, in each floating-point type.
void add_bench_matmul(const Verb& bench);

}  // namespace lockstep::launcher
