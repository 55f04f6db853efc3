#include "train/report/fresh_directory.h"

#include <system_error>

namespace lockstep::train {

namespace fs = std::filesystem;

FreshDirectory::FreshDirectory(const fs::path& path) {
  std::error_code ignored;
  for (fs::path at = fs::absolute(path, ignored).lexically_normal(); !at.empty();
       at = at.parent_path()) {
    if (!at.has_filename()) continue;  // "a/b/" is "a/b"
    if (fs::exists(fs::symlink_status(at, ignored)) || at == at.parent_path()) break;
    first_missing_ = at;
  }
}

FreshDirectory::~FreshDirectory() {
  if (kept_ || folder_.empty() || first_missing_.empty()) return;
  std::error_code failed;
  const fs::path folder = fs::absolute(folder_, failed).lexically_normal();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().filename() != "run.lock") return;
  }
  if (failed) return;
  fs::remove(folder / "run.lock", failed);
  // Folders that hold something else stay.
  for (fs::path at = folder.has_filename() ? folder : folder.parent_path();
       fs::remove(at, failed) && at != first_missing_; at = at.parent_path()) {
  }
}

}  // namespace lockstep::train
