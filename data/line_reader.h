#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/files/gzip.h"

namespace lockstep::train {

/// Reads a text line by line, of which only one line is in memory. Errors are DataErrors that name
/// file and line.
class LineReader {
 public:
  /// Reads from `source`; `file` is its name in errors. Lines longer than `longest` bytes are
  /// refused.
  LineReader(ByteSource source, std::string file, size_t longest);

  /// Goes to the next line; returns false at the end.
  bool next();
  /// The current line without its line feed, valid until the next call of `next`.
  std::string_view text() const { return text_; }
  /// Number of the current line, from 1; 0 before the first.
  int64_t line() const { return line_; }
  /// "FILE:LINE" of the current line.
  std::string place() const;

 private:
  ByteSource source_;
  std::string file_;
  size_t longest_;
  std::string buffer_;  ///< bytes read and not yet used, from `begin_` on
  size_t begin_ = 0;
  bool at_end_ = false;    ///< `source_` has no more
  std::string_view text_;  ///< in buffer_
  int64_t line_ = 0;
};

}  // namespace lockstep::train
