#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds `streams` to `lockstep bench`: host time to queue work on a device's streams, and the speed
/// of copies between the cpu and the device.
void add_bench_streams(const Verb& bench);

}  // namespace lockstep::launcher
