#include "core/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace lockstep {
namespace {

std::filesystem::path temporary_beside(const std::filesystem::path& destination) {
  std::filesystem::path path = destination;
  path += fmt::format(".partial-{}", ::getpid());
  return path;
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path destination)
    : destination_(std::move(destination)),
      file_(temporary_beside(destination_), O_WRONLY | O_CREAT | O_TRUNC) {}

AtomicFile::~AtomicFile() {
  if (!published_) ::unlink(file_.path().c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  // The disk works on each MiB while the next one is written.
  constexpr size_t kPiece = size_t{1} << 20;
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kPiece));
    file_.write(piece);
    if (piece.size() == kPiece) file_.start_writeback();
    bytes = bytes.subspan(piece.size());
  }
}

void AtomicFile::publish() {
  file_.sync();
  file_.close();
  const int code = std::rename(file_.path().c_str(), destination_.c_str()) == 0 ? 0 : errno;
  LS_CHECK(code == 0, DataError, "[rename] {} to {}: {}.", file_.path().string(),
           destination_.string(), std::generic_category().message(code));
  published_ = true;
  const std::filesystem::path folder = destination_.parent_path();
  FileDescriptor(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY).sync();
}

void write_text(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(content)));
  file.publish();
}

}  // namespace lockstep
