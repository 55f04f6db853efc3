#include "data/tokenizers/json_tokenizer.h"

#include <algorithm>
#include <deque>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/regular_file.h"
#include "core/base/utf8.h"
#include "data/tokenizers/hugging_face_tokenizer.h"
#include "data/tokenizers/normal_form.h"
#include "data/tokenizers/pre_tokenizer.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/token_memo.h"
#include "data/tokenizers/tokenizer_config.h"

namespace lockstep::train {
namespace {

using Added = TokenizerJson::Added;
using Mark = TokenizerJson::Mark;
using Split = TokenizerJson::Split;

/// tokenizer_config.json beside `file`; empty if there is none.
std::string config_beside(const std::filesystem::path& file) {
  const std::filesystem::path path = file.parent_path() / HuggingFaceTokenizer::kConfigName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  return read_whole_file(path, kMostVocabularyBytes);
}

std::string marked(std::string_view text) {
  std::string result;
  for (const char c : text) c == ' ' ? result.append(kSpaceMark) : result.append(1, c);
  return result;
}

/// The added tokens as they are to be found where the text has been normalized.
std::vector<Added> as_normalized(const TokenizerJson& content) {
  std::vector<Added> tokens = content.added;
  for (Added& token : tokens) {
    if (!token.normalized) continue;
    if (content.composes) token.text = composed(token.text).value_or(token.text);
    if (!content.normalizes) continue;
    token.text = marked(token.text);
    if (content.mark == Mark::kAlways) token.text.insert(0, kSpaceMark);
  }
  return tokens;
}

bool has_mark_inside(std::string_view token) {
  bool inside = false;
  for (size_t at = 0; at < token.size();) {
    const bool is_mark = token.substr(at).starts_with(kSpaceMark);
    if (is_mark && inside) return true;
    inside = !is_mark;
    at += is_mark ? kSpaceMark.size() : 1;
  }
  return false;
}

}  // namespace

JsonTokenizer::JsonTokenizer(const std::filesystem::path& file)
    : JsonTokenizer(read_whole_file(file, kMostVocabularyBytes), config_beside(file),
                    file.string()) {}

JsonTokenizer::JsonTokenizer(std::string tokenizer, std::string config, const std::string& file)
    : text_(std::move(tokenizer)),
      config_(std::move(config)),
      identity_(ContentHasher().add(name()).add(text_).add(config_).result()),
      content_(parse_tokenizer_json(text_, file)),
      first_(content_.added, false),
      normalized_(as_normalized(content_), true) {
  const TextEnds ends = config_.empty()
                            ? TextEnds{}
                            : parse_tokenizer_config(config_, HuggingFaceTokenizer::kConfigName);
  begin_of_text_ = special(ends.begin, {"<|begin_of_text|>", "<s>", "<bos>"});
  end_of_text_ = special(ends.end, {kEndOfText, "<|end_of_text|>", "</s>", "<eos>"});
  if (!content_.byte_fallback) return;
  words_are_separate_ = std::ranges::none_of(
      content_.ids, [](const auto& token) { return has_mark_inside(token.first); });
}

std::optional<uint32_t> JsonTokenizer::special(
    const std::optional<std::string>& named, std::initializer_list<std::string_view> known) const {
  const auto find = [&](std::string_view text) -> std::optional<uint32_t> {
    const auto found = std::ranges::find(content_.added, text, &Added::text);
    if (found == content_.added.end()) return std::nullopt;
    return found->id;
  };
  if (named) return find(*named);
  for (const std::string_view text : known) {
    if (const auto id = find(text)) return id;
  }
  return std::nullopt;
}

void JsonTokenizer::encode(std::string_view text, std::vector<uint32_t>& ids) const {
  encode(text, /*find_special=*/false, ids);
}

void JsonTokenizer::encode_with_special(std::string_view text, std::vector<uint32_t>& ids) const {
  encode(text, /*find_special=*/true, ids);
}

void JsonTokenizer::encode(std::string_view text, bool find_special,
                           std::vector<uint32_t>& ids) const {
  TokenMemo memo(ids);
  std::deque<std::string> kept;  // changed texts, which the memo refers to
  for (const AddedTokenFinder::Part& part : first_.parts(text, find_special)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    std::string_view stretch = part.text;
    if (content_.composes) {
      if (std::optional<std::string> changed = composed(stretch)) {
        stretch = kept.emplace_back(*std::move(changed));
      }
    }
    if (content_.normalizes) {
      kept.push_back(marked(stretch));
      if (content_.mark == Mark::kAlways) kept.back().insert(0, kSpaceMark);
      stretch = kept.back();
    }
    for (const AddedTokenFinder::Part& inner : normalized_.parts(stretch, find_special)) {
      if (inner.id) {
        ids.push_back(*inner.id);
        continue;
      }
      std::string_view last = inner.text;
      if (content_.byte_fallback && !content_.normalizes) {
        kept.push_back(with_marks(last, last.data() == text.data()));
        last = kept.back();
      }
      append_stretch(last, memo, ids);
    }
  }
}

/// Spaces replaced, and a mark put before the text unless it has one: the pre-tokenizer Metaspace.
std::string JsonTokenizer::with_marks(std::string_view text, bool is_first) const {
  std::string result = marked(text);
  const bool wanted = content_.mark == Mark::kAlways || (content_.mark == Mark::kFirst && is_first);
  if (wanted && !result.starts_with(kSpaceMark)) result.insert(0, kSpaceMark);
  return result;
}

void JsonTokenizer::append_stretch(std::string_view text, TokenMemo& memo,
                                   std::vector<uint32_t>& ids) const {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = piece_end(text, begin);
    const std::string_view piece = text.substr(begin, end - begin);
    memo.append(piece, [&] {
      content_.byte_fallback ? append_marked(piece, ids) : append_piece(piece, ids);
    });
    begin = end;
  }
}

