#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

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

/// Whether `path` is read as JSON lines: its name ends in .jsonl, .jsonl.gz or .jsonl.zst, or in
/// .parquet, whose rows become lines (data/parquet.h).
bool is_json_lines(const std::filesystem::path& path);
/// The lines of such a file, decompressed; those of a Parquet file have the members `members`
/// alone. Throws DataError if it cannot be read.
ByteSource open_json_lines(const std::filesystem::path& path,
                           const std::vector<std::string>& members);
/// What is wrong with a line as UTF-8; empty if nothing is.
std::string utf8_problem(std::string_view line);

/// Reads the lines of a file of JSON lines. Blank ones are passed over; damaged ones end the
/// reading, or are skipped and counted.
class DamageableLines {
 public:
  /// Reads the uncompressed lines from `source`; `file` names it in errors.
  DamageableLines(ByteSource source, std::string file, bool skips_damaged);

  /// Reads the next line; returns false at the end. Throws DataError as LineReader.
  bool next();
  std::string_view text() const { return lines_.text(); }
  /// Tells that the line is damaged, and how. Throws DataError naming file and line unless such
  /// lines are to be skipped.
  void skip(const std::string& problem);
  /// Number of the line, from 1.
  int64_t line() const { return lines_.line(); }
  /// Number of lines that were skipped so far, and what was wrong with the first.
  int64_t skipped() const { return skipped_; }
  const std::string& first_skipped() const { return first_skipped_; }

 private:
  LineReader lines_;
  bool skips_damaged_;
  int64_t skipped_ = 0;
  std::string first_skipped_;
};

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
  int64_t skipped() const { return lines_.skipped(); }
  const std::string& first_skipped() const { return lines_.first_skipped(); }

 private:
  std::string field_;
  DamageableLines lines_;
};

}  // namespace lockstep::train
