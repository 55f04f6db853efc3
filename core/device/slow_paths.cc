#include "core/device/slow_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/base/log_text.h"
#include "core/base/mutex.h"

namespace lockstep {

namespace {

struct TakenPaths {
  Mutex lock;
  std::vector<SlowPath> paths LS_GUARDED_BY(lock);
};
TakenPaths& taken_paths() {
  // Never freed: a kernel may be the last thing that a program runs.
  static auto* const instance = new TakenPaths;
  return *instance;
}

}  // namespace

void count_slow_path(std::string_view what, FunctionRef<std::string()> why) {
  TakenPaths& taken = taken_paths();
  const MutexLock guard(taken.lock);
  const auto known = std::ranges::find(taken.paths, what, &SlowPath::what);
  if (known != taken.paths.end()) {
    ++known->calls;
    return;
  }
  taken.paths.push_back({std::string(what), why(), 1});
  write_log(stderr, fmt::format("slow: {}: {}\n", what, taken.paths.back().why));
}

std::vector<SlowPath> slow_paths() {
  const MutexLock guard(taken_paths().lock);
  return taken_paths().paths;
}

}  // namespace lockstep
