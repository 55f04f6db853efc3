#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `overlap` to `lockstep bench`: how much of the communication of a config's step hides
/// behind its computation, beside the best that is possible (dist/ddp/overlap.h).
void add_bench_overlap(const Verb& bench);

}  // namespace lockstep::launcher
