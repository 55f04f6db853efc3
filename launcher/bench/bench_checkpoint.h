#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `checkpoint CONFIG` to `lockstep bench`: how fast a checkpoint is written and read, beside
/// plain files of the same size that are written with fsync and read.
void add_bench_checkpoint(const Verb& bench);

}  // namespace lockstep::launcher
