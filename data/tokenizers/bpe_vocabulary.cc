#include "data/tokenizers/bpe_vocabulary.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.h"
#include "core/base/utf8.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {
namespace {

using Ids = std::unordered_map<std::string, uint32_t>;

/// Maps code points to bytes; -1 for those that stand for no byte. GPT-2 writes printable Latin-1
/// as itself and the other 68 bytes as U+0100, U+0101, ... in order.
const std::array<int, 0x144>& byte_of_character() {
  static const auto kBytes = [] {
    std::array<int, 0x144> bytes;
    bytes.fill(-1);
    size_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      bytes[printable ? static_cast<size_t>(b) : next++] = b;
    }
    return bytes;
  }();
  return kBytes;
}

/// SAX parser for vocab.json; rejects anything but one flat object of numbers.
class VocabularyReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit VocabularyReader(Ids& ids) : ids_(ids) {}
  /// Description of the first error; empty if there was none.
  const std::string& problem() const { return problem_; }

  bool start_object(size_t) override {
    return depth_++ == 0 || fail("a token has an object as its id: expected a number");
  }
  bool end_object() override { return true; }
  bool key(std::string& key) override {
    key_ = key;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ == 0) return not_an_object();
    if (value > UINT32_MAX) return fail(fmt::format("{:?} has the id {}", key_, value));
    if (ids_.emplace(key_, static_cast<uint32_t>(value)).second) return true;
    return fail(fmt::format("{:?} stands there twice", key_));
  }
  bool null() override { return wrong_id(); }
  bool boolean(bool) override { return wrong_id(); }
  bool number_integer(number_integer_t) override { return wrong_id(); }
  bool number_float(number_float_t, const std::string&) override { return wrong_id(); }
  bool string(std::string&) override { return wrong_id(); }
  bool binary(binary_t&) override { return wrong_id(); }
  bool start_array(size_t) override { return wrong_id(); }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    return fail(fmt::format("it is no JSON from byte {} on", at));
  }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool not_an_object() { return fail("expected an object from token to id"); }
  bool wrong_id() {
    return depth_ == 0 ? not_an_object()
                       : fail(fmt::format("the id of {:?} is no whole number from 0 on", key_));
  }

  Ids& ids_;
  std::string key_;
  std::string problem_;
  int depth_ = 0;
};

Ids read_ids(std::string_view text, const std::string& file) {
  Ids ids;
  VocabularyReader reader(ids);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  LS_CHECK(reader.problem().empty(), DataError, "[tokenizer] {}: {}.", file, reader.problem());
  LS_CHECK(!ids.empty(), DataError, "[tokenizer] {}: the vocabulary is empty.", file);
  return ids;
}

void read_tokens(const Ids& ids, const std::string& file, BpeVocabulary& result) {
  result.tokens.resize(ids.size());
  std::vector<bool> seen(ids.size());
  std::array<bool, 256> has_byte{};
  for (const auto& [written, id] : ids) {
    LS_CHECK(id < ids.size() && !seen[id], DataError,
             "[tokenizer] {}: {:?} has the id {}: expected the ids 0 to {}, each once.", file,
             written, id, ids.size() - 1);
    seen[id] = true;
    const std::optional<std::string> bytes = bytes_of_written(written);
    if (bytes && bytes->size() == 1) {
      const auto byte = static_cast<unsigned char>(bytes->front());
      result.byte_tokens[byte] = id;
      has_byte[byte] = true;
    }
    // A special token may hold other characters; its written form is its text.
    result.tokens[id] = bytes.value_or(written);
    if (result.tokens[id] == kEndOfText) result.end_of_text = id;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    LS_CHECK(has_byte[byte], DataError,
             "[tokenizer] {}: no token stands for the byte 0x{:02x}: expected one for each of the "
             "256.",
             file, byte);
  }
}

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void read_merges(std::string_view text, const Ids& ids, const std::string& file,
                 BpeVocabulary& result) {
  uint32_t rank = 0;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    LS_CHECK(space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos,
             DataError, "[tokenizer] {}:{}: expected two tokens and one space between them.", file,
             number);
    const auto id_of = [&](std::string token) {
      const auto found = ids.find(token);
      LS_CHECK(
          found != ids.end(), DataError,
          "[tokenizer] {}:{}: {:?} is not in the vocabulary. Do the two files belong together?",
          file, number, token);
      return found->second;
    };
    const std::string left(line.substr(0, space)), right(line.substr(space + 1));
    const uint64_t key = BpeVocabulary::merge_key(id_of(left), id_of(right));
    LS_CHECK(result.merges.emplace(key, Merge{rank++, id_of(left + right)}).second, DataError,
             "[tokenizer] {}:{}: this merge stands there a second time.", file, number);
  }
}

}  // namespace

std::string written_bytes(std::string_view bytes) {
  static const auto kWritten = [] {
    std::array<std::string, 256> written;
    const auto& table = byte_of_character();
    for (size_t point = 0; point < table.size(); ++point) {
      if (table[point] >= 0) {
        append_utf8(static_cast<uint32_t>(point), written[static_cast<size_t>(table[point])]);
      }
    }
    return written;
  }();
  std::string text;
  for (const char byte : bytes) text += kWritten[static_cast<unsigned char>(byte)];
  return text;
}

std::optional<std::string> bytes_of_written(std::string_view written) {
  std::string bytes;
  for (size_t at = 0; at < written.size();) {
    const CodePoint point = code_point_at(written, at);
    const auto& table = byte_of_character();
    if (!point.valid || point.value >= table.size() || table[point.value] < 0) return std::nullopt;
    bytes += static_cast<char>(table[point.value]);
    at += static_cast<size_t>(point.length);
  }
  return bytes;
}

void BpeVocabulary::encode(std::string_view piece, std::vector<uint32_t>& ids) const {
  LS_CHECK(piece.size() < UINT32_MAX, DataError,
           "[tokenizer] a single word of {} bytes: expected fewer than 2^32. Is this text?",
           piece.size());
  std::vector<Symbol> symbols(piece.size());
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    symbols[i] = {byte_tokens[static_cast<unsigned char>(piece[i])], i, i + 1};
  }
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    const auto found = merges.find(merge_key(left.id, right.id));
    if (found == merges.end()) return std::nullopt;
    return found->second;
  });
  for (const Symbol& symbol : symbols) ids.push_back(symbol.id);
}

BpeVocabulary parse_bpe(std::string_view vocabulary, const std::string& vocabulary_file,
                        std::string_view merges, const std::string& merges_file) {
  const Ids ids = read_ids(vocabulary, vocabulary_file);
  BpeVocabulary result;
  read_tokens(ids, vocabulary_file, result);
  read_merges(merges, ids, merges_file, result);
  return result;
}

}  // namespace lockstep::train
