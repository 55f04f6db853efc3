#include "data/tokenizers/tokenizer.h"

#include <algorithm>
#include <array>
#include <span>
#include <system_error>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "data/tokenizers/byte_tokenizer.h"
#include "data/tokenizers/hugging_face_tokenizer.h"
#include "data/tokenizers/json_tokenizer.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"

namespace lockstep::train {
namespace {

/// The BPE tokenizer of the two files in `folder`; null if there is none of them.
std::unique_ptr<BpeTokenizer> load_bpe(const std::filesystem::path& folder) {
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
  return nullptr;
}

/// Whether tokenizer.json only repeats, for Hugging Face, what is known without it: `bpe`, or
/// bytes.
bool is_saved_by_us(const std::filesystem::path& file, const BpeTokenizer* bpe) {
  const std::string text = read_whole_file(file, kMostVocabularyBytes);
  return text == (bpe == nullptr ? hugging_face_bytes().tokenizer : bpe->tokenizer_json());
}

}  // namespace

std::vector<uint32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<uint32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

std::vector<uint32_t> encode_special(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<uint32_t> ids;
  tokenizer.encode_with_special(text, ids);
  return ids;
}

void encode_continued(const Tokenizer& tokenizer, std::string_view text, bool special,
                      std::vector<uint32_t>& ids) {
  const auto append = [&](std::string_view part, std::vector<uint32_t>& to) {
    special ? tokenizer.encode_with_special(part, to) : tokenizer.encode(part, to);
  };
  if (!tokenizer.adds_space() || text.empty()) return append(text, ids);
  // Behind a character that no token holds together with the text's first, the text's own tokens
  // follow those of the character. Of these characters, one is most likely such.
  for (const std::string_view before : {"\n", "\x01", "."}) {
    std::vector<uint32_t> head, both;
    append(before, head);
    append(std::string(before).append(text), both);
    if (!std::ranges::equal(head, std::span(both).first(std::min(head.size(), both.size())))) {
      continue;
    }
    ids.insert(ids.end(), both.begin() + std::ssize(head), both.end());
    return;
  }
  append(text, ids);
}

void Tokenizer::encode_with_special(std::string_view text, std::vector<uint32_t>& ids) const {
  const std::optional<uint32_t> end = end_of_text();
  if (!end) return encode(text, ids);
  while (true) {
    const size_t at = text.find(kEndOfText);
    encode(text.substr(0, at), ids);
    if (at == std::string_view::npos) return;
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
  std::unique_ptr<BpeTokenizer> bpe = load_bpe(folder);
  const std::filesystem::path model = folder / SentencePieceTokenizer::kFileName;
  if (!bpe && std::filesystem::exists(model)) {
    return std::make_unique<SentencePieceTokenizer>(model);
  }
  const std::filesystem::path file = folder / JsonTokenizer::kFileName;
  if (std::filesystem::exists(file) && !is_saved_by_us(file, bpe.get())) {
    return std::make_unique<JsonTokenizer>(file);
  }
  if (bpe) return bpe;
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> find_tokenizer(const std::filesystem::path& folder) {
  std::error_code ignored;
  const bool has_json = std::filesystem::exists(folder / JsonTokenizer::kFileName, ignored);
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_tokenizer(folder);
  } catch (const DataError&) {
    if (!has_json) throw;
    return nullptr;
  }
  const bool is_byte = dynamic_cast<const ByteTokenizer*>(tokenizer.get()) != nullptr;
  return is_byte && !has_json ? nullptr : std::move(tokenizer);
}

}  // namespace lockstep::train
