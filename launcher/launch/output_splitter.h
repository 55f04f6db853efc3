#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::launcher {

/// How a launcher tags output with the rank that wrote it.
enum class OutputTags {
  kNone,      ///< no tags: all output is one rank's
  kOpenMpi4,  ///< "[1,3]<stdout>:text"
  kOpenMpi5,  ///< "[prterun-host-17@1,3]<stdout>: text"
  kSlurm,     ///< "3: text"
};

struct OutputLine {
  int rank = -1;  ///< -1: the launcher itself
  bool is_error = false;
  std::string text;  ///< without the end of line
};

/// Splits one output stream of a launcher, in which pieces of several ranks' lines may be
/// interleaved, into lines of ranks. A line longer than 64 KiB is delivered in pieces.
class OutputSplitter {
 public:
  /// `is_error`: the stream is the launcher's standard error. `rank`: whose output it is, where it
  /// has no tags.
  OutputSplitter(OutputTags tags, bool is_error, std::function<void(const OutputLine&)> take,
                 int rank = 0);

  void feed(std::string_view bytes);
  /// Call at the end of the stream: delivers incomplete last lines.
  void finish();

 private:
  using Source = std::pair<int, bool>;  ///< rank, and whether it is the rank's standard error

  /// Consumes the complete part of `buffer_`, or all of it at the end.
  void take_buffer(bool at_end);
  /// Parses the tag at `at`, sets the current source, and returns the tag's length; 0 if there is
  /// none, npos if more bytes are needed to decide.
  size_t take_tag(size_t at, bool at_line_start);
  size_t take_open_mpi_tag(std::string_view text);
  size_t take_slurm_tag(std::string_view text);
  void emit(const Source& source);

  OutputTags tags_;
  Source untagged_;  ///< source of text without a tag
  std::function<void(const OutputLine&)> take_;
  std::string buffer_;
  bool at_line_start_ = true;
  Source current_;
  std::map<Source, std::string> pieces_;
};

}  // namespace lockstep::launcher
