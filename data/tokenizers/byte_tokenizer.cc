#include "data/tokenizers/byte_tokenizer.h"

#include "core/base/check.h"

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

}  // namespace lockstep::train
