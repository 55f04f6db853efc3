#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Tokenizers as Hugging Face's libraries read them.
namespace lockstep::train {

/// The files of a folder from which AutoTokenizer of transformers makes a tokenizer with the ids of
/// ours, for text that is UTF-8 and spells no special token.
struct HuggingFaceTokenizer {
  static constexpr const char* kFileName = "tokenizer.json";
  static constexpr const char* kConfigName = "tokenizer_config.json";

  std::string tokenizer;  ///< tokenizer.json
  std::string config;     ///< tokenizer_config.json

  /// Writes both to `folder` and returns their names. Throws DataError.
  std::vector<std::string> save(const std::filesystem::path& folder) const;
};

/// The byte tokenizer: 256 tokens and no special ones.
HuggingFaceTokenizer hugging_face_bytes();
/// A BPE tokenizer with the contents of vocab.json and merges.txt, which must be valid.
HuggingFaceTokenizer hugging_face_bpe(std::string_view vocabulary, std::string_view merges);
/// A SentencePiece tokenizer with the content of tokenizer.model, which must be valid.
HuggingFaceTokenizer hugging_face_sentencepiece(std::string_view model);

}  // namespace lockstep::train
