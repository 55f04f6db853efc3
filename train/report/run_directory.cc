#include "train/report/run_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <initializer_list>
#include <string>
#include <system_error>

#include "core/base/check.h"
#include "core/base/files/folders.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &parts)};
}

bool any_exists(std::initializer_list<fs::path> files) {
  return std::ranges::any_of(files, [](const fs::path& file) {
    std::error_code failed;
    return fs::exists(fs::symlink_status(file, failed));
  });
}

}  // namespace

RunDirectory RunDirectory::create_new(std::string_view name, const fs::path& parent) {
  LS_CHECK(!name.empty() && name.find('/') == name.npos, ConfigError,
           "[run directory] \"{}\" is no name for a run: expected a name without slashes.", name);
  create_folders(parent, "run directory");
  const fs::path stamped = parent / fmt::format("{}-{}", name, time_stamp());
  fs::path path = stamped;
  // Creating a folder is atomic: only one process succeeds, so two runs never share one.
  for (int attempt = 2;; ++attempt) {
    std::error_code failed;
    if (fs::create_directory(path, failed)) {
      sync_folder(parent);
      return RunDirectory(path);
    }
    LS_CHECK(!failed || failed == std::errc::file_exists, DataError,
             "[run directory] {} cannot be created: {}.", path.string(), failed.message());
    path = stamped;
    path += fmt::format("-{}", attempt);
  }
}

RunDirectory RunDirectory::create_at(const fs::path& path, Existing existing) {
  create_folders(path, "run directory");
  const RunDirectory directory(path);
  std::error_code failed;
  const bool empty = fs::is_empty(path, failed);
  LS_CHECK(
      existing == Existing::kContinue || empty, ConfigError,
      "[run directory] {} is not empty: a fresh run needs a folder of its own. Name another, or "
      "remove this one first.",
      path.string());
  const int code = ::access(path.c_str(), W_OK | X_OK) == 0 ? 0 : errno;
  LS_CHECK(code == 0, DataError, "[run directory] {} cannot be written to: {}.", path.string(),
           std::generic_category().message(code));
  return directory;
}

RunDirectory RunDirectory::open(const fs::path& path) {
  const RunDirectory directory(path);
  LS_CHECK(directory.holds_run(), DataError, "[run directory] {} holds no run: expected {} in it.",
           path.string(), directory.config().filename().string());
  return directory;
}

bool RunDirectory::is_run(const fs::path& path) {
  const RunDirectory directory(path);
  return any_exists({directory.environment(), directory.metrics(), directory.lock()});
}

bool RunDirectory::holds_run() const {
  return any_exists({config(), environment(), metrics(), weights(), model_config()});
}

}  // namespace lockstep::train
