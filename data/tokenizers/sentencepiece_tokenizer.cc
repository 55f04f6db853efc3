#include "data/tokenizers/sentencepiece_tokenizer.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "core/base/utf8.h"
#include "data/tokenizers/hugging_face_tokenizer.h"
#include "data/tokenizers/sentencepiece_model.pb.h"
#include "data/tokenizers/token_memo.h"

namespace lockstep::train {
namespace {

constexpr uint32_t kNoPiece = UINT32_MAX;

/// Returns the end of the part of the text from `begin` that can be merged independently: no merge
/// crosses its end.
size_t stretch_end(std::string_view marked, size_t begin, const SentencePieceModel& model) {
  const auto mark_at = [&](size_t at) { return marked.substr(at).starts_with(kSpaceMark); };
  if (model.lines_are_separate && marked[begin] == '\n') return begin + 1;
  size_t at = begin;
  while (mark_at(at)) at += kSpaceMark.size();
  for (; at < marked.size(); ++at) {
    if (model.lines_are_separate && marked[at] == '\n') break;
    if (model.words_are_separate && mark_at(at)) break;
  }
  return at;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(const std::filesystem::path& model)
    : SentencePieceTokenizer(read_whole_file(model, kMostVocabularyBytes), model.string()) {}

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, const std::string& file)
    : bytes_(std::move(model)),
      identity_(ContentHasher().add(name()).add(bytes_).result()),
      model_(parse_sentencepiece(bytes_, file)) {}

void SentencePieceTokenizer::encode_word(std::string_view marked,
                                         std::vector<uint32_t>& ids) const {
  LS_CHECK(marked.size() < UINT32_MAX, DataError,
           "[tokenizer] a single word of {} bytes: expected fewer than 2^32. Is this text?",
           marked.size());
  std::string text;
  const auto find = [&](uint32_t begin, uint32_t end) -> std::optional<Merge> {
    text.assign(marked, begin, end - begin);
    const auto found = model_.pieces.find(text);
    if (found == model_.pieces.end()) return std::nullopt;
    return found->second;
  };
  std::vector<Symbol> symbols;
  for (uint32_t at = 0; at < marked.size();) {
    const uint32_t end = at + static_cast<uint32_t>(code_point_at(marked, at).length);
    const std::optional<Merge> piece = find(at, end);
    symbols.push_back({piece ? piece->id : kNoPiece, at, end});
    at = end;
  }
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) {
    return find(left.begin, right.end);
  });
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kNoPiece) {
      ids.push_back(symbol.id);
      continue;
    }
    const std::string_view character = marked.substr(symbol.begin, symbol.end - symbol.begin);
    if (character == kSpaceMark) {
      ids.push_back(model_.byte_tokens[' ']);
      continue;
    }
    for (const char c : character) {
      ids.push_back(model_.byte_tokens[static_cast<unsigned char>(c)]);
    }
  }
}

void SentencePieceTokenizer::encode_marked(std::string_view marked,
                                           std::vector<uint32_t>& ids) const {
  TokenMemo memo(ids);
  for (size_t begin = 0; begin < marked.size();) {
    const size_t end = stretch_end(marked, begin, model_);
    const std::string_view word = marked.substr(begin, end - begin);
    memo.append(word, [&] { encode_word(word, ids); });
    begin = end;
  }
}

void SentencePieceTokenizer::encode(std::string_view text, std::vector<uint32_t>& ids) const {
  std::string marked;
  const auto flush = [&] {
    encode_marked(marked, ids);
    marked.clear();
  };
  if (model_.add_dummy_prefix && !text.empty()) marked += kSpaceMark;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const std::string_view character = text.substr(at, static_cast<size_t>(point.length));
    if (point.valid && character != kSpaceMark) {
      marked += character == " " ? kSpaceMark : character;
    } else {
      flush();
      for (const char c : character) {
        ids.push_back(model_.byte_tokens[static_cast<unsigned char>(c)]);
      }
    }
    at += character.size();
  }
  flush();
}

void SentencePieceTokenizer::decode(uint32_t id, std::string& text) const {
  LS_CHECK(id < model_.tokens.size(), DataError,
           "[tokenizer] no piece has the id {}: expected one in [0, {}).", id,
           model_.tokens.size());
  text += model_.tokens[id];
}

std::vector<WrittenToken> SentencePieceTokenizer::written_tokens() const {
  sentencepiece::Model model;
  LS_ASSERT(model.ParseFromString(bytes_));
  std::vector<WrittenToken> tokens;
  for (const sentencepiece::Piece& piece : model.pieces()) {
    using Kind = WrittenToken::Kind;
    const auto type = piece.has_type() ? piece.type() : sentencepiece::Piece::NORMAL;
    tokens.push_back({piece.text(), piece.score(),
                      type == sentencepiece::Piece::BYTE      ? Kind::kByte
                      : type == sentencepiece::Piece::CONTROL ? Kind::kControl
                      : type == sentencepiece::Piece::UNKNOWN ? Kind::kUnknown
                                                              : Kind::kNormal});
  }
  return tokens;
}

std::vector<std::string> SentencePieceTokenizer::save(const std::filesystem::path& folder) const {
  write_text(folder / kFileName, bytes_);
  std::vector<std::string> names = hugging_face_sentencepiece(bytes_).save(folder);
  names.insert(names.begin(), kFileName);
  return names;
}

}  // namespace lockstep::train
