#pragma once

#include <string>
#include <vector>

#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {

/// Bytes as ids from 1 on, and 0 between documents. Id i stands for i bytes if `repeats`, else for
/// the byte i; `encode` begins each text with a space if `adds_space`.
class StubTokenizer final : public Tokenizer {
 public:
  explicit StubTokenizer(bool repeats, bool adds_space = false)
      : repeats_(repeats), adds_space_(adds_space) {}

  std::string_view name() const override { return "stub"; }
  int64_t vocabulary() const override { return 256; }
  ContentHash identity() const override { return ContentHasher().add("stub").result(); }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override {
    if (adds_space_) ids.push_back(' ');
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  }
  void decode(uint32_t id, std::string& text) const override {
    repeats_ ? text.append(id, 'x') : text.append(1, static_cast<char>(id));
  }
  std::optional<uint32_t> end_of_text() const override { return 0; }
  bool adds_space() const override { return adds_space_; }
  std::vector<WrittenToken> written_tokens() const override { return {}; }
  std::vector<std::string> save(const std::filesystem::path&) const override { return {}; }

 private:
  bool repeats_;
  bool adds_space_;
};

}  // namespace lockstep::train
