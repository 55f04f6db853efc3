#include "data/tokenizers/byte_tokenizer.h"

#include "core/base/check.h"

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

}  // namespace lockstep::train
