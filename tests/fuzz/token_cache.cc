#include "data/token_cache.h"

#include <cstring>
#include <optional>
#include <vector>

#include "data/tokenized_text.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

constexpr int64_t kVocabulary = 1000;

/// Reads an entry with the key that its header names.
Outcome parse_entry(std::span<const std::byte> file) {
  constexpr size_t kKeyAt = 16;
  ContentHash key;
  if (file.size() >= kKeyAt + sizeof key) std::memcpy(&key, file.data() + kKeyAt, sizeof key);
  return train::parse_cache_entry(file, key) ? Outcome::kAccepted : Outcome::kRefused;
}

Outcome parse_tokens(std::span<const std::byte> content) {
  const auto text = train::parse_cached_tokens(content, nullptr, kVocabulary);
  if (!text) return Outcome::kRefused;
  require(text->training().size() == text->training_tokens, "the training tokens are all there");
  require(text->held_out().size() <= text->tokens.size(), "what is held out is a part");
  std::vector<int64_t> read(static_cast<size_t>(text->tokens.size()));
  require(text->tokens.read(0, read) < kVocabulary, "tokens lie in the vocabulary");
  return Outcome::kAccepted;
}

}  // namespace

Outcome fuzz_token_cache(Input input) {
  const Outcome entry = parse_entry(std::as_bytes(input));
  const Outcome tokens = parse_tokens(std::as_bytes(input));
  return entry == Outcome::kAccepted ? entry : tokens;
}

}  // namespace lockstep::fuzz
