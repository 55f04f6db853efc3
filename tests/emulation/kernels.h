#pragma once

#include <cstddef>
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

}  // namespace lockstep::emulation
