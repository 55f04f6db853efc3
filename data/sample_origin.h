#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::train {

class Documents;
class TokenArray;
class Tokenizer;

/// Where a training sample begins in the files that the data was read from.
struct SampleOrigin {
  std::string file;
  const char* unit = "byte";  ///< what `first` counts: "byte", "token", "row"
  int64_t first = 0;          ///< from 0
  /// The line of `file`, from 1, that holds the text in which `first` counts; 0: that is the file.
  int64_t line = 0;
  int64_t others = 0;  ///< further texts of the sample, behind this one: examples of a packed row
  friend bool operator==(const SampleOrigin&, const SampleOrigin&) = default;
};

/// The file, with the line where a line is a text of its own: "texts.jsonl:17", or
/// "texts.jsonl:17 and 2 others".
std::string file_and_line(const SampleOrigin& origin);

/// Where tokens lie in the documents that `tokens` were made of by `tokenizer` (tokenize in
/// data/tokenized_text.h). `offsets` are indices of tokens. In documents that the tokenizer brings
/// into another form (TokenizerJson::composes) bytes count in that form. Takes the time to decode
/// all tokens before the last of them.
std::vector<SampleOrigin> origins_in(const Documents& documents, const TokenArray& tokens,
                                     const Tokenizer& tokenizer, std::span<const int64_t> offsets);

}  // namespace lockstep::train
