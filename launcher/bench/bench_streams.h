#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `streams` to `lockstep bench`: what the program pays to queue work on a device's streams,
/// and how fast copies between the cpu and the device are.
void add_bench_streams(const Verb& bench);

}  // namespace lockstep::launcher
