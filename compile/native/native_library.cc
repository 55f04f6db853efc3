#include "compile/native/native_library.h"

#include <dlfcn.h>

#include <utility>

#include "core/base/check.h"

namespace lockstep::compiler {

NativeLibrary::NativeLibrary(const std::filesystem::path& file)
    : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* const why = ::dlerror();
  LS_CHECK(false, Error, "[compile] {} cannot be loaded: {}.", file.string(),
           why != nullptr ? why : "the loader gives no reason");
}

NativeLibrary::~NativeLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

NativeLibrary::NativeLibrary(NativeLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}

NativeLibrary& NativeLibrary::operator=(NativeLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

void* NativeLibrary::find(const std::string& name) const {
  void* const found = ::dlsym(handle_, name.c_str());
  LS_CHECK(found != nullptr, Error, "[compile] a compiled library has no {}.", name);
  return found;
}

}  // namespace lockstep::compiler
