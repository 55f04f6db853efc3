#pragma once

#include <filesystem>
#include <optional>
#include <utility>

#include "compile/native/library_cache.h"
#include "compile/native/native_source.h"
#include "compile/native/toolchain.h"

namespace lockstep::compiler {

/// The file of a compiled library or module: one of the user's cache, or one in a temporary folder,
/// which goes with the object.
class NativeFile {
 public:
  NativeFile(std::filesystem::path path, std::filesystem::path temporary_folder)
      : path_(std::move(path)), temporary_folder_(std::move(temporary_folder)) {}
  ~NativeFile();
  NativeFile(NativeFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_folder_(std::exchange(other.temporary_folder_, {})) {}
  NativeFile& operator=(NativeFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_folder_;  ///< empty: none
};

/// What the environment says of a build, read where a library is asked for.
struct BuildPlace {
  /// Where libraries are kept; nullopt: each is made for this process alone.
  std::optional<std::filesystem::path> cache = LibraryCache::usual_folder();
  ProcessEnvironment environment = {};
};

/// Returns the library or module that a source's compiler makes, from the cache if it was made
/// before, by whichever process. Processes of one machine compile in turn, so a job's ranks
/// compile a source once. Where the cache cannot be used the library is made for this process
/// alone. Throws Error if there is no compiler or it fails. Thread-safe.
NativeFile build_native(const NativeSource& source, const BuildLimits& limits = {},
                        const BuildPlace& place = {});

}  // namespace lockstep::compiler
