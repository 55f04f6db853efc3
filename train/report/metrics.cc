#include "train/report/metrics.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/files/folders.h"
#include "core/base/files/regular_file.h"

namespace lockstep::train {

namespace {

/// The step of a record; nothing for other lines.
std::optional<int64_t> step_of(std::string_view line) {
  // Other members are not parsed: the file may have millions of lines.
  constexpr std::string_view kStep = "{\"step\":";
  if (!line.starts_with(kStep)) return std::nullopt;
  int64_t step = 0;
  const auto read = std::from_chars(line.data() + kStep.size(), line.data() + line.size(), step);
  return read.ec == std::errc{} ? std::optional(step) : std::nullopt;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& path)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND) {
  if (!std::filesystem::is_regular_file(path)) return;  // a pipe or a device has no last line
  const std::string written = read_whole_file(path);
  // A new file's name must outlast a power cut too.
  if (written.empty()) sync_folder(path.has_parent_path() ? path.parent_path() : ".");
  const std::span<const std::byte> text = std::as_bytes(std::span(written));
  const auto end = std::find(text.rbegin(), text.rend(), std::byte{'\n'});
  const auto whole_lines = text.rend() - end;
  if (whole_lines < std::ssize(text)) file_.truncate(static_cast<uint64_t>(whole_lines));
}

void MetricsWriter::write(const JsonLine& record) {
  const std::string line = record.text() + "\n";
  file_.write(std::as_bytes(std::span(line)));
}

void drop_steps_after(const std::filesystem::path& path, int64_t step) {
  if (!name_exists(path) || !std::filesystem::is_regular_file(path)) return;
  const std::string text = read_whole_file(path);
  size_t keep = text.size();
  for (size_t end = text.size(); end > 0;) {
    const size_t newline = end >= 2 ? text.rfind('\n', end - 2) : text.npos;
    const size_t begin = newline == text.npos ? 0 : newline + 1;
    const std::optional<int64_t> found = step_of(std::string_view(text).substr(begin, end - begin));
    if (found && *found <= step) break;
    if (found) keep = begin;
    end = begin;
  }
  if (keep == text.size()) return;
  FileDescriptor file(path, O_WRONLY);
  file.truncate(keep);
  file.close();
}

}  // namespace lockstep::train
