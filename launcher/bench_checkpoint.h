#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds `checkpoint CONFIG` to `lockstep bench`: how fast a checkpoint is written and read, beside
/// plain files of the same size that are written with fsync and read.
void add_bench_checkpoint(CLI::App& bench);

}  // namespace lockstep::launcher
