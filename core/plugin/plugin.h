#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

/// A loaded plug-in: a shared library that defines operators and overrides kernels of others
/// through core/plugin/plugin_abi.h. The destructor unregisters both and unloads the library.
/// References to its operators stay valid, but calls through them, and backward passes through
/// their nodes, throw.
///
/// Loading and destroying must not overlap with calls of the operators concerned, nor with each
/// other for the same library.
class Plugin {
 public:
  Plugin(Plugin&& other) noexcept;
  Plugin& operator=(Plugin&& other) noexcept;
  ~Plugin();

  /// Absolute path of the library.
  const std::string& path() const;
  /// Version of core/plugin/plugin_abi.h that the library was compiled with.
  uint32_t abi_version() const;
  /// Names of the operators that it defines, with their forms, and of those that it overrides.
  const std::vector<std::string>& defined() const;
  const std::vector<std::string>& overridden() const;

 private:
  friend Plugin load_library(const std::string& path);
  struct Library;
  explicit Plugin(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

/// Loads a plug-in; on failure nothing stays registered. Throws DataError if there is no such file,
/// DispatchError if it is not a plug-in (a symbol is missing, or it was made for a newer version of
/// the ABI) or registers something malformed, and any error that the plug-in reports. The message
/// starts with the path.
[[nodiscard]] Plugin load_library(const std::string& path);

}  // namespace lockstep
