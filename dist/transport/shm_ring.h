#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::dist {

/// How far writer and reader of a ring have come, in bytes since the start. In memory that both
/// share.
struct RingPositions {
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  alignas(64) std::atomic<uint64_t> written{0};
  /// What `read` must come to for the writer, which sleeps, to be woken.
  std::atomic<uint64_t> wanted{kNowhere};
  alignas(64) std::atomic<uint64_t> read{0};
};

/// The writing end of a ring of bytes: one thread's. The other end may be another process's. `data`
/// has `capacity` bytes, a power of two, and outlives both ends.
class RingWriter {
 public:
  RingWriter(RingPositions& positions, std::byte* data, size_t capacity);

  size_t capacity() const noexcept { return capacity_; }
  /// Bytes that can be written. Asks how far the reader is only where less than `enough` were known
  /// of.
  size_t room(size_t enough) noexcept;
  /// There must be room. The reader sees it after `publish`.
  void write(const void* data, size_t bytes) noexcept;
  /// Leaves bytes out, up to the next multiple of `unit`, a power of two.
  void align(size_t unit) noexcept { at_ = (at_ + unit - 1) & ~uint64_t{unit - 1}; }
  /// Whether there was anything to publish.
  bool publish() noexcept;

  /// Makes the reader's `release` tell when there is room for so many bytes.
  void want(size_t bytes) noexcept;
  void stop_wanting() noexcept;

 private:
  RingPositions& positions_;
  std::byte* data_;
  size_t capacity_;
  uint64_t at_ = 0;  ///< up to where bytes are written
  uint64_t published_ = 0;
  uint64_t known_read_ = 0;
};

/// The reading end.
class RingReader {
 public:
  RingReader(RingPositions& positions, const std::byte* data, size_t capacity);

  /// Bytes that can be read. Asks how far the writer is only where less than `enough` were known
  /// of.
  size_t available(size_t enough = 1) noexcept;
  /// They must be available. Their memory is the writer's again after `release`.
  void read(void* to, size_t bytes) noexcept;
  void skip(size_t bytes) noexcept { at_ += bytes; }
  void align(size_t unit) noexcept { at_ = (at_ + unit - 1) & ~uint64_t{unit - 1}; }
  /// Whether the writer sleeps until now, and must be woken.
  bool release() noexcept;

 private:
  RingPositions& positions_;
  const std::byte* data_;
  size_t capacity_;
  uint64_t at_ = 0;
  uint64_t known_written_ = 0;
};

}  // namespace lockstep::dist
