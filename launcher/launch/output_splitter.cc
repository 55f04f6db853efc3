#include "launcher/launch/output_splitter.h"

#include <algorithm>
#include <optional>

#include "core/base/parse_number.h"

namespace lockstep::launcher {
namespace {

constexpr size_t kLongestLine = 64 * 1024;
constexpr size_t kLongestTag = 300;  // a tag may contain a host name

}  // namespace

OutputSplitter::OutputSplitter(OutputTags tags, bool is_error,
                               std::function<void(const OutputLine&)> take, int rank)
    : tags_(tags),
      untagged_(tags == OutputTags::kNone ? rank : -1, is_error),
      take_(std::move(take)),
      current_(untagged_) {}

void OutputSplitter::feed(std::string_view bytes) {
  buffer_ += bytes;
  take_buffer(false);
}

void OutputSplitter::finish() {
  take_buffer(true);
  while (!pieces_.empty()) emit(pieces_.begin()->first);
}

void OutputSplitter::take_buffer(bool at_end) {
  size_t at = 0;
  while (at < buffer_.size()) {
    const size_t tag = take_tag(at, at_line_start_);
    if (tag == std::string::npos && !at_end) break;
    if (tag != 0 && tag != std::string::npos) {
      at += tag;
      at_line_start_ = false;
      continue;
    }
    // Text up to the next possible tag.
    size_t end = buffer_.find_first_of("[\n", at + (buffer_[at] == '\n' ? 0 : 1));
    end = std::min(end, buffer_.size());
    std::string& piece = pieces_[current_];
    piece.append(buffer_, at, end - at);
    at_line_start_ = at_line_start_ && end == at;
    at = end;
    if (at < buffer_.size() && buffer_[at] == '\n') {
      emit(Source(current_));
      current_ = untagged_;
      at_line_start_ = true;
      ++at;
    } else if (piece.size() > kLongestLine) {
      emit(Source(current_));
    }
  }
  buffer_.erase(0, at);
}

size_t OutputSplitter::take_tag(size_t at, bool at_line_start) {
  const std::string_view text = std::string_view(buffer_).substr(at);
  switch (tags_) {
    case OutputTags::kNone:
      return 0;
    case OutputTags::kSlurm:
      return at_line_start ? take_slurm_tag(text) : 0;
    default:
      // Tags also occur within a line: each piece of a line that was written in pieces has one.
      return text[0] == '[' ? take_open_mpi_tag(text) : 0;
  }
}

size_t OutputSplitter::take_open_mpi_tag(std::string_view text) {
  const size_t close = text.find_first_of("] \n", 1);
  if (close == text.npos) return text.size() < kLongestTag ? text.npos : 0;
  if (text[close] != ']') return 0;
  const size_t comma = text.substr(0, close).rfind(',');
  if (comma == text.npos) return 0;
  const std::optional<int> rank = parse_number<int>(text.substr(comma + 1, close - comma - 1));
  if (!rank || *rank < 0) return 0;
  for (const std::string_view stream : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    const std::string_view rest = text.substr(close + 1, stream.size());
    if (rest.size() < stream.size() && stream.starts_with(rest)) return text.npos;
    if (rest != stream) continue;
    current_ = Source(*rank, stream != "<stdout>:");
    const size_t end = close + 1 + stream.size();
    if (tags_ == OutputTags::kOpenMpi4) return end;
    if (end == text.size()) return text.npos;
    return text[end] == ' ' ? end + 1 : end;
  }
  return 0;
}

size_t OutputSplitter::take_slurm_tag(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return text.npos;
  const size_t colon = text.find_first_not_of("0123456789", begin);
  if (colon == text.npos) return text.npos;
  const std::optional<int> rank = parse_number<int>(text.substr(begin, colon - begin));
  if (!rank || text[colon] != ':') return 0;
  current_ = Source(*rank, untagged_.second);
  if (colon + 1 == text.size()) return text.npos;
  return colon + (text[colon + 1] == ' ' ? 2 : 1);
}

void OutputSplitter::emit(const Source& source) {
  const auto found = pieces_.find(source);
  take_({source.first, source.second, found == pieces_.end() ? "" : std::move(found->second)});
  if (found != pieces_.end()) pieces_.erase(found);
}

}  // namespace lockstep::launcher
