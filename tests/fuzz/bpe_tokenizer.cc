#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "data/tokenizers/bpe_vocabulary.h"
#include "tests/data/tokenizers/tiny_tokenizers.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

using train::BpeVocabulary;

constexpr uint8_t kEndOfVocabulary = 0xff;

/// A JSON object with the tokens of the 256 bytes, without its closing brace.
const std::string& byte_tokens() {
  static const std::string kText = [] {
    std::string text = train::tiny_bpe({}).vocabulary;
    return text.substr(0, text.rfind(','));
  }();
  return kText;
}

/// Checks that decoding an encoded text gives the same bytes: every token that merges can build
/// must consist of the bytes of its two parts.
void check_merges(const BpeVocabulary& vocabulary) {
  std::vector<bool> reachable(vocabulary.tokens.size());
  for (size_t byte = 0; byte < 256; ++byte) {
    const uint32_t id = vocabulary.byte_tokens[byte];
    require(id < reachable.size(), "bytes have ids within the vocabulary");
    require(vocabulary.tokens[id] == std::string(1, static_cast<char>(byte)),
            "the token of a byte is that byte");
    reachable[id] = true;
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& [key, merge] : vocabulary.merges) {
      const auto left = static_cast<uint32_t>(key >> 32), right = static_cast<uint32_t>(key);
      require(std::max({left, right, merge.id}) < reachable.size(), "merges are of known tokens");
      if (!reachable[left] || !reachable[right] || reachable[merge.id]) continue;
      require(vocabulary.tokens[merge.id] == vocabulary.tokens[left] + vocabulary.tokens[right],
              "a merge makes the bytes of its two parts");
      reachable[merge.id] = grown = true;
    }
  }
}

/// Returns nothing if the parser refuses the files.
std::optional<BpeVocabulary> parse_vocabulary(const std::string& vocabulary_text,
                                              const std::string& merges_text) {
  BpeVocabulary vocabulary;
  try {
    vocabulary = train::parse_bpe(vocabulary_text, "vocab", merges_text, "merges");
  } catch (const DataError&) {
    return std::nullopt;
  }
  require(vocabulary.tokens.size() >= 256, "every byte has a token");
  require(!vocabulary.end_of_text || *vocabulary.end_of_text < vocabulary.tokens.size(),
          "the end of a text has an id within the vocabulary");
  check_merges(vocabulary);
  return vocabulary;
}

}  // namespace

Outcome fuzz_bpe_tokenizer(Input input) {
  const auto end = std::ranges::find(input, kEndOfVocabulary);
  const std::string vocabulary(input.begin(), end);
  const std::string merges(end == input.end() ? end : end + 1, input.end());
  const auto alone = parse_vocabulary(vocabulary, merges);
  const auto completed = parse_vocabulary(byte_tokens() + vocabulary, merges);
  if (completed) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      require(completed->byte_tokens[byte] == byte, "no later token stands for a byte");
    }
  }
  return alone || completed ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace lockstep::fuzz
