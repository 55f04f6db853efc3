#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `collectives` to `lockstep bench`: how fast the ranks exchange data, in the columns of
/// nccl-tests, with the result of each operation checked.
void add_bench_collectives(const Verb& bench);

}  // namespace lockstep::launcher
