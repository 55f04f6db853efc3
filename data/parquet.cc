#include "data/parquet.h"

#include <dlfcn.h>

#include <memory>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "data/parquet/parquet_module.h"

namespace lockstep::train {
namespace {

/// The folders of the library that this function is in, or of the program, and of libraries beside
/// it.
std::vector<std::filesystem::path> module_folders() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&module_folders), &info) == 0) return {};
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::canonical(info.dli_fname, failed);
  if (failed) return {};
  return {own.parent_path(), own.parent_path().parent_path() / "lib"};
}

struct Loaded {
  const ParquetModule* module = nullptr;
  std::string problem;  ///< why there is none
};

Loaded load() {
  for (const std::filesystem::path& folder : module_folders()) {
    const std::filesystem::path file = folder / kParquetModuleFile;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    // Never closed: Arrow's threads may outlive everything.
    void* const opened = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return {nullptr, fmt::format("it cannot be loaded: {}", ::dlerror())};
    const auto* const module = static_cast<const ParquetModule*>(::dlsym(opened, kParquetModule));
    if (module != nullptr && module->version == kParquetModuleVersion) return {module, ""};
    return {nullptr, fmt::format("{} is of another version of Lockstep", file.string())};
  }
  return {nullptr, "this build has none"};
}

const Loaded& loaded() {
  static const Loaded kLoaded = load();
  return kLoaded;
}

}  // namespace

bool is_parquet(const std::filesystem::path& path) { return path.extension() == ".parquet"; }

bool has_parquet() { return loaded().module != nullptr; }

ByteSource parquet_rows(const std::filesystem::path& path,
                        const std::vector<std::string>& columns) {
  const ParquetModule* const module = loaded().module;
  LS_CHECK(module != nullptr, DataError,
           "[data] {}: expected the module that reads Parquet files ({}), but {}. Build Lockstep "
           "where Arrow is found (docs/install.md), or make JSON lines of the file.",
           path.string(), kParquetModuleFile, loaded().problem);
  const RegularFile regular(path, kMostTextBytes);  // says what else it may be
  std::vector<const char*> names;
  for (const std::string& each : columns) names.push_back(each.c_str());
  const char* problem = "";
  void* const opened = module->open(path.c_str(), names.data(), names.size(), &problem);
  LS_CHECK(opened != nullptr, DataError, "[data] {}: {}.", path.string(), problem);
  std::shared_ptr<void> rows(opened, module->close);
  return [module, rows, file = path.string()](std::span<std::byte> into) {
    const char* why = "";
    const size_t count = module->read(rows.get(), into.data(), into.size(), &why);
    LS_CHECK(count != SIZE_MAX, DataError, "[data] {}: {}.", file, why);
    return count;
  };
}

}  // namespace lockstep::train