size_t JsonTokenizer::piece_end(std::string_view text, size_t begin) const {
  switch (content_.split) {
    case Split::kGpt2:
      return gpt2_piece_end(text, begin);
    case Split::kLlama3:
      return llama3_piece_end(text, begin, /*digits=*/3);
    case Split::kQwen2:
      return llama3_piece_end(text, begin, /*digits=*/1);
    case Split::kNone:
      break;
  }
  if (!content_.byte_fallback || !words_are_separate_) return text.size();
  size_t at = begin;
  while (text.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
  return std::min(text.find(kSpaceMark, at), text.size());
}

void JsonTokenizer::append_piece(std::string_view piece, std::vector<uint32_t>& ids) const {
  if (content_.whole_pieces) {
    if (const auto found = content_.ids.find(std::string(piece)); found != content_.ids.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  content_.vocabulary.encode(piece, ids);
}

void JsonTokenizer::append_marked(std::string_view marked, std::vector<uint32_t>& ids) const {
  LS_CHECK(marked.size() < UINT32_MAX, DataError,
           "[tokenizer] a single word of {} bytes: expected fewer than 2^32. Is this text?",
           marked.size());
  const BpeVocabulary& vocabulary = content_.vocabulary;
  std::vector<Symbol> symbols;
  for (uint32_t at = 0; at < marked.size();) {
    const uint32_t end = at + static_cast<uint32_t>(code_point_at(marked, at).length);
    const auto found = content_.ids.find(std::string(marked.substr(at, end - at)));
    if (found != content_.ids.end()) {
      symbols.push_back({found->second, at, end});
    } else {
      for (uint32_t i = at; i < end; ++i) {
        symbols.push_back(
            {vocabulary.byte_tokens[static_cast<unsigned char>(marked[i])], i, i + 1});
      }
    }
    at = end;
  }
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    const auto found = vocabulary.merges.find(BpeVocabulary::merge_key(left.id, right.id));
    if (found == vocabulary.merges.end()) return std::nullopt;
    return found->second;
  });
  for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
}

void JsonTokenizer::decode(uint32_t id, std::string& text) const {
  LS_CHECK(id < content_.vocabulary.tokens.size(), DataError,
           "[tokenizer] no token has the id {}: expected one in [0, {}).", id,
           content_.vocabulary.tokens.size());
  text += content_.vocabulary.tokens[id];
}

std::string_view JsonTokenizer::pre_tokenizer() const {
  switch (content_.split) {
    case Split::kGpt2:
      return "gpt-2";
    case Split::kLlama3:
      return "llama-bpe";
    case Split::kQwen2:
      return "qwen2";
    case Split::kNone:
      break;
  }
  return "";
}

std::vector<WrittenToken> JsonTokenizer::written_tokens() const {
  std::vector<WrittenToken> tokens;
  for (const std::string& bytes : content_.vocabulary.tokens) {
    tokens.push_back({content_.byte_fallback ? marked(bytes) : written_bytes(bytes)});
  }
  if (content_.byte_fallback) {
    for (size_t byte = 0; byte < 256; ++byte) {
      tokens[content_.vocabulary.byte_tokens[byte]] = {fmt::format("<0x{:02X}>", byte), 0,
                                                       WrittenToken::Kind::kByte};
    }
  }
  for (const Added& added : content_.added) {
    tokens[added.id] = {
        added.text, 0,
        added.special ? WrittenToken::Kind::kControl : WrittenToken::Kind::kUserDefined};
  }
  return tokens;
}

std::vector<std::string> JsonTokenizer::merges() const {
  const std::vector<WrittenToken> tokens = written_tokens();
  std::vector<std::pair<uint32_t, std::string>> ranked;
  for (const auto& [pair, merge] : content_.vocabulary.merges) {
    const auto left = static_cast<uint32_t>(pair >> 32), right = static_cast<uint32_t>(pair);
    ranked.emplace_back(merge.rank, fmt::format("{} {}", tokens[left].text, tokens[right].text));
  }
  std::ranges::sort(ranked);
  std::vector<std::string> merges;
  for (auto& [rank, merge] : ranked) merges.push_back(std::move(merge));
  return merges;
}

std::vector<std::string> JsonTokenizer::save(const std::filesystem::path& folder) const {
  std::string config = config_;
  if (config.empty()) config = "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n";
  return HuggingFaceTokenizer{text_, config}.save(folder);
}

}  // namespace lockstep::train
