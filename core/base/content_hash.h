#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// 128-bit hash; different bytes give different hashes for all practical purposes. Guards against
/// corruption and mix-ups, not against an adversary.
struct ContentHash {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const ContentHash&, const ContentHash&) = default;

  /// 32 hexadecimal digits.
  std::string hex() const;
};

/// Hashes a sequence of parts (XXH3-128). `add` of a text or bytes also adds its size, so that
/// "ab", "c" and "a", "bc" differ. Not thread-safe.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  ContentHasher& add(std::span<const std::byte> bytes);
  ContentHasher& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  ContentHasher& add(uint64_t number);
  /// Adds bytes without their size: `add(bytes)` is `add(uint64_t{bytes.size()})` and then `append`
  /// of all of them, in any number of pieces.
  ContentHasher& append(std::span<const std::byte> bytes);
  ContentHasher& add(const ContentHash& hash) { return add(hash.low).add(hash.high); }
  ContentHash result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
