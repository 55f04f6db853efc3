#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `step` to `lockstep bench`: time, rates and memory of one training step of a config, and
/// with --profile the time of each operator beside what the machine could do at best.
void add_bench_step(const Verb& bench);

}  // namespace lockstep::launcher
