#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace lockstep::emulation {

/// A kernel compiled for the emulated GPU.
struct Kernel {
  const char* name;
  size_t parameter_bytes;
  unsigned most_threads;                ///< launch bounds: threads per block
  void (*run)(const void* parameters);  ///< runs one thread of it
};

/// Registers a kernel before main(). A duplicate name ends the program.
struct Registration {
  explicit Registration(const Kernel& kernel);
};

/// Returns null if no kernel has this name.
const Kernel* find_kernel(std::string_view name);

/// Loads a module that NVRTC's stand-in made (fake_nvrtc.h) as a library, which is closed with the
/// result. Null if the image is something else.
std::shared_ptr<void> load_module(const void* image);
/// Returns null if the module has no kernel of this name.
const Kernel* find_kernel(void* module, const char* name);

}  // namespace lockstep::emulation
