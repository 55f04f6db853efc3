#include "core/base/cuda_library_files.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace lockstep::cuda {

std::vector<std::string> library_files(const std::string& name) {
  std::vector<std::string> files;
  const char* const list = std::getenv("LOCKSTEP_CUDA_LIBRARIES");
  std::string_view rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) files.push_back(std::string(rest.substr(0, end)) + "/" + name);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  files.push_back(name);
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') files.push_back(std::string(value) + "/lib64/" + name);
  }
  files.push_back("/usr/local/cuda/lib64/" + name);
  return files;
}

std::vector<std::string> library_files(const std::string& name, int newest, int oldest) {
  std::vector<std::string> files;
  for (int major = newest; major >= oldest; --major) {
    for (std::string& file : library_files(name + "." + std::to_string(major))) {
      files.push_back(std::move(file));
    }
  }
  return files;
}

std::string file_of_function(void* function, const std::string& otherwise) {
  Dl_info info{};
  const bool known =
      function != nullptr && dladdr(function, &info) != 0 && info.dli_fname != nullptr;
  return known ? info.dli_fname : otherwise;
}

}  // namespace lockstep::cuda
