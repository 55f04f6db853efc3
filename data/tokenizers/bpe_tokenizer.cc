#include "data/tokenizers/bpe_tokenizer.h"

#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "data/tokenizers/hugging_face_tokenizer.h"
#include "data/tokenizers/pre_tokenizer.h"
#include "data/tokenizers/token_memo.h"

namespace lockstep::train {

BpeTokenizer::BpeTokenizer(const std::filesystem::path& vocabulary,
                           const std::filesystem::path& merges)
    : BpeTokenizer(read_whole_file(vocabulary, kMostVocabularyBytes), vocabulary.string(),
                   read_whole_file(merges, kMostVocabularyBytes), merges.string()) {}

BpeTokenizer::BpeTokenizer(std::string vocabulary, std::string merges, const std::string& origin)
    : BpeTokenizer(std::move(vocabulary), origin, std::move(merges), origin) {}

BpeTokenizer::BpeTokenizer(std::string vocabulary, const std::string& vocabulary_file,
                           std::string merges, const std::string& merges_file)
    : vocabulary_text_(std::move(vocabulary)),
      merges_text_(std::move(merges)),
      identity_(ContentHasher().add(name()).add(vocabulary_text_).add(merges_text_).result()),
      content_(parse_bpe(vocabulary_text_, vocabulary_file, merges_text_, merges_file)) {}

void BpeTokenizer::encode(std::string_view text, std::vector<uint32_t>& ids) const {
  TokenMemo memo(ids);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = gpt2_piece_end(text, begin);
    const std::string_view piece = text.substr(begin, end - begin);
    memo.append(piece, [&] { content_.encode(piece, ids); });
    begin = end;
  }
}

void BpeTokenizer::decode(uint32_t id, std::string& text) const {
  LS_CHECK(id < content_.tokens.size(), DataError,
           "[tokenizer] no token has the id {}: expected one in [0, {}).", id,
           content_.tokens.size());
  text += content_.tokens[id];
}

std::vector<WrittenToken> BpeTokenizer::written_tokens() const {
  std::vector<WrittenToken> tokens;
  for (uint32_t id = 0; id < content_.tokens.size(); ++id) {
    const bool is_end = content_.end_of_text == id;
    tokens.push_back({is_end ? content_.tokens[id] : written_bytes(content_.tokens[id]), 0,
                      is_end ? WrittenToken::Kind::kControl : WrittenToken::Kind::kNormal});
  }
  return tokens;
}

std::vector<std::string> BpeTokenizer::merges() const {
  std::vector<std::string> merges(content_.merges.size());
  for (const auto& [pair, merge] : content_.merges) {
    const auto left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
    merges[merge.rank] = fmt::format("{} {}", written_bytes(content_.tokens[left]),
                                     written_bytes(content_.tokens[right]));
  }
  return merges;
}

std::string BpeTokenizer::tokenizer_json() const {
  return hugging_face_bpe(vocabulary_text_, merges_text_).tokenizer;
}

std::vector<std::string> BpeTokenizer::save(const std::filesystem::path& folder) const {
  write_text(folder / "vocab.json", vocabulary_text_);
  write_text(folder / "merges.txt", merges_text_);
  std::vector<std::string> names = hugging_face_bpe(vocabulary_text_, merges_text_).save(folder);
  names.insert(names.begin(), {"vocab.json", "merges.txt"});
  return names;
}

}  // namespace lockstep::train
