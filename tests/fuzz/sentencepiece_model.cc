#include <fmt/format.h>

#include <string_view>

#include "core/base/error.h"
#include "data/tokenizers/sentencepiece_model.pb.h"
#include "data/tokenizers/sentencepiece_tokenizer.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

/// The smallest valid model. Protocol buffers may be concatenated, so the input after it adds
/// pieces and replaces settings.
const std::string& byte_pieces() {
  static const std::string kBytes = [] {
    sentencepiece::Model model;
    for (int byte = 0; byte < 256; ++byte) {
      sentencepiece::Piece& piece = *model.add_pieces();
      piece.set_text(fmt::format("<0x{:02X}>", byte));
      piece.set_type(sentencepiece::Piece::BYTE);
    }
    model.mutable_trainer()->set_kind(sentencepiece::Trainer::BPE);
    model.mutable_trainer()->set_byte_fallback(true);
    model.mutable_normalizer()->set_remove_extra_whitespaces(false);
    return model.SerializeAsString();
  }();
  return kBytes;
}

void check_model(const train::SentencePieceModel& model) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const uint32_t id = model.byte_tokens[byte];
    require(id < model.tokens.size() && model.tokens[id] == std::string(1, static_cast<char>(byte)),
            "the token of a byte is that byte");
  }
  for (const auto& [text, merge] : model.pieces) {
    require(merge.id < model.tokens.size(), "pieces have ids within the vocabulary");
    std::string_view rest = text;
    while (rest.starts_with(train::kSpaceMark)) rest.remove_prefix(train::kSpaceMark.size());
    require(!model.words_are_separate || rest.find(train::kSpaceMark) == rest.npos,
            "words are separate where no piece holds a mark behind another character");
    require(!model.lines_are_separate || text.find('\n') == text.npos,
            "lines are separate where no piece holds a line end");
  }
  require(!model.end_of_text || *model.end_of_text < model.tokens.size(),
          "the end of a text has an id within the vocabulary");
}

Outcome parse_model(const std::string& bytes, const std::string& text) {
  try {
    check_model(train::parse_sentencepiece(bytes, "fuzzed"));
  } catch (const DataError&) {
    return Outcome::kRefused;
  }
  const train::SentencePieceTokenizer tokenizer(bytes, "fuzzed");
  require(train::decode(tokenizer, train::encode(tokenizer, text)) == text,
          "decoding what was encoded gives the same bytes");
  return Outcome::kAccepted;
}

}  // namespace

Outcome fuzz_sentencepiece_model(Input input) {
  const std::string model = text_of(input);
  const Outcome alone = parse_model(model, model);
  const Outcome completed = parse_model(byte_pieces() + model, model);
  return alone == Outcome::kAccepted ? alone : completed;
}

}  // namespace lockstep::fuzz
