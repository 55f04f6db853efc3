#include "core/cuda/cupti.h"

#ifdef LS_HAS_CUPTI

#include <fmt/format.h>

#include <atomic>

namespace lockstep::cuda {

namespace {

std::atomic<CuptiLibrary*>& current_cupti() {
  // Never destroyed: CUPTI's thread may return a buffer while the process ends.
  static std::atomic<CuptiLibrary*> library = new CuptiLibrary([] { return load_cupti(); });
  return library;
}

}  // namespace

std::vector<std::string> cupti_files() {
  std::vector<std::string> files;
  for (const int major : {13, 12}) {
    const std::string name = fmt::format("libcupti.so.{}", major);
    for (const std::string& file : library_files(name)) files.push_back(file);
    files.push_back("/usr/local/cuda/extras/CUPTI/lib64/" + name);
  }
  return files;
}

LoadedCupti load_cupti() {
  return open_first("CUPTI", cupti_files(), "CUDA's CUPTI", [](const std::string& file) {
    return open_library(file, "cuptiActivityEnable", &read_cupti);
  });
}

LoadedCupti read_cupti(const std::string& file, const FindFunction& find) {
  LoadedCupti loaded;
  loaded.file = file;
  const std::string expected = "CUPTI of CUDA 12 or 13";
#define LS_CUPTI_FIND(name) LS_FIND_FUNCTION(loaded, find, name, expected)
  LS_CUPTI_FUNCTIONS(LS_CUPTI_FIND)
#undef LS_CUPTI_FIND
  return loaded;
}

CuptiLibrary& cupti() { return *current_cupti().load(); }
CuptiLibrary& set_cupti(CuptiLibrary& library) { return *current_cupti().exchange(&library); }

}  // namespace lockstep::cuda

#endif
