#pragma once

#include <filesystem>
#include <string>

namespace lockstep::compiler {

/// A shared library that is loaded while the object exists. Its symbols are seen by nobody else.
class NativeLibrary {
 public:
  /// Throws Error with the loader's reason.
  explicit NativeLibrary(const std::filesystem::path& file);
  ~NativeLibrary();
  NativeLibrary(NativeLibrary&& other) noexcept;
  NativeLibrary& operator=(NativeLibrary&& other) noexcept;

  /// The address of a function or object. Throws Error if the library has none of that name.
  void* find(const std::string& name) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace lockstep::compiler
