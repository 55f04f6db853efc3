#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::launcher {

/// How a launcher marks which rank wrote.
enum class OutputTags {
  kNone,      ///< all is rank 0's
  kOpenMpi4,  ///< "[1,3]<stdout>:text"
  kOpenMpi5,  ///< "[prterun-host-17@1,3]<stdout>: text"
  kSlurm,     ///< "3: text"
};

struct OutputLine {
  int rank = -1;  ///< -1: the launcher itself
  bool is_error = false;
  std::string text;  ///< without the end of line
};

/// Makes lines of ranks out of one stream of a launcher, which may hold pieces of several ranks'
/// lines between each other. A line longer than 64 KiB comes in pieces.
class OutputSplitter {
 public:
  /// `is_error`: the stream is the launcher's standard error.
  OutputSplitter(OutputTags tags, bool is_error, std::function<void(const OutputLine&)> take);

  void feed(std::string_view bytes);
  /// The stream has ended: gives what no end of line followed.
  void finish();

 private:
  using Source = std::pair<int, bool>;  ///< rank, and whether it is the rank's standard error

  /// Takes what of `buffer_` is complete; at the end everything.
  void take_buffer(bool at_end);
  /// The length of the tag at `at`, whose source becomes the current one; 0 if there is none, npos
  /// if more bytes must tell.
  size_t take_tag(size_t at, bool at_line_start);
  size_t take_open_mpi_tag(std::string_view text);
  size_t take_slurm_tag(std::string_view text);
  void emit(const Source& source);

  OutputTags tags_;
  bool is_error_;
  std::function<void(const OutputLine&)> take_;
  std::string buffer_;
  bool at_line_start_ = true;
  Source current_;
  std::map<Source, std::string> pieces_;
};

}  // namespace lockstep::launcher
