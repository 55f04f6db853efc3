#include "data/tokenizers/byte_tokenizer.h"

#include "core/base/check.h"
#include "data/tokenizers/bpe_vocabulary.h"
#include "data/tokenizers/hugging_face_tokenizer.h"

namespace lockstep::train {

ContentHash ByteTokenizer::identity() const { return ContentHasher().add(name()).result(); }

void ByteTokenizer::encode(std::string_view text, std::vector<uint32_t>& ids) const {
  // Not reserved exactly: that would move all ids again for every document.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  ids.insert(ids.end(), bytes, bytes + text.size());
}

void ByteTokenizer::decode(uint32_t id, std::string& text) const {
  LS_CHECK(id < 256, DataError, "[tokenizer] no byte has the id {}: expected one in [0, 256).", id);
  text += static_cast<char>(id);
}

std::vector<WrittenToken> ByteTokenizer::written_tokens() const {
  std::vector<WrittenToken> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back({written_bytes(std::string(1, static_cast<char>(byte)))});
  }
  return tokens;
}

std::vector<std::string> ByteTokenizer::save(const std::filesystem::path& folder) const {
  return hugging_face_bytes().save(folder);
}

}  // namespace lockstep::train
