#pragma once

namespace CLI {
class App;
}

namespace lockstep::launcher {

/// Adds `calls` to `lockstep bench`: how long the calling thread is busy with small operators,
/// which on devices with streams is the time to queue them.
void add_bench_calls(CLI::App& bench);

}  // namespace lockstep::launcher
