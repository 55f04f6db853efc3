#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds `collectives` to `lockstep bench`: how fast the ranks exchange data, in the columns of
/// nccl-tests, with the result of each operation checked.
void add_bench_collectives(CLI::App& bench);

}  // namespace lockstep::launcher
