#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "core/base/object_pool.h"
#include "core/base/ref.h"
#include "core/tensor/allocator.h"
#include "core/tensor/device.h"

namespace lockstep {

/// The bytes that a tensor and its views share, and the number of in-place changes to them.
///
/// Reference counting and the version are thread-safe; the bytes are not guarded. A slot of a
/// larger arena is a separate Storage that keeps the arena alive, so that its version counts only
/// its own changes.
class Storage : public RefCounted, public Pooled<Storage> {
 public:
  /// Allocates uninitialised memory for use on the device's current stream.
  Storage(size_t bytes, Device device)
      : block_(lockstep::allocator(device).allocate(bytes, current_stream(device))),
        bytes_(bytes),
        device_(device) {}
  /// A window of `bytes` bytes that starts `offset` bytes into `parent`. It cannot be resized.
  Storage(Ref<Storage> parent, size_t offset, size_t bytes)
      : block_{parent->place(offset), bytes, nullptr, nullptr},
        bytes_(bytes),
        device_(parent->device()),
        parent_(std::move(parent)) {}
  /// Borrows memory that the caller owns and must keep alive. It cannot be resized.
  Storage(void* borrowed, size_t bytes, Device device)
      : block_{borrowed, bytes, nullptr, nullptr}, bytes_(bytes), device_(device) {}
  /// Takes ownership of a block and frees it with its allocator: pinned memory, for example.
  Storage(const Block& block, Device device)
      : block_(block), bytes_(block.bytes), device_(device) {}
  ~Storage() {
    if (block_.owner != nullptr) block_.owner->free(block_);
  }

  void* data() const noexcept { return block_.data; }
  size_t bytes() const noexcept { return bytes_; }
  Device device() const noexcept { return device_; }
  const Block& block() const noexcept { return block_; }
  /// The arena that this is a window of; null if it is none.
  const Storage* parent() const noexcept { return parent_.get(); }

  /// Makes this window, and with it all tensors and views over it, one of `parent` that starts
  /// `offset` bytes into it. The caller vouches for the contents: the version stays. For memory
  /// that comes and goes while a graph refers to it: sharded parameters. Not thread-safe.
  void place_window(Ref<Storage> parent, size_t offset) noexcept;
  /// Leaves this window without memory, so that what it was part of can be freed. Until it is
  /// placed again its size and device are as before, and asking for an element's address throws
  /// DeviceError with the text `why`.
  void take_window_away(const std::string& why);
  /// Called where there is no address: null if there is no memory because there are no elements or
  /// the device is meta. Throws DeviceError if the window was taken away.
  void* no_address() const;

  /// Number of in-place changes so far, through any view.
  uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

  /// Marks the memory as used by `stream`, too: it is not reused before the work that is queued
  /// there when the storage is freed has finished (Allocator::record_stream). Not needed for the
  /// stream that the memory was allocated for.
  void record_stream(const Stream& stream) const;
  /// Marks the memory as used by the work that is queued on `stream` now (Allocator::record_use).
  void record_use(const Stream& stream) const;
  /// Whether one of these two was called: work on another stream may still read the memory.
  bool is_recorded() const noexcept { return recorded_.load(std::memory_order_relaxed); }
  /// Whether the memory is this storage's alone: neither borrowed nor part of an arena.
  bool owns_memory() const noexcept { return block_.owner != nullptr; }

  /// Changes the size, keeping the common prefix. Throws DeviceError on a window of an arena and on
  /// borrowed memory.
  void resize(size_t bytes);

 private:
  /// Address at `offset`; null if there is no memory (meta).
  void* place(size_t offset) const noexcept {
    return block_.data == nullptr ? nullptr : static_cast<std::byte*>(block_.data) + offset;
  }

  Block block_;
  size_t bytes_;
  Device device_;
  std::atomic<uint32_t> version_{0};
  mutable std::atomic<bool> recorded_{false};
  Ref<Storage> parent_;
  std::unique_ptr<const std::string> why_away_;  ///< set once the window has been taken away
};

}  // namespace lockstep
