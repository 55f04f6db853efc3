#include "train/report/metrics.h"

#include <fcntl.h>

#include <algorithm>
#include <span>
#include <string>

#include "core/base/mapped_file.h"

namespace lockstep::train {

MetricsWriter::MetricsWriter(const std::filesystem::path& path)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND) {
  if (!std::filesystem::is_regular_file(path)) return;  // a pipe or a device has no last line
  const MappedFile written(path);
  const std::span<const std::byte> text = written.bytes();
  const auto end = std::find(text.rbegin(), text.rend(), std::byte{'\n'});
  const auto whole_lines = text.rend() - end;
  if (whole_lines < std::ssize(text)) file_.truncate(static_cast<uint64_t>(whole_lines));
}

void MetricsWriter::write(const JsonLine& record) {
  const std::string line = record.text() + "\n";
  file_.write(std::as_bytes(std::span(line)));
}

}  // namespace lockstep::train
