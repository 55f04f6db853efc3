#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `checkpoint CONFIG` to `lockstep bench`: how fast a checkpoint is written and read,
/// compared with writing (with fsync) and reading plain files of the same size.
void add_bench_checkpoint(const Verb& bench);

}  // namespace lockstep::launcher
