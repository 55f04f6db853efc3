#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds `streams` to `lockstep bench`: what the program pays to queue work on a device's streams,
/// and how fast copies between the cpu and the device are.
void add_bench_streams(CLI::App& bench);

}  // namespace lockstep::launcher
