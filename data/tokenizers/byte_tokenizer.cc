#include "data/tokenizers/byte_tokenizer.h"

#include "core/base/check.h"
#include "data/tokenizers/bpe_vocabulary.h"
#include "data/tokenizers/hugging_face_tokenizer.h"

namespace lockstep::train {

ContentHash ByteTokenizer::identity() const { return ContentHasher().add(name()).result(); }

void ByteTokenizer::encode(std::string_view text, std::vector<uint32_t>& ids) const {
  ids.reserve(ids.size() + text.size());
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
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
