#include <string>
#include <vector>

#include "core/base/error.h"
#include "data/tokenizers/json_tokenizer.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

/// A byte-level tokenizer with 256 bytes, in which `part` stands for some of its members.
std::string completed(std::string_view part) {
  static const std::string kBytes = [] {
    std::string members;
    for (int byte = 0; byte < 256; ++byte) {
      std::string written = train::written_bytes(std::string(1, static_cast<char>(byte)));
      if (written == "\"" || written == "\\") written.insert(0, "\\");
      members += fmt::format("{}\"{}\":{}", byte == 0 ? "" : ",", written, byte);
    }
    return members;
  }();
  return fmt::format(
      R"({{"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false}},)"
      R"("model":{{"type":"BPE","vocab":{{{},"the":256,"th":257}},"merges":["t h","th e"]}}{}{}}})",
      kBytes, part.empty() ? "" : ",", part);
}

/// Returns whether the tokenizer is accepted.
bool read_tokenizer(const std::string& text) {
  try {
    const train::JsonTokenizer tokenizer(text, "", "fuzzed");
    const std::string sample = "the  x 123\n\xff caf\u00e9 <|endoftext|>" + text.substr(0, 100);
    for (const auto& ids :
         {train::encode(tokenizer, sample), train::encode_special(tokenizer, sample)}) {
      std::string decoded;
      for (const uint32_t id : ids) {
        require(id < tokenizer.vocabulary(), "ids are within the vocabulary");
        tokenizer.decode(id, decoded);
      }
    }
    require(std::ssize(tokenizer.written_tokens()) == tokenizer.vocabulary(), "tokens are written");
    (void)tokenizer.merges();
    return true;
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("[tokenizer] fuzzed: "),
            "an error names its file");
    return false;
  }
}

}  // namespace

Outcome fuzz_tokenizer_json(Input input) {
  const std::string text(input.begin(), input.end());
  const bool alone = read_tokenizer(text);
  return read_tokenizer(completed(text)) || alone ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace lockstep::fuzz
