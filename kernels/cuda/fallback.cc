// What has no kernel here runs on the cpu: operators that no model needs on a GPU, and what
// plug-ins bring for the cpu alone. Each such call waits, and its copies are counted.

#include "core/dispatch/cpu_fallback.h"

namespace lockstep::cuda {

namespace {

// Never taken back: other static objects' destructors may call operators. `used`, or the pointer
// goes, and what it points to counts as leaked.
[[gnu::used]] const Registration* const kFallback =
    new Registration(register_cpu_fallback(Key::kCUDA));

}  // namespace

}  // namespace lockstep::cuda
