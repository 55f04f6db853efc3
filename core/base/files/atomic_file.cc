#include "core/base/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace lockstep {
namespace {

constexpr std::string_view kPartial = ".partial-";

std::filesystem::path temporary_beside(const std::filesystem::path& destination) {
  std::filesystem::path path = destination;
  path += fmt::format("{}{}", kPartial, ::getpid());
  return path;
}

/// The process that writes or wrote the temporary file `name`; nothing for other names.
std::optional<pid_t> writer_of(const std::string& name) {
  const size_t at = name.rfind(kPartial);
  if (at == name.npos || at == 0) return std::nullopt;
  const char* end = name.data() + name.size();
  pid_t pid = 0;
  const auto read = std::from_chars(name.data() + at + kPartial.size(), end, pid);
  if (read.ec != std::errc{} || read.ptr != end || pid <= 0) return std::nullopt;
  return pid;
}

bool has_ended(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

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

void remove_stale_partials(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::directory_iterator entry(folder, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::optional<pid_t> pid = writer_of(entry->path().filename().string());
    if (!pid || !has_ended(*pid)) continue;
    if (!fs::is_regular_file(entry->symlink_status(failed)) || failed) continue;
    fs::remove(entry->path(), failed);
    LS_CHECK(!failed, DataError, "[remove] {}: {}.", entry->path().string(), failed.message());
  }
  LS_CHECK(!failed, DataError, "[remove] {} cannot be listed: {}.", folder.string(),
           failed.message());
}

}  // namespace lockstep
