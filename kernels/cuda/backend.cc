// What the dispatcher knows of GPUs: kernels launch their work on the current stream. Operators
// without a kernel here (operators that no model needs on a GPU, and operators of plug-ins for the
// cpu alone) run on the cpu: each such call waits, and its copies are counted.

#include "core/dispatch/cpu_fallback.h"

namespace lockstep::cuda {

namespace {

[[maybe_unused]] const bool kRegistered = [] {
  dispatcher().set_backend(Key::kCUDA, {Execution::kLaunched, Key::kCUDA});
  return true;
}();

// Never destroyed: destructors of other static objects may call operators. `used` keeps the
// pointer, so that leak checkers see the registration as reachable.
[[gnu::used]] const Registration* const kFallback =
    new Registration(register_cpu_fallback(Key::kCUDA));

}  // namespace

}  // namespace lockstep::cuda
