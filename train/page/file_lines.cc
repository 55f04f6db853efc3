#include "train/page/file_lines.h"

#include <span>
#include <string>
#include <vector>

#include "core/base/files/regular_file.h"

namespace lockstep::train {

bool for_each_line(const std::filesystem::path& file,
                   const std::function<void(std::string_view line, int64_t number)>& line) {
  constexpr size_t kPiece = size_t{1} << 20;
  RegularFile source(file, kMostMappedBytes);
  std::vector<char> piece(kPiece);
  std::string rest;  // of a line that the pieces so far do not end
  int64_t number = 0;
  for (;;) {
    const size_t count = source.read(std::as_writable_bytes(std::span(piece)));
    std::string_view text(piece.data(), count);
    for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      const std::string_view part = text.substr(0, end);
      if (rest.empty()) {
        line(part, ++number);
      } else {
        line(rest.append(part), ++number);
        rest.clear();
      }
    }
    rest.append(text);
    if (count < kPiece) return !rest.empty();
  }
}

}  // namespace lockstep::train
