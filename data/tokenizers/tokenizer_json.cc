#include "data/tokenizers/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.h"
#include "data/tokenizers/pre_tokenizer.h"
#include "data/tokenizers/sentencepiece_model.h"
#include "data/tokenizers/tokenizer_config.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::json;

/// How many times as many ids there may be as tokens: some files leave ids out.
constexpr uint64_t kMostIdsPerToken = 4;
constexpr uint64_t kFewIds = 1024;

std::string shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The parser of one file: what its checks share.
class Reader {
 public:
  Reader(const Json& document, const std::string& file) : document_(document), file_(file) {}

  TokenizerJson read() {
    require(document_.is_object(), "expected an object with the members of a tokenizer");
    end_of_ids_ = kFewIds + kMostIdsPerToken * (member(member(document_, "model"), "vocab").size() +
                                                member(document_, "added_tokens").size());
    read_model();
    read_normalizer();
    read_pre_tokenizer();
    read_added();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError(fmt::format("[tokenizer] {}: {}.", file_, problem));
  }
  void require(bool ok, const std::string& problem) const {
    if (!ok) fail(problem);
  }
  [[noreturn]] void refuse(const std::string& part, const Json& value) const {
    fail(
        fmt::format("{} {} is not supported: expected byte-level BPE as of GPT-2 or Llama 3, or "
                    "BPE with byte fallback as of Llama 2",
                    part, shown(value)));
  }

  /// The member `name`; null if it is missing.
  static const Json& member(const Json& object, const char* name) {
    static const Json kNull;
    if (!object.is_object()) return kNull;
    const auto found = object.find(name);
    return found == object.end() ? kNull : *found;
  }
  bool flag(const Json& object, const char* name, bool otherwise = false) const {
    const Json& value = member(object, name);
    if (value.is_null()) return otherwise;
    require(value.is_boolean(), fmt::format("{:?} is no boolean", name));
    return value.get<bool>();
  }
  static std::string type_of(const Json& object) {
    const Json& type = member(object, "type");
    return type.is_string() ? type.get<std::string>() : "";
  }
  uint32_t id_of(const Json& value, const std::string& token) const {
    if (value.is_number_unsigned() && value.get<uint64_t>() < end_of_ids_) {
      return value.get<uint32_t>();
    }
    fail(fmt::format("the id of {:?} is {}: expected a whole number below {}", token, shown(value),
                     end_of_ids_));
  }

