#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `allocator --trace FILE` to `lockstep bench`: replays the allocations of a run and measures
/// how much the caching allocator reserves, its calls of the driver and its time.
void add_bench_allocator(const Verb& bench);

}  // namespace lockstep::launcher
