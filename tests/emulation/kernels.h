#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::emulation {

/// A kernel compiled for the emulated GPU.
struct Kernel {
  const char* name;
  size_t parameter_bytes;
  unsigned most_threads;                ///< of a block, its launch bounds
  void (*run)(const void* parameters);  ///< one thread of it
};

/// Enters a kernel before main(); a name that is taken ends the program.
struct Registration {
  explicit Registration(const Kernel& kernel);
};

/// Null where no kernel has this name.
const Kernel* find_kernel(std::string_view name);

}  // namespace lockstep::emulation
