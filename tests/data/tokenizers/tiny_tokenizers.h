#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "data/tokenizers/bpe_tokenizer.h"
#include "tests/core/base/temporary_directory.h"

namespace lockstep::train {

/// How GPT-2's files represent the byte `b`.
inline std::string written_byte(int b) {
  const auto printable = [](int c) {
    return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174;
  };
  uint32_t point = static_cast<uint32_t>(b);
  if (!printable(b)) {
    point = 0x100;
    for (int c = 0; c < b; ++c) point += printable(c) ? 0 : 1;
  }
  std::string text;
  append_utf8(point, text);
  return text;
}

struct BpeFiles {
  std::string vocabulary;
  std::string merges;
};

/// A vocabulary of the 256 bytes (id = byte), the results of `merges` ("t h") in order, and
/// <|endoftext|>.
inline BpeFiles tiny_bpe(const std::vector<std::string>& merges) {
  BpeFiles files{"{", "#version: 0.2\n"};
  int id = 0;
  const auto add = [&](const std::string& token) {
    std::string escaped;
    for (const char c : token) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c;
    }
    files.vocabulary += (id ? ", \"" : "\"") + escaped + "\": " + std::to_string(id);
    ++id;
  };
  for (int b = 0; b < 256; ++b) add(written_byte(b));
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    add(merge.substr(0, space) + merge.substr(space + 1));
    files.merges += merge + "\n";
  }
  add("<|endoftext|>");
  files.vocabulary += "}";
  return files;
}

/// Merges that make "the" (258), " the" (260; Ġ is a space) and "aa" (261).
inline BpeFiles the_bpe() {
  return tiny_bpe({"t h", "\u0120 t", "th e", "\u0120t h", "\u0120th e", "a a"});
}

inline BpeTokenizer make_bpe(const BpeFiles& files, const TemporaryDirectory& folder) {
  put_file(folder / "vocab.json", files.vocabulary);
  put_file(folder / "merges.txt", files.merges);
  return {folder / "vocab.json", folder / "merges.txt"};
}

}  // namespace lockstep::train
