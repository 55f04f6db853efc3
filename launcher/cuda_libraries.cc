#include "launcher/cuda_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "dist/nccl_library.h"

namespace lockstep::launcher {

namespace {

/// A library's files, the newest first, and the function that tells its version, which is
/// major * `major_unit` + minor * 100 + patch.
struct Wanted {
  const char* name;
  std::vector<const char*> files;
  const char* version_function;
  size_t major_unit;
};

std::vector<std::string> places(const std::string& file) {
  std::vector<std::string> all;
  const char* const folders = std::getenv("LOCKSTEP_CUDA_LIBRARIES");
  std::istringstream list(folders == nullptr ? "" : folders);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty()) all.push_back(folder + "/" + file);
  }
  all.push_back(file);
  return all;
}

CudaLibrary find(const Wanted& wanted) {
  for (const char* const file : wanted.files) {
    for (const std::string& place : places(file)) {
      void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) continue;
      void* const function = dlsym(library, wanted.version_function);
      Dl_info info{};
      if (function == nullptr || dladdr(function, &info) == 0) continue;
      const size_t version = reinterpret_cast<size_t (*)()>(function)();
      const size_t rest = version % wanted.major_unit;
      return {wanted.name,
              fmt::format("{}.{}.{}", version / wanted.major_unit, rest / 100, rest % 100),
              info.dli_fname};
    }
  }
  return {wanted.name, "", ""};
}

CudaLibrary find_nccl() {
  for (const std::string& place : places("libnccl.so.2")) {
    try {
      const auto library = dist::load_nccl(place);
      return {"NCCL", dist::nccl_version_text(library->version), library->file};
    } catch (const std::exception&) {
      // Perhaps the next one.
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
