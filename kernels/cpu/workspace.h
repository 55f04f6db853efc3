#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace lockstep::cpu {

/// A cache-line aligned buffer that grows to the largest size requested and is kept: memory that a
/// kernel reuses between calls. Not thread-safe.
class Workspace {
 public:
  /// Returns at least `count` bytes with unspecified contents, valid until the next call. May be
  /// null if no bytes were ever requested.
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

/// What threads keep workspaces for.
enum class WorkspaceUse : uint8_t {
  kAttentionForward,
  kAttentionBackward,
  kConvScratch,
  kConvImage,
  kConvMap,
  kConvPackedWeight,
  kConvWeight,
  kConvSums,
  kLoopProgram,
  kOrderedProduct,
  kPlaneSums,
  kProductScratch,
  kTileSums,
  kWideProduct,
  kWinograd,
  kWinogradBlock,
};
inline constexpr int kWorkspaceUses = 16;

/// This thread's workspace for one use. They are one thread-local object: where a running program
/// loads the library, as Python does, thread-locals share a few hundred bytes
/// (tests/core/base/thread_locals_test.cc).
Workspace& thread_workspace(WorkspaceUse use);

}  // namespace lockstep::cpu
