#include "core/base/files/folders.h"

#include <fcntl.h>

#include <system_error>

#include "core/base/check.h"
#include "core/base/files/file_descriptor.h"

namespace lockstep {

namespace fs = std::filesystem;

namespace {

/// Returns the reason why a folder cannot be there, if it cannot.
std::error_code create_missing(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::is_directory(status)) return {};
  if (fs::exists(status)) return std::make_error_code(std::errc::not_a_directory);
  if (status.type() != fs::file_type::not_found) return failed;
  const fs::path parent =
      path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  if (!parent.empty()) {
    if (const std::error_code of_parent = create_missing(parent)) return of_parent;
  }
  if (fs::create_directory(path, failed)) sync_folder(parent.empty() ? "." : parent);
  return failed;
}

}  // namespace

void create_folders(const fs::path& path, std::string_view subject) {
  const std::error_code failed = create_missing(path);
  LS_CHECK(!failed, DataError, "[{}] {} cannot be created: {}.", subject, path.string(),
           failed.message());
}

void sync_folder(const fs::path& path) { FileDescriptor(path, O_RDONLY | O_DIRECTORY).sync(); }

bool name_exists(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  LS_CHECK(status.type() != fs::file_type::none, DataError, "[stat] {}: {}.", path.string(),
           failed.message());
  return fs::exists(status);
}

}  // namespace lockstep
