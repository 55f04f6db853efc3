#include "train/metrics.h"

#include <fcntl.h>

#include <span>
#include <string>

namespace lockstep::train {

MetricsWriter::MetricsWriter(const std::filesystem::path& path)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND) {}

void MetricsWriter::write(const JsonLine& record) {
  const std::string line = record.text() + "\n";
  file_.write(std::as_bytes(std::span(line)));
}

}  // namespace lockstep::train
