#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

/// A loaded plug-in: a shared library that defines operators and overrides kernels of others
/// through core/plugin/plugin_abi.h. Destroying it takes both back and unloads the library;
/// references to its operators stay valid, and calls through them and backwards through their nodes
/// throw.
///
/// Loading and destroying must not overlap with calls of the operators concerned, nor with one
/// another for one library.
class Plugin {
 public:
  Plugin(Plugin&& other) noexcept;
  Plugin& operator=(Plugin&& other) noexcept;
  ~Plugin();

  /// Absolute path of the library.
  const std::string& path() const;
  /// Version of core/plugin/plugin_abi.h that it was compiled with.
  uint32_t abi_version() const;
  /// Names of the operators that it defines, with their forms, and of those it overrides.
  const std::vector<std::string>& defined() const;
  const std::vector<std::string>& overridden() const;

 private:
  friend Plugin load_library(const std::filesystem::path& path);
  struct Library;
  explicit Plugin(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

/// Loads a plug-in. When it fails nothing stays registered. Throws DataError when there is no such
/// file, DispatchError when it is no plug-in (a name is missing, or it was made for a newer version
/// of the ABI) or what it registers is malformed, and what the plug-in itself reports; the message
/// starts with the path.
[[nodiscard]] Plugin load_library(const std::filesystem::path& path);

}  // namespace lockstep
