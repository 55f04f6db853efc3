#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/content_hash.h"

namespace lockstep::compiler {

/// A folder of libraries that were compiled while programs ran, for all processes of one user. Each
/// file ends with the hash of what comes before, so one that was damaged is not loaded but made
/// again. Files appear whole, so any number of processes may add to a folder at once.
class LibraryCache {
 public:
  /// What `list` tells of a file.
  struct Entry {
    std::filesystem::path file;
    uint64_t bytes = 0;
    std::chrono::seconds age{};  ///< since it was last used
    std::string what;            ///< NativeSource::what; "damaged" if the file cannot be used
  };

  /// Uses the folder, which is created with the first entry. Throws Error if it belongs to
  /// another user, or others may write into it: they could have code of theirs run here.
  explicit LibraryCache(std::filesystem::path folder);

  /// $LOCKSTEP_CACHE_DIR, else lockstep in $XDG_CACHE_HOME or in $HOME/.cache; nullopt if none of
  /// them is set.
  static std::optional<std::filesystem::path> usual_folder();

  /// The file of a key, if it is there and whole; that counts as a use.
  std::optional<std::filesystem::path> find(const ContentHash& key) const;
  /// Makes the compiled `library` the key's file, and returns where it lies. Throws Error if the
  /// folder takes no file.
  std::filesystem::path add(const ContentHash& key, const std::filesystem::path& library,
                            const std::string& what) const;
  /// A new folder inside of this one, where a library can be compiled. Throws Error.
  std::filesystem::path make_workplace() const;

  /// All entries, by name.
  std::vector<Entry> list() const;
  /// Removes entries that were not used for so long, damaged ones, and what processes left that
  /// were killed. Returns what went.
  std::vector<Entry> prune(std::chrono::seconds unused_for) const;

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path file_of(const ContentHash& key) const;

  std::filesystem::path folder_;
};

}  // namespace lockstep::compiler
