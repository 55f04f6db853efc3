#include "data/example_set.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/mapped_file.h"
#include "core/base/files/text_files.h"

namespace lockstep::train {
namespace {

constexpr uint64_t kExamplesVersion = 1;
constexpr const char* kExamplesKind = "examples";

/// Of all that decides what examples become, and of the files' names and bytes.
ContentHash key_of(const std::vector<std::filesystem::path>& files, const std::string& pattern,
                   const ExampleForm& form, const ExampleEncoding& encoding) {
  ContentHasher hasher;
  hasher.add(kExamplesVersion).add(encoding.tokenizer->identity()).add(pattern);
  hasher.add(form.prompt).add(form.completion).add(uint64_t{form.special});
  hasher.add(uint64_t{form.skip_damaged_lines}).add(uint64_t{form.chat.has_value()});
  if (form.chat) {
    hasher.add(form.chat->field).add(form.chat->begin).add(form.chat->end);
    hasher.add(form.chat->trained_role);
  }
  hasher.add(uint64_t{encoding.begin_of_text}).add(encoding.end);
  hasher.add(static_cast<uint64_t>(encoding.longest));
  hasher.add(static_cast<uint64_t>(encoding.too_long));
  for (const std::filesystem::path& path : files) {
    const MappedFile file(path);
    hasher.add(path.string()).add(file.bytes());
    check_mapped(file.bytes().data());
  }
  return hasher.result();
}

// An entry of the cache: its head, the tokens, the examples, whether tokens count, and the notes,
// each of which ends with a zero byte.
struct ExamplesHead {
  uint64_t tokens = 0;
  uint64_t examples = 0;
};
struct KeptExample {
  int64_t end = 0;  ///< of its tokens, which begin where those of the one before end
  int64_t line = 0;
  uint64_t file = 0;
};

/// Copies the next `count` elements of an entry and moves on; false if there are fewer.
template <class T>
bool copy_next(std::span<const std::byte>& entry, uint64_t count, std::vector<T>& into) {
  if (count > entry.size() / sizeof(T)) return false;
  into.resize(count);
  std::memcpy(into.data(), entry.data(), count * sizeof(T));
  entry = entry.subspan(count * sizeof(T));
  return true;
}

}  // namespace

ExampleSet::ExampleSet(const std::string& pattern, const ExampleForm& form,
                       const ExampleEncoding& encoding, const TokenCache& cache) {
  LS_ASSERT(encoding.tokenizer != nullptr && encoding.longest > 1);
  LS_CHECK(!encoding.begin_of_text || encoding.tokenizer->begin_of_text(), ConfigError,
           "[data] the {} tokenizer has no token that begins a text: expected begin_of_text to be "
           "false.",
           encoding.tokenizer->name());
  files_ = find_files(pattern);
  if (!cache.stores() || encoding.tokenizer->name() == "byte") {
    read(pattern, form, encoding);
    return;
  }
  const ContentHash key = key_of(files_, pattern, form, encoding);
  const std::optional<TokenCache::Entry> entry = cache.find(kExamplesKind, key);
  if (entry && take(entry->bytes, encoding.tokenizer->vocabulary())) return;
  read(pattern, form, encoding);
  store(cache, key);
}

bool ExampleSet::take(std::span<const std::byte> entry, int64_t vocabulary) {
  ExampleSet found;
  std::vector<ExamplesHead> head;
  std::vector<KeptExample> kept;
  if (!copy_next(entry, 1, head) || !copy_next(entry, head[0].tokens, found.tokens_) ||
      !copy_next(entry, head[0].examples, kept) ||
      !copy_next(entry, head[0].tokens, found.counted_)) {
    return false;
  }
  int64_t begin = 0;
  for (const KeptExample& each : kept) {
    if (each.end <= begin || each.end > found.tokens() || each.file >= files_.size()) return false;
    found.examples_.push_back({begin, each.end, static_cast<uint32_t>(each.file), each.line});
    begin = each.end;
  }
  const bool fits =
      begin == found.tokens() && begin > 0 &&
      std::ranges::all_of(found.tokens_, [&](uint32_t id) { return id < vocabulary; });
  if (!fits) return false;
  std::string note;
  for (const std::byte each : entry) {
    if (each != std::byte{0}) {
      note += static_cast<char>(each);
    } else {
      found.notes_.push_back(std::exchange(note, {}));
    }
  }
  found.files_ = std::move(files_);
  *this = std::move(found);
  return true;
}

void ExampleSet::store(const TokenCache& cache, const ContentHash& key) const {
  const ExamplesHead head{tokens_.size(), examples_.size()};
  std::vector<KeptExample> kept;
  for (const Example& each : examples_) kept.push_back({each.end, each.line, each.file});
  std::string notes;
  for (const std::string& each : notes_) notes.append(each).push_back('\0');
  const std::array parts = {std::as_bytes(std::span(&head, 1)), std::as_bytes(std::span(tokens_)),
                            std::as_bytes(std::span(kept)), std::as_bytes(std::span(counted_)),
                            std::as_bytes(std::span(notes))};
  cache.store(kExamplesKind, key, parts);
}

void ExampleSet::read(const std::string& pattern, const ExampleForm& form,
                      const ExampleEncoding& encoding) {
  int64_t cut = 0, left_out = 0, without_targets = 0;
  for (size_t number = 0; number < files_.size(); ++number) {
    const std::filesystem::path& file = files_[number];
    ExampleReader reader(file, form);
    for (std::vector<ExamplePart> parts; reader.next(parts);) {
      const int64_t begin = tokens();
      add(parts, !form.chat, encoding);
      const int64_t size = tokens() - begin;
      LS_CHECK(size <= encoding.longest || encoding.too_long != LongExample::kRefuse, DataError,
               "[data] {}:{}: the example has {} tokens: expected at most {}, the model's "
               "context_length and one. Shorten it, or choose too_long: CUT or LEAVE_OUT.",
               file.string(), reader.line(), size, encoding.longest);
      const bool fits = size <= encoding.longest;
      const bool cuts = encoding.too_long == LongExample::kCut;
      if (!fits) shorten(begin + (cuts ? encoding.longest : 0));
      if (std::find(counted_.begin() + begin, counted_.end(), 1) == counted_.end()) {
        shorten(begin);
        ++(fits || cuts ? without_targets : left_out);
        continue;
      }
      cut += fits ? 0 : 1;
      examples_.push_back({begin, tokens(), static_cast<uint32_t>(number), reader.line()});
    }
    if (reader.skipped() > 0) {
      notes_.push_back(fmt::format("{}: skipped {} damaged line{}, the first of them {}",
                                   file.string(), reader.skipped(),
                                   reader.skipped() == 1 ? "" : "s", reader.first_skipped()));
    }
  }
  const auto note = [&](int64_t examples, const std::string& what) {
    if (examples == 0) return;
    notes_.push_back(fmt::format("{}: {} example{} {}", pattern, examples,
                                 examples == 1 ? " was" : "s were", what));
  };
  note(cut, fmt::format("cut at the {} tokens of a row", encoding.longest));
  note(left_out, fmt::format("left out, longer than the {} tokens of a row", encoding.longest));
  note(without_targets,
       fmt::format("left out: nothing that counts is within the {} tokens of a row",
                   encoding.longest));
  LS_CHECK(count() > 0, DataError, "[data] {}: there are no examples{}.", pattern,
           notes_.empty() ? "" : ", " + notes_.front());
}

void ExampleSet::add(const std::vector<ExamplePart>& parts, bool ends,
                     const ExampleEncoding& encoding) {
  const Tokenizer& tokenizer = *encoding.tokenizer;
  const auto begin = static_cast<ptrdiff_t>(tokens_.size());
  bool is_first = true;
  const auto append = [&](const std::string& text, bool special, bool counted) {
    if (!is_first) {
      encode_continued(tokenizer, text, special, tokens_);
    } else if (special) {
      tokenizer.encode_with_special(text, tokens_);
    } else {
      tokenizer.encode(text, tokens_);
    }
    is_first = is_first && text.empty();
    counted_.resize(tokens_.size(), counted ? 1 : 0);
  };
  if (encoding.begin_of_text) {
    tokens_.push_back(*tokenizer.begin_of_text());
    counted_.push_back(0);
  }
  for (const ExamplePart& each : parts) append(each.text, each.special, each.counted);
  if (ends && encoding.end.empty() && tokenizer.end_of_text()) {
    tokens_.push_back(*tokenizer.end_of_text());
    counted_.push_back(1);
  } else if (ends) {
    append(encoding.end.empty() ? "\n" : encoding.end, true, true);
  }
  *(counted_.begin() + begin) = 0;  // nothing precedes the first token that could predict it
}

void ExampleSet::shorten(int64_t tokens) {
  tokens_.resize(static_cast<size_t>(tokens));
  counted_.resize(tokens_.size());
}

std::span<const uint32_t> ExampleSet::tokens(int64_t example) const {
  const Example& each = examples_[static_cast<size_t>(example)];
  return std::span(tokens_).subspan(static_cast<size_t>(each.begin),
                                    static_cast<size_t>(each.end - each.begin));
}

std::span<const uint8_t> ExampleSet::counted(int64_t example) const {
  const Example& each = examples_[static_cast<size_t>(example)];
  return std::span(counted_).subspan(static_cast<size_t>(each.begin),
                                     static_cast<size_t>(each.end - each.begin));
}

SampleOrigin ExampleSet::origin(int64_t example) const {
  const Example& each = examples_[static_cast<size_t>(example)];
  return {.file = files_[each.file].string(), .unit = "byte", .first = 0, .line = each.line};
}

int64_t ExampleSet::counted_tokens() const { return std::ranges::count(counted_, 1); }

ExampleSet ExampleSet::take_last(int64_t count) {
  LS_ASSERT(count >= 0 && count < this->count());
  ExampleSet last;
  if (count == 0) return last;
  const auto first = examples_.end() - count;
  const int64_t begin = first->begin;
  last.tokens_.assign(tokens_.begin() + begin, tokens_.end());
  last.counted_.assign(counted_.begin() + begin, counted_.end());
  last.examples_.assign(first, examples_.end());
  for (Example& each : last.examples_) {
    each.begin -= begin;
    each.end -= begin;
  }
  last.files_ = files_;
  shorten(begin);
  examples_.erase(first, examples_.end());
  return last;
}

ContentHash ExampleSet::hash() const {
  ContentHasher hasher;
  hasher.add(std::as_bytes(std::span(tokens_))).add(std::as_bytes(std::span(counted_)));
  for (const Example& each : examples_) hasher.add(static_cast<uint64_t>(each.end));
  return hasher.result();
}

}  // namespace lockstep::train
