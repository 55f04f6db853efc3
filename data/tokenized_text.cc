#include "data/tokenized_text.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "core/base/files/text_files.h"
#include "core/base/utf8.h"

namespace lockstep::train {
namespace {

constexpr uint64_t kCacheVersion = 1;
constexpr const char* kCacheKind = "tokens";

/// Header of a cache entry, before its tokens.
struct EntryHead {
  uint64_t width = 0;
  int64_t training_tokens = 0;
};

std::optional<TokenizedText> find(const TokenCache& cache, const ContentHash& key,
                                  int64_t vocabulary) {
  const std::optional<TokenCache::Entry> entry = cache.find(kCacheKind, key);
  return entry ? parse_cached_tokens(entry->bytes, entry->owner, vocabulary) : std::nullopt;
}

void store(const TokenCache& cache, const ContentHash& key, const TokenizedText& text) {
  const EntryHead head{static_cast<uint64_t>(text.tokens.width()), text.training_tokens};
  const std::array parts = {std::as_bytes(std::span(&head, 1)), text.tokens.bytes()};
  cache.store(kCacheKind, key, parts);
}

/// Returns the first UTF-8 character boundary of `text` at or after `at`.
size_t cut(std::string_view text, size_t at) {
  while (at < text.size() && continues_utf8(text[at])) ++at;
  return at;
}

/// Where the held-out text begins in document `text`, which begins at `position` of the whole text;
/// nothing if that is not inside the document.
std::optional<size_t> cut_in(std::string_view text, int64_t position, int64_t boundary) {
  if (boundary <= position || boundary >= position + std::ssize(text)) return std::nullopt;
  return cut(text, static_cast<size_t>(boundary - position));
}

/// The documents' bytes as tokens.
TokenizedText bytes_of(const Documents& documents, int64_t held_out_bytes) {
  TokenizedText result{
      TokenArray(std::as_bytes(std::span(*documents.whole())), 1, documents.whole()),
      documents.bytes() - held_out_bytes};
  int64_t position = 0;
  for (size_t i = 0; i < documents.count(); ++i) {
    const std::string_view text = documents.text_and_separator(i);
    if (const auto at = cut_in(text, position, result.training_tokens)) {
      result.training_tokens = position + static_cast<int64_t>(*at);
      break;
    }
    position += std::ssize(text);
  }
  return result;
}

TokenizedText encode_documents(const Documents& documents, int64_t held_out_bytes,
                               const Tokenizer& tokenizer) {
  TokenizedText result;
  std::vector<uint32_t> ids;
  const int64_t boundary = documents.bytes() - held_out_bytes;
  const std::optional<uint32_t> end_of_text = tokenizer.end_of_text();
  int64_t position = 0;  // offset of the document in the whole text
  for (size_t i = 0; i < documents.count(); ++i) {
    if (i > 0 && end_of_text && documents.ends_with_token(i - 1)) ids.push_back(*end_of_text);
    const bool is_alone = end_of_text && documents.ends_with_token(i);
    const std::string_view text = is_alone ? documents.text(i) : documents.text_and_separator(i);
    const int64_t end = position + std::ssize(text);
    if (const std::optional<size_t> inside = cut_in(text, position, boundary)) {
      const size_t at = *inside;
      tokenizer.encode(text.substr(0, at), ids);
      result.training_tokens = std::ssize(ids);
      tokenizer.encode(text.substr(at), ids);
    } else {
      tokenizer.encode(text, ids);
      if (end <= boundary) result.training_tokens = std::ssize(ids);
    }
    position += std::ssize(documents.text_and_separator(i));
  }
  result.tokens = TokenArray::copy_of(ids);
  return result;
}

}  // namespace

Documents::Documents(const std::vector<std::string>& patterns, JsonLinesOptions json_lines)
    : name_(fmt::format("{}", fmt::join(patterns, ", "))),
      separator_is_given_(!json_lines.separator.empty()) {
  if (!separator_is_given_) json_lines.separator.push_back('\n');
  std::string whole;
  for (const std::string& pattern : patterns) {
    for (const std::filesystem::path& file : find_files(pattern)) {
      if (is_json_lines(file)) {
        read_lines(file, json_lines, whole);
        continue;
      }
      std::string text = read_whole_file(file);
      if (text.empty()) continue;
      const size_t begin = whole.size();
      whole.empty() ? whole.swap(text) : void(whole.append(text));
      documents_.push_back({begin, whole.size(), files_.size(), 0});
      files_.push_back(file);
    }
  }
  LS_CHECK(!whole.empty(), DataError, "[data] {}: the text is empty{}.", name_,
           notes_.empty() ? "" : ", " + notes_.front());
  whole.resize(documents_.back().end);  // no separator behind the last
  whole_ = std::make_shared<const std::string>(std::move(whole));
}

Documents Documents::together(std::span<const Documents> parts) {
  Documents all;
  std::string whole;
  for (const Documents& part : parts) {
    for (const Document& each : part.documents_) {
      all.documents_.push_back({whole.size() + each.begin, whole.size() + each.end,
                                all.files_.size() + each.file, each.line});
    }
    whole += *part.whole_;
    all.name_ += (all.name_.empty() ? "" : ", ") + part.name_;
    all.files_.insert(all.files_.end(), part.files_.begin(), part.files_.end());
    all.notes_.insert(all.notes_.end(), part.notes_.begin(), part.notes_.end());
    all.separator_is_given_ = all.separator_is_given_ || part.separator_is_given_;
  }
  all.whole_ = std::make_shared<const std::string>(std::move(whole));
  return all;
}

void Documents::read_lines(const std::filesystem::path& file, const JsonLinesOptions& options,
                           std::string& whole) {
  JsonLinesReader reader(file, options);
  const size_t first = documents_.size();
  for (std::string text; reader.next(text);) {
    LS_CHECK(whole.size() + text.size() <= kMostTextBytes, DataError,
             "[data] {}:{}: more than {} bytes of text: expected a text that fits into memory. "
             "Make token files of parts of it (lockstep data tokenize).",
             file.string(), reader.line(), kMostTextBytes);
    const size_t begin = whole.size();
    whole += text;
    documents_.push_back({begin, whole.size(), files_.size(), reader.line()});
    whole += options.separator;
  }
  if (documents_.size() > first) files_.push_back(file);
  if (reader.skipped() > 0) {
    notes_.push_back(fmt::format("{}: skipped {} damaged line{}, the first of them {}",
                                 file.string(), reader.skipped(), reader.skipped() == 1 ? "" : "s",
                                 reader.first_skipped()));
  }
}

std::string_view Documents::text(size_t i) const {
  const Document& document = documents_[i];
  return std::string_view(*whole_).substr(document.begin, document.end - document.begin);
}

std::string_view Documents::text_and_separator(size_t i) const {
  const size_t begin = documents_[i].begin;
  const size_t next = i + 1 < count() ? documents_[i + 1].begin : whole_->size();
  return std::string_view(*whole_).substr(begin, next - begin);
}

bool Documents::ends_with_token(size_t i) const { return line(i) == 0 || !separator_is_given_; }

std::string Documents::place(size_t i) const {
  return line(i) == 0 ? path(i).string() : fmt::format("{}:{}", path(i).string(), line(i));
}

void Documents::check_is_text() const {
  for (size_t i = 0; i < count(); ++i) {
    const size_t zero = text(i).find('\0');
    LS_CHECK(zero == std::string_view::npos, DataError,
             "[data] {}: expected text, got a zero byte at byte {}. To train on bytes of any kind, "
             "choose the byte tokenizer.",
             place(i), zero);
  }
}

ContentHash Documents::hash() const {
  ContentHasher hasher;
  for (size_t i = 0; i < count(); ++i) {
    hasher.add(text(i));
    if (line(i) == 0) continue;
    hasher.add(text_and_separator(i).substr(text(i).size()));
    hasher.add(uint64_t{separator_is_given_});
  }
  return hasher.result();
}

std::string Documents::joined() const {
  std::string all;
  all.reserve(whole_->size() + count());
  for (size_t i = 0; i < count(); ++i) all.append(text(i)).append("\n");
  return all;
}

TokenArray TokenizedText::held_out() const {
  const int64_t count = tokens.size() - training_tokens;
  if (count == 0 || training_tokens == 0) return {};
  return tokens.slice(training_tokens - 1, count + 1);
}

std::optional<TokenizedText> parse_cached_tokens(std::span<const std::byte> bytes,
                                                 std::shared_ptr<const void> owner,
                                                 int64_t vocabulary) {
  EntryHead head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  if ((head.width != 2 && head.width != 4) || bytes.size() % head.width != 0) return std::nullopt;
  TokenizedText text{TokenArray(bytes, static_cast<int>(head.width), std::move(owner)),
                     head.training_tokens};
  if (text.training_tokens < 0 || text.training_tokens > text.tokens.size()) return std::nullopt;
  for (int64_t i = 0; i < text.tokens.size(); ++i) {
    if (text.tokens[i] >= vocabulary) return std::nullopt;
  }
  return text;
}

TokenizedText tokenize(const Documents& documents, int64_t held_out_bytes,
                       const Tokenizer& tokenizer, const TokenCache& cache) {
  LS_CHECK(held_out_bytes >= 0 && held_out_bytes < documents.bytes(), DataError,
           "[data] {}: cannot hold out {} bytes of a text of {}. Hold out fewer.", documents.name(),
           held_out_bytes, documents.bytes());
  if (tokenizer.name() == "byte") return bytes_of(documents, held_out_bytes);
  documents.check_is_text();
  const ContentHash key = ContentHasher()
                              .add(kCacheVersion)
                              .add(tokenizer.identity())
                              .add(static_cast<uint64_t>(held_out_bytes))
                              .add(documents.hash())
                              .result();
  if (std::optional<TokenizedText> found = find(cache, key, tokenizer.vocabulary())) {
    return *std::move(found);
  }
  TokenizedText text = encode_documents(documents, held_out_bytes, tokenizer);
  store(cache, key, text);
  return text;
}

}  // namespace lockstep::train
