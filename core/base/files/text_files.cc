#include "core/base/files/text_files.h"

#include <glob.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "core/base/check.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

void add_files(const fs::path& path, std::vector<fs::path>& files) {
  if (!fs::is_directory(path)) {
    files.push_back(path);
    return;
  }
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(path, fs::directory_options::follow_directory_symlink,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (hidden(entry->path())) {
      if (entry->is_directory()) entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      found.push_back(entry->path());
    }
  }
  LS_CHECK(!error, DataError, "[data] {}: {}.", path.string(), error.message());
  std::ranges::sort(found);
  files.insert(files.end(), found.begin(), found.end());
}

std::vector<fs::path> matches(const std::string& pattern) {
  glob_t found{};
  // Without GLOB_NOSORT, glob() sorts by bytes in the C locale, which this program never changes.
  const int status = ::glob(pattern.c_str(), GLOB_BRACE, nullptr, &found);
  std::vector<fs::path> paths;
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

std::vector<fs::path> find_files(const std::string& pattern) {
  std::vector<fs::path> files;
  std::error_code error;
  const fs::file_status status = fs::status(pattern, error);
  if (fs::exists(status)) {
    add_files(pattern, files);
    LS_CHECK(!files.empty(), DataError, "[data] {}: there is no file in this folder.", pattern);
    return files;
  }
  if (pattern.find_first_of("*?[{") != std::string::npos) {
    for (const fs::path& path : matches(pattern)) add_files(path, files);
    LS_CHECK(!files.empty(), DataError, "[data] {}: no file matches this pattern.", pattern);
    return files;
  }
  throw DataError(fmt::format("[data] {}: {}.", pattern,
                              error ? error.message() : std::generic_category().message(ENOENT)));
}

}  // namespace lockstep
