#include "data/line_reader.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace lockstep::train {
namespace {

constexpr size_t kPiece = size_t{64} << 10;

}  // namespace

LineReader::LineReader(ByteSource source, std::string file, size_t longest)
    : source_(std::move(source)), file_(std::move(file)), longest_(longest) {}

std::string LineReader::place() const { return fmt::format("{}:{}", file_, line_); }

bool LineReader::next() {
  size_t searched = begin_;
  size_t end = buffer_.find('\n', searched);
  while (end == buffer_.npos && !at_end_) {
    searched = buffer_.size() - begin_;
    buffer_.erase(0, std::exchange(begin_, 0));
    LS_CHECK(buffer_.size() <= longest_, DataError,
             "[data] {}:{}: the line is longer than {} bytes. Is this the right file?", file_,
             line_ + 1, longest_);
    const size_t filled = buffer_.size();
    buffer_.resize(filled + kPiece);
    const size_t got = source_(std::as_writable_bytes(std::span(buffer_).subspan(filled)));
    buffer_.resize(filled + got);
    at_end_ = got < kPiece;
    end = buffer_.find('\n', searched);
  }
  if (end == buffer_.npos && begin_ == buffer_.size()) return false;
  end = std::min(end, buffer_.size());
  text_ = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = std::min(end + 1, buffer_.size());
  ++line_;
  return true;
}

}  // namespace lockstep::train
