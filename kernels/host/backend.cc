// What the dispatcher knows of the host device: it queues the cpu's kernels. Operators whose result
// sizes depend on elements, and those that return C++ values, cannot be queued: they wait and run
// on the cpu.

#include "core/dispatch/cpu_fallback.h"

namespace lockstep::host {

namespace {

[[maybe_unused]] const bool kBackendRegistered = [] {
  dispatcher().set_backend(Key::kHost, {Execution::kQueued, Key::kCPU});
  return true;
}();

// Never destroyed: destructors of other static objects may call operators. `used` keeps the
// pointer, so that leak checkers see the registration as reachable.
[[gnu::used]] const Registration* const kFallback =
    new Registration(register_cpu_fallback(Key::kHost));

}  // namespace

}  // namespace lockstep::host
