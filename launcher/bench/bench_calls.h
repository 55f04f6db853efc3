#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `calls` to `lockstep bench`: how long the calling thread is busy with small operators,
/// which on devices with streams is the time to queue them.
void add_bench_calls(const Verb& bench);

}  // namespace lockstep::launcher
