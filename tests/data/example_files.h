#pragma once

#include <string>
#include <vector>

#include "data/example_set.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {

/// A line with this prompt and this completion, neither of which needs escapes.
inline std::string example_line(const std::string& prompt, const std::string& completion) {
  return "{\"prompt\": \"" + prompt + "\", \"completion\": \"" + completion + "\"}\n";
}

/// The tokens of an example, each that counts with a star behind it: "a b* c*".
inline std::string marked(const ExampleSet& examples, int64_t example, const Tokenizer& tokenizer) {
  std::string text;
  for (size_t i = 0; i < examples.tokens(example).size(); ++i) {
    if (!text.empty()) text += ' ';
    tokenizer.decode(examples.tokens(example)[i], text);
    if (examples.counted(example)[i] != 0) text += '*';
  }
  return text;
}

}  // namespace lockstep::train
