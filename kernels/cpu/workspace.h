#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace lockstep::cpu {

/// Room at the start of a cache line that grows to the largest size asked for and stays: as a
/// thread_local, memory that a kernel needs again and again. Not thread-safe.
class Workspace {
 public:
  /// At least `count` bytes with no particular contents, valid until the next call. Null for none
  /// if none were ever asked for.
  void* room(size_t count) {
    if (count > size_) {
      bytes_.reset();
      size_ = 0;
      bytes_.reset(new (kLine) std::byte[count]);
      size_ = count;
    }
    return bytes_.get();
  }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, kLine); }
  };
  std::unique_ptr<std::byte, Delete> bytes_;
  size_t size_ = 0;
};

}  // namespace lockstep::cpu
