#include "launcher/cuda_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/base/cuda_library_files.h"
#include "dist/nccl/nccl_library.h"

namespace lockstep::launcher {

namespace {

/// A library's files, the newest first, and the function that returns its version, which is
/// major * `major_unit` + minor * 100 + patch.
struct Wanted {
  const char* name;
  std::vector<const char*> files;
  const char* version_function;
  size_t major_unit;
};

CudaLibrary find(const Wanted& wanted) {
  for (const char* const file : wanted.files) {
    for (const std::string& place : cuda::library_files(file)) {
      void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      void* const function = dlsym(library, wanted.version_function);
      if (function == nullptr) continue;
      const size_t version = reinterpret_cast<size_t (*)()>(function)();
      const size_t rest = version % wanted.major_unit;
      return {wanted.name,
              fmt::format("{}.{}.{}", version / wanted.major_unit, rest / 100, rest % 100),
              cuda::file_of_function(function, place)};
    }
  }
  return {wanted.name, "", ""};
}

CudaLibrary find_nccl() {
  for (const std::string& place : cuda::library_files("libnccl.so.2")) {
    try {
      const auto library = dist::load_nccl(place);
      return {"NCCL", dist::nccl_version_text(library->version), library->file};
    } catch (const std::exception&) {
      // Not found or unusable: try the next file.
    }
  }
  return {"NCCL", "", ""};
}

}  // namespace

std::vector<CudaLibrary> find_cuda_libraries() {
  return {
      find({"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}, "cublasLtGetVersion", 10000}),
      find({"cuDNN", {"libcudnn.so.9"}, "cudnnGetVersion", 10000}), find_nccl()};
}

std::string nccl_file() {
  const CudaLibrary found = find_nccl();
  return found.file.empty() ? "libnccl.so.2" : found.file;
}

}  // namespace lockstep::launcher
