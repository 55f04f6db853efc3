#include "core/base/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/base/check.h"

namespace lockstep {

namespace {

/// Address inside the call instruction that returns to `address`: a call may be the last
/// instruction of its function.
const void* call_before(void* address) { return static_cast<const char*>(address) - 1; }

/// Base address of the program or shared library that contains `address`; null if unknown.
const void* object_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

const void* this_library() {
  static constexpr char kHere = 0;
  return object_of(&kHere);
}

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? plain.get() : name;
}

CallStack::Frame frame_of(void* address) {
  const void* call = call_before(address);
  Dl_info info{};
  if (dladdr(call, &info) == 0) return {"??", "??", reinterpret_cast<uintptr_t>(call)};
  return {info.dli_sname != nullptr ? demangled(info.dli_sname) : "??",
          info.dli_fname != nullptr ? info.dli_fname : "??",
          static_cast<uintptr_t>(static_cast<const char*>(call) -
                                 static_cast<const char*>(info.dli_fbase))};
}

}  // namespace

__attribute__((noinline)) CallStack CallStack::capture(int skip) noexcept {
  constexpr int kMostSkipped = 40;
  constexpr int kOwn = 4;  // frames of this function and of what a sanitizer puts below it
  std::array<void*, kMostFrames + kMostSkipped + kOwn> found;
  skip = std::clamp(skip, 0, kMostSkipped);
  const int count = backtrace(found.data(), kMostFrames + skip + kOwn);
  const auto last_own = found.begin() + std::min(count, kOwn);
  const auto caller = std::find(found.begin(), last_own, __builtin_return_address(0));
  int first = (caller != last_own ? static_cast<int>(caller - found.begin()) : 1) + skip;
  CallStack stack;
  for (; first < count && stack.count_ < kMostFrames; ++first) {
    stack.addresses_[static_cast<size_t>(stack.count_++)] = found[static_cast<size_t>(first)];
  }
  return stack;
}

std::string to_string(const CallStack::Frame& frame) {
  const std::string_view path = frame.file;
  return fmt::format("{} ({}+{:#x})", frame.function, path.substr(path.find_last_of('/') + 1),
                     frame.offset);
}

CallStack CallStack::outside_library() const {
  const void* const library = this_library();
  // A library linked into the program has the same base address as the program's own code.
  if (library == object_of(reinterpret_cast<void*>(getauxval(AT_ENTRY)))) return *this;
  int first = 0;
  while (first < count_ &&
         object_of(call_before(addresses_[static_cast<size_t>(first)])) == library) {
    ++first;
  }
  if (first == 0 || first == count_) return *this;
  CallStack rest;
  rest.count_ = count_ - first;
  std::copy_n(addresses_.begin() + first, rest.count_, rest.addresses_.begin());
  return rest;
}

std::vector<CallStack::Frame> CallStack::frames() const {
  KnownFrames none;
  return frames(none);
}

std::vector<CallStack::Frame> CallStack::frames(KnownFrames& known) const {
  std::vector<Frame> frames;
  frames.reserve(static_cast<size_t>(count_));
  for (int i = 0; i < count_; ++i) {
    void* const address = addresses_[static_cast<size_t>(i)];
    const auto [place, is_new] = known.try_emplace(address);
    if (is_new) place->second = frame_of(address);
    frames.push_back(place->second);
  }
  return frames;
}

std::string CallStack::describe() const {
  std::string text;
  for (const Frame& frame : frames()) {
    text += (text.empty() ? "    " : "\n    ") + to_string(frame);
  }
  return text;
}

std::string CallStack::call_site() const {
  const CallStack outside = outside_library();
  return outside.empty() ? "" : to_string(frame_of(outside.addresses_[0]));
}

}  // namespace lockstep
