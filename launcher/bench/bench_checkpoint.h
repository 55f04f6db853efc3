#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `checkpoint CONFIG` to `lockstep bench`: how fast a checkpoint is written and read, by one
/// rank or by several, compared with writing (with fsync) and reading plain files of the same size,
/// and how long training stands still when it is written beside it.
void add_bench_checkpoint(const Verb& bench);

}  // namespace lockstep::launcher
