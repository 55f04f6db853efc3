#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `calls` to `lockstep bench`: time that the calling thread spends in calls of small
/// operators, which on devices with streams is the time to queue them.
void add_bench_calls(const Verb& bench);

}  // namespace lockstep::launcher
