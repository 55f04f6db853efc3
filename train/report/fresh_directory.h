#pragma once

#include <filesystem>

namespace lockstep::train {

/// Removes the folder of a run that fails before it has written anything of its own, with the
/// folders above it that were made for it. Not thread-safe.
class FreshDirectory {
 public:
  /// Call before the folder is created. `path` is the folder, or one above it.
  explicit FreshDirectory(const std::filesystem::path& path);
  /// Unless `keep` was called: removes the folder if it did not exist before and holds nothing but
  /// run.lock. Ignores what the system refuses.
  ~FreshDirectory();
  FreshDirectory(const FreshDirectory&) = delete;
  FreshDirectory& operator=(const FreshDirectory&) = delete;

  /// Says which folder was created or found.
  void use(const std::filesystem::path& folder) { folder_ = folder; }
  /// The run has begun: nothing is removed.
  void keep() { kept_ = true; }

 private:
  std::filesystem::path first_missing_;  ///< the topmost folder that did not exist; may be empty
  std::filesystem::path folder_;
  bool kept_ = false;
};

}  // namespace lockstep::train
