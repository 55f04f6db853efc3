#include "core/base/files/lines_from_end.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>

namespace lockstep {

LinesFromEnd::LinesFromEnd(const std::filesystem::path& path)
    : file_(path, kMostMappedBytes), begin_(file_.bytes()) {}

std::optional<std::string> LinesFromEnd::next() {
  for (;;) {
    const size_t end = text_.size() - (text_.ends_with('\n') ? 1 : 0);
    const size_t newline = end == 0 ? text_.npos : text_.rfind('\n', end - 1);
    if (newline == text_.npos && begin_ > 0) {
      read_block();
      continue;
    }
    if (text_.empty()) return std::nullopt;
    const size_t first = newline == text_.npos ? 0 : newline + 1;
    was_whole_ = end != text_.size();
    std::string line = text_.substr(first, end - first);
    text_.resize(first);
    return line;
  }
}

void LinesFromEnd::read_block() {
  constexpr uint64_t kBlock = 65536;
  const uint64_t bytes = std::min(begin_, kBlock);
  std::string block(bytes, '\0');
  if (::lseek(file_.descriptor(), static_cast<off_t>(begin_ - bytes), SEEK_SET) < 0) {
    throw FileError(file_.path(), std::generic_category().message(errno));
  }
  if (file_.read(std::as_writable_bytes(std::span(block))) != bytes) {
    throw FileError(file_.path(), "it became shorter while it was read");
  }
  text_.insert(0, block);
  begin_ -= bytes;
}

}  // namespace lockstep
