#pragma once

#include <cstdint>

namespace lockstep {

/// Whether the live bytes of a stream are rising, as in a forward pass, or falling, as in a
/// backward pass. Changes of less than a tenth of the last maximum do not count. Not thread-safe.
class LiveTrend {
 public:
  /// Notes the live bytes at a request and returns whether they are falling.
  bool is_falling(int64_t live) noexcept {
    if (falling_) {
      if (live < lowest_) lowest_ = live;
      if (live > lowest_ + highest_ / kShare) {
        falling_ = false;
        highest_ = live;
      }
    } else if (live > highest_) {
      highest_ = live;
    } else if (live < highest_ - highest_ / kShare) {
      falling_ = true;
      lowest_ = live;
    }
    return falling_;
  }
  /// Forgets the past: the live bytes count as rising.
  void reset() noexcept { *this = {}; }

 private:
  // On generated traces of gradient accumulation, shares from 1/16 to 1/8 keep reserved memory
  // close to what is live. Smaller changes also occur within forward passes of real models.
  static constexpr int64_t kShare = 10;

  bool falling_ = false;
  int64_t highest_ = 0;  ///< since the bytes began to rise
  int64_t lowest_ = 0;   ///< since they began to fall
};

}  // namespace lockstep
