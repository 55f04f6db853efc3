#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// Return addresses of the calls that led here, innermost first. Taking one costs about 0.1 us a
/// frame; names are looked up only when they are asked for. A plain value.
class CallStack {
 public:
  static constexpr int kMostFrames = 24;

  CallStack() = default;
  /// Of the calling thread, without `skip` innermost functions besides this one.
  static CallStack capture(int skip = 0) noexcept;

  bool empty() const noexcept { return count_ == 0; }
  int size() const noexcept { return count_; }

  struct Frame {
    std::string function;  ///< demangled; "??" where the binary keeps no name
    std::string file;      ///< the program or library that it is in
    uintptr_t offset = 0;  ///< of the address in that file, for addr2line
  };
  std::vector<Frame> frames() const;
  /// A line for each frame, four spaces and its `to_string`.
  std::string describe() const;
  /// Without the innermost frames that are in this library; all where none is outside,
  /// or the library is part of the program.
  CallStack outside_library() const;
  /// The first frame of `outside_library` as text; "" for an empty stack.
  std::string call_site() const;

  /// By addresses, in no order that means anything.
  friend auto operator<=>(const CallStack&, const CallStack&) = default;

 private:
  std::array<void*, kMostFrames> addresses_{};
  int count_ = 0;
};

/// "function (library+0x12ab)".
std::string to_string(const CallStack::Frame& frame);

}  // namespace lockstep
