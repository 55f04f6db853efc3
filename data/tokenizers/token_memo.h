#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::train {

/// Memoizes the ids of short words while a text is encoded, since words recur. An entry is the
/// position of the word's first ids in the output. The words and `ids` must outlive this object.
class TokenMemo {
 public:
  explicit TokenMemo(std::vector<uint32_t>& ids) : ids_(ids) {}

  /// Appends the ids of `word`: a copy of earlier ones, or by calling `encode()`, which must append
  /// them to the vector.
  template <class Encode>
  void append(std::string_view word, const Encode& encode) {
    if (word.size() > kLongest) return encode();
    const auto [place, is_new] = places_.try_emplace(word);
    if (is_new) {
      const size_t first = ids_.size();
      encode();
      place->second = {first, ids_.size() - first};
      return;
    }
    const auto [first, count] = place->second;
    for (size_t i = 0; i < count; ++i) ids_.push_back(ids_[first + i]);
  }

 private:
  static constexpr size_t kLongest = 64;
  struct Place {
    size_t first = 0;
    size_t count = 0;
  };
  std::vector<uint32_t>& ids_;
  std::unordered_map<std::string_view, Place> places_;
};

}  // namespace lockstep::train
