#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep::dist {

/// Positions of a ring's writer and reader, in bytes since the start, in memory that both share.
struct RingPositions {
  static constexpr uint64_t kNowhere = ~uint64_t{0};

  alignas(64) std::atomic<uint64_t> written{0};
  /// Value of `read` at which the reader must wake the sleeping writer.
  std::atomic<uint64_t> wanted{kNowhere};
  alignas(64) std::atomic<uint64_t> read{0};
};

/// The writing end of a ring of bytes, used by one thread. The reader may be in another process.
/// `data` has `capacity` bytes, a power of two, and must outlive both ends.
class RingWriter {
 public:
  RingWriter(RingPositions& positions, std::byte* data, size_t capacity);

  size_t capacity() const noexcept { return capacity_; }
  /// Returns the number of bytes that can be written. Loads the reader's position only if fewer
  /// than `enough` are known to be free.
  size_t room(size_t enough) noexcept;
  /// Writes bytes, for which there must be room. The reader sees them after `publish`.
  void write(const void* data, size_t bytes) noexcept;
  /// Skips bytes up to the next multiple of `unit`, a power of two.
  void align(size_t unit) noexcept { at_ = (at_ + unit - 1) & ~uint64_t{unit - 1}; }
  /// Makes written bytes visible to the reader; returns whether there were any.
  bool publish() noexcept;

  /// Makes the reader's `release` return true once there is room for `bytes`.
  void want(size_t bytes) noexcept;
  void stop_wanting() noexcept;

 private:
  RingPositions& positions_;
  std::byte* data_;
  size_t capacity_;
  uint64_t at_ = 0;  ///< position behind the last byte written
  uint64_t published_ = 0;
  uint64_t known_read_ = 0;
};

/// The reading end of a ring, used by one thread.
class RingReader {
 public:
  RingReader(RingPositions& positions, const std::byte* data, size_t capacity);

  /// Returns the number of bytes that can be read. Loads the writer's position only if fewer than
  /// `enough` are known.
  size_t available(size_t enough = 1) noexcept;
  /// Reads bytes, which must be available. Their space is free for the writer after `release`.
  void read(void* to, size_t bytes) noexcept;
  void skip(size_t bytes) noexcept { at_ += bytes; }
  void align(size_t unit) noexcept { at_ = (at_ + unit - 1) & ~uint64_t{unit - 1}; }
  /// Frees the space of bytes read; returns whether the writer waits for it and must be woken.
  bool release() noexcept;

 private:
  RingPositions& positions_;
  const std::byte* data_;
  size_t capacity_;
  uint64_t at_ = 0;
  uint64_t known_written_ = 0;
};

}  // namespace lockstep::dist
