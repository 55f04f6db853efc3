#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace lockstep::train {

/// Read-only tokens in memory or in a mapped file, 1, 2 or 4 little-endian bytes each. Cheap to
/// copy: copies share the memory and keep it alive. Thread-safe.
class TokenArray {
 public:
  TokenArray() = default;
  /// Views `bytes`, whose size must be a multiple of `width` (1, 2 or 4), at any alignment. `owner`
  /// keeps them alive; null if the caller does.
  TokenArray(std::span<const std::byte> bytes, int width, std::shared_ptr<const void> owner);
  /// A copy of `tokens`, 2 bytes each if all are below 65536.
  static TokenArray copy_of(std::span<const uint32_t> tokens);

  int64_t size() const { return static_cast<int64_t>(bytes_.size()) / width_; }
  int width() const { return width_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Bytes of a token in files, which hold none of 1 byte.
  int stored_width() const { return width_ == 1 ? 2 : width_; }
  /// The tokens as files hold them, `stored_width` bytes each: `bytes`, or a copy in `room`.
  std::span<const std::byte> stored(std::vector<uint16_t>& room) const;

  uint32_t operator[](int64_t index) const {
    if (width_ == 1) return load<uint8_t>(index);
    return width_ == 2 ? load<uint16_t>(index) : load<uint32_t>(index);
  }
  /// Throws DataError if tokens of a mapped file could not be read: they read as zeros. Called by
  /// `read`; users of `bytes` and `operator[]` call it after them.
  void check() const;
  /// Writes tokens first, first + 1, ... until `out` is full, and returns the largest.
  int64_t read(int64_t first, std::span<int64_t> out) const;
  /// The tokens [first, first + count), sharing the memory.
  TokenArray slice(int64_t first, int64_t count) const;

 private:
  template <class T>
  T load(int64_t index) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  int64_t read_as(int64_t first, std::span<int64_t> out) const;

  std::span<const std::byte> bytes_;
  int width_ = 2;
  std::shared_ptr<const void> owner_;
};

}  // namespace lockstep::train
