#pragma once

#include <nvrtc.h>

#include <cstddef>
#include <string>
#include <vector>

#include "core/cuda/opened_library.h"

namespace lockstep::cuda {

/// The functions of NVRTC, the compiler of CUDA C++ that is a library, that are called here.
#define LS_NVRTC_FUNCTIONS(X) \
  X(nvrtcVersion)             \
  X(nvrtcGetErrorString)      \
  X(nvrtcCreateProgram)       \
  X(nvrtcDestroyProgram)      \
  X(nvrtcCompileProgram)      \
  X(nvrtcGetProgramLogSize)   \
  X(nvrtcGetProgramLog)       \
  X(nvrtcGetCUBINSize)        \
  X(nvrtcGetCUBIN)

/// Table of NVRTC's functions.
struct Nvrtc {
#define LS_NVRTC_MEMBER(name) decltype(&::name) name = nullptr;
  LS_NVRTC_FUNCTIONS(LS_NVRTC_MEMBER)
#undef LS_NVRTC_MEMBER
};

using LoadedNvrtc = OpenedLibrary<Nvrtc>;
using NvrtcLibrary = LazyLibrary<Nvrtc>;

/// Opens the first usable file of `nvrtc_files`; it stays open until the process ends.
LoadedNvrtc load_nvrtc();
/// Fills the table from an opened library; `load_nvrtc` calls it.
LoadedNvrtc read_nvrtc(const std::string& file, const FindFunction& find);
/// Paths at which to look for the library: version 13 before 12, as for other libraries of CUDA
/// (core/base/cuda_library_files.h).
std::vector<std::string> nvrtc_files();

/// The process's NVRTC.
NvrtcLibrary& nvrtc();
/// For tests: makes `nvrtc()` return `library`, which is never destroyed. Returns the previous one.
NvrtcLibrary& set_nvrtc(NvrtcLibrary& library);

/// A header that a text may include by its name.
struct NamedHeader {
  std::string name;
  std::string text;
};

/// Compiles a text to the machine code (a cubin) that the flags name, such as
/// "--gpu-architecture=sm_90". Throws DeviceError if there is no NVRTC, or with its first messages.
/// Thread-safe.
std::vector<std::byte> compile_cuda(const std::string& text, const std::vector<std::string>& flags,
                                    const std::vector<NamedHeader>& headers);

}  // namespace lockstep::cuda
