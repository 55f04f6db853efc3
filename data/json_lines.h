#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/base/files/gzip.h"
#include "data/line_reader.h"

namespace lockstep::train {

/// How documents are read from files of JSON lines.
struct JsonLinesOptions {
  std::string field = "text";  ///< the member of each line's object that holds the text
  /// Stands between two documents. Empty: the tokenizer's end_of_text, or a line end where it has
  /// none.
  std::string separator = {};
  bool skip_damaged_lines = false;  ///< and count them; false: the first one is an error
};

/// Whether `path` is read as JSON lines: its name ends in .jsonl, .jsonl.gz or .jsonl.zst.
bool is_json_lines(const std::filesystem::path& path);

/// Reads the texts of a file that has one JSON object on each line. Empty lines and empty texts are
/// passed over.
class JsonLinesReader {
 public:
  /// Opens `path`, of which is_json_lines must be true. Throws DataError if it cannot be read.
  JsonLinesReader(const std::filesystem::path& path, JsonLinesOptions options);
  /// Reads the uncompressed lines from `source`; `file` names it in errors.
  JsonLinesReader(ByteSource source, std::string file, JsonLinesOptions options);

  /// Replaces `text` by the next text, which is UTF-8; returns false at the end. Throws DataError
  /// naming file and line for a line that is not UTF-8, not a JSON object or has no string in
  /// `field`, unless such lines are to be skipped; and for damaged compression in any case.
  bool next(std::string& text);
  /// Number of the line that `next` read last, from 1.
  int64_t line() const { return lines_.line(); }
  /// Number of lines that were skipped so far, and what `next` would have said of the first.
  int64_t skipped() const { return skipped_; }
  const std::string& first_skipped() const { return first_skipped_; }

 private:
  JsonLinesOptions options_;
  LineReader lines_;
  int64_t skipped_ = 0;
  std::string first_skipped_;
};

}  // namespace lockstep::train
