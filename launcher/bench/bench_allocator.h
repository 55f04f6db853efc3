#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `allocator --trace FILE` to `lockstep bench`: what the caching allocator reserves, how
/// often it asks the driver and how long it takes, on the allocations of a run.
void add_bench_allocator(const Verb& bench);

}  // namespace lockstep::launcher
