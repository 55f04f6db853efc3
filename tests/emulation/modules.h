#pragma once

#include <memory>

#include "tests/emulation/kernels.h"

namespace lockstep::emulation {

/// Loads a module that NVRTC's stand-in made (fake_nvrtc.h) as a library, which is closed with the
/// result. Null if the image is something else.
std::shared_ptr<void> load_module(const void* image);
/// Returns null if the module has no kernel of this name.
const Kernel* find_kernel(void* module, const char* name);

}  // namespace lockstep::emulation
