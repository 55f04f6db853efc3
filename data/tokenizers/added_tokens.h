#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizers/tokenizer_json.h"

namespace lockstep::train {

/// Finds added tokens in a text, as Hugging Face's library does: the leftmost match, the longest of
/// those at one place, without overlaps.
class AddedTokenFinder {
 public:
  /// Takes those of `tokens` that are, or are not, `normalized`.
  AddedTokenFinder(const std::vector<TokenizerJson::Added>& tokens, bool normalized);

  /// A stretch of text, or an added token that was found there.
  struct Part {
    std::string_view text;
    std::optional<uint32_t> id = {};
  };
  /// Divides `text`. Special tokens are taken for text unless `find_special`.
  std::vector<Part> parts(std::string_view text, bool find_special) const;

 private:
  const TokenizerJson::Added* find(std::string_view text, size_t at) const;

  std::vector<TokenizerJson::Added> tokens_;            ///< the longest first
  std::array<std::vector<size_t>, 256> by_first_byte_;  ///< indices in tokens_
  bool all_special_ = true;
};

}  // namespace lockstep::train