  void read_model() {
    const Json& model = member(document_, "model");
    require(model.is_object(), "it has no model");
    const std::string type = type_of(model);
    // Files of old versions do not name the type.
    const bool is_bpe = type == "BPE" || (type.empty() && model.contains("merges"));
    if (!is_bpe) refuse("a model of the type", member(model, "type"));
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = member(model, name);
      if (!value.is_null() && value != "") refuse(name, value);
    }
    if (const Json& dropout = member(model, "dropout"); !dropout.is_null() && dropout != 0) {
      refuse("dropout", dropout);
    }
    // With the bytes' tokens written as GPT-2 does there is nothing to fall back to.
    is_byte_level_ = has_byte_level(member(document_, "pre_tokenizer"));
    result_.byte_fallback = !is_byte_level_;
    if (!is_byte_level_ && !flag(model, "byte_fallback")) {
      refuse("a pre_tokenizer", member(document_, "pre_tokenizer"));
    }
    result_.whole_pieces = flag(model, "ignore_merges");
    if (result_.whole_pieces && !is_byte_level_) refuse("ignore_merges with byte_fallback", true);
    read_vocabulary(member(model, "vocab"));
    read_merges(member(model, "merges"));
  }

  static bool has_byte_level(const Json& part) {
    if (type_of(part) == "ByteLevel") return true;
    const Json& parts = member(part, "pretokenizers");
    return parts.is_array() && std::ranges::any_of(parts, has_byte_level);
  }

  /// The bytes that a written token stands for.
  std::string decoded(const std::string& written) const {
    if (is_byte_level_) return bytes_of_written(written).value_or(written);
    if (const auto byte = byte_of(written)) return std::string(1, static_cast<char>(*byte));
    std::string text;
    for (size_t at = 0; at < written.size();) {
      const bool is_mark = std::string_view(written).substr(at).starts_with(kSpaceMark);
      text += is_mark ? ' ' : written[at];
      at += is_mark ? kSpaceMark.size() : 1;
    }
    return text;
  }
  /// The byte of "<0x41>".
  static std::optional<uint8_t> byte_of(std::string_view written) {
    if (written.size() != 6 || !written.starts_with("<0x") || written[5] != '>') {
      return std::nullopt;
    }
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const size_t high = kDigits.find(written[3]), low = kDigits.find(written[4]);
    if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
    return static_cast<uint8_t>(high * 16 + low);
  }

  void set_token(uint32_t id, std::string bytes) {
    std::vector<std::string>& tokens = result_.vocabulary.tokens;
    if (id >= tokens.size()) tokens.resize(id + size_t{1});
    tokens[id] = std::move(bytes);
  }

  void read_vocabulary(const Json& vocabulary) {
    require(vocabulary.is_object() && !vocabulary.empty(), "the model has no vocabulary");
    std::array<bool, 256> has_byte{};
    std::vector<bool> seen;
    for (const auto& [written, value] : vocabulary.items()) {
      const uint32_t id = id_of(value, written);
      if (id >= seen.size()) seen.resize(id + size_t{1});
      if (seen[id]) fail(fmt::format("{:?} has the id {} of another token", written, id));
      seen[id] = true;
      std::string bytes = decoded(written);
      const bool is_byte = is_byte_level_ ? bytes.size() == 1 && bytes_of_written(written)
                                          : byte_of(written).has_value();
      if (is_byte) {
        const auto byte = static_cast<uint8_t>(bytes[0]);
        result_.vocabulary.byte_tokens[byte] = id;
        has_byte[byte] = true;
      }
      result_.ids.emplace(is_byte_level_ ? bytes : written, id);
      set_token(id, std::move(bytes));
    }
    const auto missing = std::ranges::find(has_byte, false);
    require(missing == has_byte.end(),
            fmt::format("no token stands for the byte {:#04x}: expected one for each of the 256",
                        missing - has_byte.begin()));
  }

  void read_merges(const Json& merges) {
    require(merges.is_array(), "the model has no merges");
    require(merges.size() < UINT32_MAX, "the model has too many merges");
    uint32_t rank = 0;
    for (const Json& merge : merges) {
      const auto [left, right] = parts_of(merge, rank);
      const uint32_t id = merged_id(left + right, rank);
      const uint64_t key = BpeVocabulary::merge_key(merged_id(left, rank), merged_id(right, rank));
      // Of two equal merges the library keeps the last.
      result_.vocabulary.merges.insert_or_assign(key, Merge{rank, id});
      ++rank;
    }
  }
  /// The two tokens of a merge, as the keys of `ids` have them.
  std::pair<std::string, std::string> parts_of(const Json& merge, uint32_t rank) const {
    std::string left, right;
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      const std::string text = merge.is_string() ? merge.get<std::string>() : "";
      const size_t space = text.find(' ');
      if (space == text.npos || text.find(' ', space + 1) != text.npos) {
        fail(fmt::format("merge {} is no pair of tokens", rank));
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    }
    if (!is_byte_level_) return {std::move(left), std::move(right)};
    return {bytes_of_written(left).value_or(left), bytes_of_written(right).value_or(right)};
  }
  uint32_t merged_id(const std::string& token, uint32_t rank) const {
    const auto found = result_.ids.find(token);
    if (found != result_.ids.end()) return found->second;
    fail(fmt::format("merge {}: {:?} is not in the vocabulary", rank, token));
  }

  static bool is_replacement(const Json& part) {
    return type_of(part) == "Replace" && member(member(part, "pattern"), "String") == " " &&
           member(part, "content") == kSpaceMark;
  }

  void read_normalizer() {
    const Json& normalizer = member(document_, "normalizer");
    if (normalizer.is_null()) return;
    Json parts = member(normalizer, "normalizers");
    if (type_of(normalizer) != "Sequence") parts = Json::array({normalizer});
    for (const Json& part : parts) {
      if (type_of(part) == "NFC" && !result_.normalizes) {
        result_.composes = true;
        continue;
      }
      const bool is_mark = type_of(part) == "Prepend" && member(part, "prepend") == kSpaceMark;
      if (is_byte_level_ || (!is_mark && !is_replacement(part))) refuse("the normalizer", part);
      result_.normalizes = true;
      replaces_spaces_ = replaces_spaces_ || is_replacement(part);
      // Before the replacement or behind it, a mark is a mark.
      if (is_mark) result_.mark = TokenizerJson::Mark::kAlways;
    }
  }

  void read_pre_tokenizer() {
    const Json& whole = member(document_, "pre_tokenizer");
    const Json& parts = member(whole, "pretokenizers");
    if (type_of(whole) == "Sequence" && parts.is_array()) {
      for (const Json& part : parts) read_split(part);
    } else if (!whole.is_null()) {
      read_split(whole);
    }
    if (result_.byte_fallback && !replaces_spaces_) refuse("the normalizer", Json());
  }
  void read_split(const Json& part) {
    const std::string type = type_of(part);
    if (is_byte_level_ && type == "ByteLevel") {
      if (flag(part, "add_prefix_space", true)) refuse("the pre_tokenizer", part);
      // "use_regex" came with a later version.
      if (flag(part, "use_regex", true)) choose(TokenizerJson::Split::kGpt2, part);
    } else if (is_byte_level_ && type == "Split") {
      read_pattern(part);
    } else if (!is_byte_level_ && type == "Metaspace") {
      read_metaspace(part);
    } else {
      refuse("the pre_tokenizer", part);
    }
  }
  void choose(TokenizerJson::Split split, const Json& part) {
    if (result_.split != TokenizerJson::Split::kNone) refuse("a second pre_tokenizer", part);
    result_.split = split;
  }
  void read_pattern(const Json& part) {
    const Json& pattern = member(member(part, "pattern"), "Regex");
    // The patterns leave no gaps, so that what lies between matches says nothing.
    const bool isolated = member(part, "behavior") == "Isolated" && !flag(part, "invert");
    const bool inverted = member(part, "behavior") == "Removed" && flag(part, "invert");
    if (!isolated && !inverted) refuse("the pre_tokenizer", part);
    if (pattern == kGpt2Pattern) return choose(TokenizerJson::Split::kGpt2, part);
    if (pattern == kLlama3Pattern) return choose(TokenizerJson::Split::kLlama3, part);
    if (pattern == kQwen2Pattern) return choose(TokenizerJson::Split::kQwen2, part);
    refuse("the pre_tokenizer", part);
  }
  void read_metaspace(const Json& part) {
    const Json& scheme = member(part, "prepend_scheme");
    const bool is_known = scheme == "first" || scheme == "always" || scheme == "never";
    if (!is_known || member(part, "replacement") != kSpaceMark || flag(part, "split", true) ||
        result_.normalizes) {
      refuse("the pre_tokenizer", part);
    }
    replaces_spaces_ = true;
    result_.mark = scheme == "first"    ? TokenizerJson::Mark::kFirst
                   : scheme == "always" ? TokenizerJson::Mark::kAlways
                                        : TokenizerJson::Mark::kNever;
  }

  void read_added() {
    const Json& added = member(document_, "added_tokens");
    require(added.is_null() || added.is_array(), "added_tokens is no list");
    for (const Json& token : added) {
      const Json& content = member(token, "content");
      require(content.is_string(), "an added token has no content");
      const std::string text = content.get<std::string>();
      const uint32_t id = id_of(member(token, "id"), text);
      if (flag(token, "single_word")) refuse("single_word of", content);
      // An empty one is never found.
      if (text.empty()) continue;
      result_.added.push_back({.id = id,
                               .text = text,
                               .special = flag(token, "special"),
                               .left = flag(token, "lstrip"),
                               .right = flag(token, "rstrip"),
                               .normalized = flag(token, "normalized", true)});
      set_token(id, text);
    }
  }

  const Json& document_;
  const std::string& file_;
  TokenizerJson result_;
  bool is_byte_level_ = false;
  bool replaces_spaces_ = false;
  uint64_t end_of_ids_ = 0;
};

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& file) {
  const Json document = parse_tokenizer_file(text, file);
  return Reader(document, file).read();
}

}  // namespace lockstep::train
