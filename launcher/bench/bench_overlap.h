#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `overlap` to `lockstep bench`: how much of the communication of a config's step overlaps
/// with its computation, compared with the best possible (dist/ddp/overlap.h).
void add_bench_overlap(const Verb& bench);

}  // namespace lockstep::launcher
