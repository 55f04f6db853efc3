#include "dist/nccl/nccl_library.h"

#include <dlfcn.h>

#include <string_view>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

/// Returns the path of the library that contains `function`.
std::string file_of(void* function, const std::string& otherwise) {
  Dl_info info{};
  const bool known = dladdr(function, &info) != 0 && info.dli_fname != nullptr;
  return known ? info.dli_fname : otherwise;
}

const char* or_empty(const char* text) { return text == nullptr ? "" : text; }

}  // namespace

std::string nccl_version_text(int version) {
  // Before 2.9, the major version was multiplied by 1000.
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int rest = version < 10000 ? version % 1000 : version % 10000;
  return fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

std::shared_ptr<const NcclLibrary> read_nccl(const std::string& file,
                                             const std::function<void*(const char*)>& find) {
  auto library = std::make_shared<NcclLibrary>();
  library->file = file;
  nccl::Functions& functions = library->functions;
  using nccl::Result;

  // Check the version first: it explains functions that an old library lacks.
  functions.ncclGetVersion =
      reinterpret_cast<decltype(functions.ncclGetVersion)>(find("ncclGetVersion"));
  LS_CHECK(functions.ncclGetVersion != nullptr, BackendError,
           "[nccl] {} has no ncclGetVersion: expected NCCL {} or newer, got another library.", file,
           nccl_version_text(NcclLibrary::kOldest));
  const Result got = functions.ncclGetVersion(&library->version);
  LS_CHECK(got == Result::kSuccess, BackendError,
           "[nccl] {} does not tell its version: ncclGetVersion gives {}.", file,
           static_cast<int>(got));
  LS_CHECK(library->version >= NcclLibrary::kOldest, BackendError,
           "[nccl] {} is too old: expected NCCL {} or newer, got {}. Install a newer one, or put "
           "its folder first in LD_LIBRARY_PATH.",
           file, nccl_version_text(NcclLibrary::kOldest), nccl_version_text(library->version));

#define LS_NCCL_FIND(name, result, arguments) \
  functions.name = reinterpret_cast<decltype(functions.name)>(find(#name));
#define LS_NCCL_REQUIRE(name, result, arguments)                                                \
  LS_NCCL_FIND(name, result, arguments)                                                         \
  LS_CHECK(functions.name != nullptr, BackendError,                                             \
           "[nccl] {} says that it is NCCL {}, but has no {}. Install NCCL {} or newer.", file, \
           nccl_version_text(library->version), #name, nccl_version_text(NcclLibrary::kOldest));
  LS_NCCL_FUNCTIONS(LS_NCCL_REQUIRE)
  LS_NCCL_NEWER_FUNCTIONS(LS_NCCL_FIND)
#undef LS_NCCL_REQUIRE
#undef LS_NCCL_FIND
  return library;
}

std::shared_ptr<const NcclLibrary> load_nccl(const std::string& file) {
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    throw BackendError(
        fmt::format("[nccl] {} cannot be loaded: {}. Install NCCL {} or newer, or put its folder "
                    "in LD_LIBRARY_PATH.",
                    file, or_empty(dlerror()), nccl_version_text(NcclLibrary::kOldest)));
  }
  const auto find = [opened](const char* name) { return dlsym(opened, name); };
  void* const known = find("ncclGetVersion");
  try {
    return read_nccl(known == nullptr ? file : file_of(known, file), find);
  } catch (...) {
    (void)dlclose(opened);
    throw;
  }
}

std::exception_ptr nccl_error(const NcclLibrary& library, nccl::Result result, const char* function,
                              nccl::Comm* comm) {
  std::string text = fmt::format("[nccl] {} failed: {}", function,
                                 or_empty(library.functions.ncclGetErrorString(result)));
  const std::string_view last = or_empty(library.functions.ncclGetLastError(comm));
  if (!last.empty()) text += fmt::format(" ({})", last);
  text += fmt::format(". {} is NCCL {}; NCCL_DEBUG=WARN makes it say more.", library.file,
                      nccl_version_text(library.version));
  if (result == nccl::Result::kRemoteError) return std::make_exception_ptr(PeerLostError(text));
  return std::make_exception_ptr(BackendError(text));
}

}  // namespace lockstep::dist
