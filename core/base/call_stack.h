#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep {

/// Return addresses of the active calls, innermost first. Capturing one costs about 0.1 us a frame;
/// names are looked up only on request. A plain value.
class CallStack {
 public:
  static constexpr int kMostFrames = 24;  ///< bounds the size of the value; outer frames are cut

  CallStack() = default;
  /// Captures the calling thread's stack, without this function and the `skip` innermost ones above
  /// it.
  static CallStack capture(int skip = 0) noexcept;

  bool empty() const noexcept { return count_ == 0; }
  int size() const noexcept { return count_; }

  struct Frame {
    std::string function;  ///< demangled; "??" where the binary keeps no name
    std::string file;      ///< program or library that contains it
    uintptr_t offset = 0;  ///< offset of the address in that file, for addr2line
  };
  std::vector<Frame> frames() const;
  /// Frames by return address. A look-up takes microseconds, and many stacks have few addresses.
  using KnownFrames = std::unordered_map<const void*, Frame>;
  /// Does the same, but looks up only what `known` lacks, and adds it.
  std::vector<Frame> frames(KnownFrames& known) const;
  /// One line for each frame: four spaces and its `to_string`.
  std::string describe() const;
  /// The stack without the innermost frames that are in this library. Returns the whole stack if no
  /// frame is outside, or if the library is linked into the program.
  CallStack outside_library() const;
  /// The first frame of `outside_library` as text; "" for an empty stack.
  std::string call_site() const;

  /// Compares the addresses; the order has no meaning.
  friend auto operator<=>(const CallStack&, const CallStack&) = default;

 private:
  std::array<void*, kMostFrames> addresses_{};
  int count_ = 0;
};

/// "function (library+0x12ab)".
std::string to_string(const CallStack::Frame& frame);

}  // namespace lockstep
