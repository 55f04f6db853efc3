// What no stream can run: operators whose results' sizes depend on elements, and those that return
// C++ values.

#include "core/dispatch/cpu_fallback.h"

namespace lockstep::host {

namespace {

// Never taken back: other static objects' destructors may call operators. `used`, or the pointer
// goes, and what it points to counts as leaked.
[[gnu::used]] const Registration* const kFallback =
    new Registration(register_cpu_fallback(Key::kHost));

}  // namespace

}  // namespace lockstep::host
