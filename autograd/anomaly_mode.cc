#include "autograd/anomaly_mode.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "autograd/graph_run.h"
#include "core/check.h"

namespace lockstep {

AnomalyModeGuard::AnomalyModeGuard(bool enabled, bool check_nan) noexcept
    : saved_(std::exchange(detail::anomaly_mode, {enabled, enabled && check_nan})) {}

AnomalyModeGuard::~AnomalyModeGuard() { detail::anomaly_mode = saved_; }

bool is_anomaly_enabled() noexcept { return detail::anomaly_mode.enabled; }
bool is_anomaly_check_nan_enabled() noexcept { return detail::anomaly_mode.check_nan; }

namespace {

/// The program or shared library that an address is in; null where unknown.
const void* object_of(void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

std::string function_name(const Dl_info& info) {
  if (info.dli_sname == nullptr) return "?";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status), &std::free);
  return status == 0 ? plain.get() : info.dli_sname;
}

std::string describe_frame(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return fmt::format("  at {}", fmt::ptr(address));
  const std::string_view path = info.dli_fname;
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  return fmt::format("  at {} ({}+{:#x})", function_name(info),
                     path.substr(path.find_last_of('/') + 1), offset);
}

}  // namespace

ForwardSite::ForwardSite() : parent(GraphRun::node_of_this_thread()) {
  std::array<void*, 64> found{};
  const int count = backtrace(found.data(), static_cast<int>(found.size()));
  // Where the library is an object of its own, its innermost calls say nothing about the program.
  static const int kHere = 0;
  const void* const library = object_of(const_cast<int*>(&kHere));
  int first = 0;
  while (first < count && object_of(found[static_cast<size_t>(first)]) == library) ++first;
  if (first == count) first = 0;
  frames.assign(found.begin() + first, found.begin() + count);
}

ForwardSite::~ForwardSite() { drop(std::move(parent)); }

std::string ForwardSite::describe() const {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < frames.size() && i < kMost; ++i) {
    text += (i == 0 ? "" : "\n") + describe_frame(frames[i]);
  }
  if (parent) {
    text += fmt::format("\nin a backward, by {}", parent->name());
    if (parent->forward_site() != nullptr) {
      text += ", which was recorded here:\n" + parent->forward_site()->describe();
    }
  }
  return text;
}

void Node::note_site() { site_ = std::make_shared<const ForwardSite>(); }

}  // namespace lockstep
