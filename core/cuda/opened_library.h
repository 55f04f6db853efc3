#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "core/base/cuda_library_files.h"
#include "core/base/mutex.h"

namespace lockstep::cuda {

// Loading of NVIDIA libraries that nothing links with: each is opened on first use, so that
// programs start on machines without it, and tests can provide tables of their own.

/// A usable table of a library's functions, or the reason why there is none.
template <class Functions>
struct OpenedLibrary {
  Functions functions;
  size_t version = 0;  ///< 130100 is 13.1.0
  std::string file;    ///< path at which it was found
  std::string reason;  ///< why there is none, without a full stop; "" if there is one

  static OpenedLibrary none(std::string reason) {
    OpenedLibrary none;
    none.reason = std::move(reason);
    return none;
  }
};

/// Returns a function's address by name, or null.
using FindFunction = std::function<void*(const char* name)>;

/// Formats a version: "13.1.0" for 130100.
std::string version_text(size_t version);

/// Opens the first of `files` that `open(file)` can use.
template <class Open>
auto open_first(const char* name, std::span<const std::string> files, const std::string& advice,
                const Open& open) {
  std::string reasons;
  for (const std::string& file : files) {
    auto opened = open(file);
    if (opened.reason.empty()) return opened;
    reasons += (reasons.empty() ? "" : "; ") + opened.reason;
  }
  return decltype(open(std::string()))::none(std::string(name) + " was not found (" + reasons +
                                             "). Install " + advice +
                                             ", or put its folder in LOCKSTEP_CUDA_LIBRARIES");
}

/// Opens this file; it stays open until the process ends if `read(file, find)` accepts it. The
/// address of `any_function` tells which file the system found.
template <class Read>
auto open_library(const std::string& file, const char* any_function, const Read& read) {
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const FindFunction find = [opened](const char* name) { return dlsym(opened, name); };
  if (opened == nullptr) {
    const char* const why = dlerror();
    return decltype(read(file, find))::none(why == nullptr ? file + " cannot be opened" : why);
  }
  auto library = read(file_of_function(find(any_function), file), find);
  if (!library.reason.empty()) dlclose(opened);
  return library;
}

/// A library that is opened on first use. Thread-safe.
template <class Functions>
class LazyLibrary {
 public:
  using Loader = std::function<OpenedLibrary<Functions>()>;

  explicit LazyLibrary(Loader load) : load_(std::move(load)) {}
  LazyLibrary(const LazyLibrary&) = delete;
  LazyLibrary& operator=(const LazyLibrary&) = delete;

  const OpenedLibrary<Functions>& loaded() {
    if (const auto* known = published_.load(std::memory_order_acquire)) return *known;
    const MutexLock lock(mutex_);
    if (published_.load(std::memory_order_relaxed) == nullptr) {
      loaded_ = load_();
      published_.store(&loaded_, std::memory_order_release);
    }
    return *published_.load(std::memory_order_relaxed);
  }

 private:
  Loader load_;
  std::atomic<const OpenedLibrary<Functions>*> published_{nullptr};  ///< null: not loaded yet
  Mutex mutex_;
  OpenedLibrary<Functions> loaded_ LS_GUARDED_BY(mutex_);  ///< does not change once published
};

}  // namespace lockstep::cuda

/// Stores a function's address in `library.functions`, or returns from the calling function with
/// the reason why it is missing; `expected` names the versions that have it.
#define LS_FIND_FUNCTION(library, find, name, expected)                                     \
  library.functions.name = reinterpret_cast<decltype(library.functions.name)>(find(#name)); \
  if (library.functions.name == nullptr) {                                                  \
    return library.none(library.file + " has no " #name ": expected " + expected);          \
  }
