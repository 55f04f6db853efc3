#include "data/tokenizers/tokenizer.h"

#include <array>
#include <system_error>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/hugging_face_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"

namespace lockstep::train {

std::vector<uint32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<uint32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<uint32_t> encode_special(const Tokenizer& tokenizer, std::string_view text) {
  const std::optional<uint32_t> end = tokenizer.end_of_text();
  if (!end) return encode(tokenizer, text);
  std::vector<uint32_t> ids;
  while (true) {
    const size_t at = text.find(kEndOfText);
    tokenizer.encode(text.substr(0, at), ids);
    if (at == std::string_view::npos) return ids;
    ids.push_back(*end);
    text.remove_prefix(at + kEndOfText.size());
  }
}

std::string decode(const Tokenizer& tokenizer, std::span<const uint32_t> ids) {
  std::string text;
  for (const uint32_t id : ids) tokenizer.decode(id, text);
  if (tokenizer.adds_space() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  constexpr std::array<std::array<const char*, 2>, 2> kBpeFiles = {
      {{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};
  for (const auto& [vocabulary, merges] : kBpeFiles) {
    const bool has_vocabulary = std::filesystem::exists(folder / vocabulary);
    const bool has_merges = std::filesystem::exists(folder / merges);
    if (!has_vocabulary && !has_merges) continue;
    LS_CHECK(has_vocabulary && has_merges, DataError,
             "[tokenizer] {}: expected {} and {} together, found only {}.", folder.string(),
             vocabulary, merges, has_vocabulary ? vocabulary : merges);
    return std::make_unique<BpeTokenizer>(folder / vocabulary, folder / merges);
  }
  const std::filesystem::path model = folder / SentencePieceTokenizer::kFileName;
  if (std::filesystem::exists(model)) return std::make_unique<SentencePieceTokenizer>(model);
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> find_tokenizer(const std::filesystem::path& folder) {
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(folder);
  if (dynamic_cast<const ByteTokenizer*>(tokenizer.get()) == nullptr) return tokenizer;
  const std::filesystem::path file = folder / HuggingFaceTokenizer::kFileName;
  std::error_code ignored;
  const bool is_ours =
      std::filesystem::exists(file, ignored) &&
      read_whole_file(file, kMostVocabularyBytes) == hugging_face_bytes().tokenizer;
  return is_ours ? std::move(tokenizer) : nullptr;
}

}  // namespace lockstep::train
