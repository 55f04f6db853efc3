#pragma once

#include <string>
#include <vector>

#include "core/plugin/plugin.h"

namespace lockstep {

/// A plug-in (docs/plugins.md) as a text.
struct InlineSource {
  std::string text;  ///< C++17 with LS_PLUGIN; core/plugin/plugin_wrapper.h is included already
  std::string name = "inline";  ///< the compiler's messages name lines of it: "inline:3:10: error"
  std::vector<std::string> flags = {"-O2"};  ///< of the compiler
  /// CUDA C++ of kernels, begun with LS_CUDA_KERNEL (core/cuda/kernel.cuh, which it includes): the
  /// text launches them from the module `kImage`. Messages name its lines "inline.cu:3:10".
  std::string cuda = {};
};

/// Compiles a plug-in with this machine's C++ compiler ($CXX, c++, g++ or clang++) and loads it as
/// `load_library` does. What was compiled before, by any process, is taken from the user's cache
/// (`lockstep cache`). NVRTC, a library of CUDA that is opened when it is first needed, compiles
/// kernels, for GPUs like `cuda:0`. Throws DeviceError for kernels without NVRTC or a GPU, and
/// Error with the compiler's messages, and what `load_library` throws.
[[nodiscard]] Plugin load_inline(const InlineSource& source);

}  // namespace lockstep
