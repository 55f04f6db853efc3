#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/gzip.h"
#include "data/line_reader.h"

namespace lockstep::train {

/// Reads a table of numbers row by row, of which only one line is in memory: comma-separated finite
/// numbers, as many in each row. A first line with anything else is a header and is skipped; empty
/// lines may stand at the end. Errors are DataErrors that name file and line.
class TableReader {
 public:
  /// Reads from `text`; `file` is its name in errors.
  TableReader(ByteSource text, std::string file);

  /// Reads the next row into `row`; returns false at the end.
  bool next(std::vector<double>& row);
  /// "FILE:LINE" of the row read last.
  std::string place() const;

 private:
  bool next_line();
  void read(std::string_view text, std::vector<double>& row);

  std::string file_;
  LineReader lines_;
  std::string_view line_text_;  ///< the current line
  int64_t line_ = 0;
  size_t width_ = 0;
  int64_t first_row_ = 0;
};

}  // namespace lockstep::train
