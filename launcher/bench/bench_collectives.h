#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `collectives` to `lockstep bench`: speed of collective operations, in the columns of
/// nccl-tests. Checks the result of each operation.
void add_bench_collectives(const Verb& bench);

}  // namespace lockstep::launcher
