#include "core/base/files/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace lockstep {
namespace {

std::string system_reason(int code) { return std::generic_category().message(code); }

/// What a file that is not a regular one is; empty for a regular file.
std::string wrong_kind(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "Is a directory";
  const char* kind = S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
  return fmt::format("it is not a regular file but {}: copy its contents into a file", kind);
}

}  // namespace

FileError::FileError(const std::filesystem::path& path, std::string reason)
    : DataError(fmt::format("[open] {}: {}.", path.string(), reason)), reason_(std::move(reason)) {}

RegularFile::RegularFile(std::filesystem::path path, uint64_t most)
    : path_(std::move(path)), most_(most) {
  // O_NONBLOCK: opening a FIFO would wait for a writer. Regular files ignore it.
  do {
    file_ = OwnedFd(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  } while (!file_ && errno == EINTR);
  // A socket cannot be opened.
  if (!file_) throw FileError(path_, system_reason(errno));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw FileError(path_, system_reason(errno));
  if (std::string kind = wrong_kind(status.st_mode); !kind.empty()) {
    throw FileError(path_, std::move(kind));
  }
  bytes_ = static_cast<uint64_t>(status.st_size);
  if (bytes_ > most_) {
    throw FileError(path_, fmt::format("it has {} bytes: expected at most {}. Is this the file "
                                       "that was meant?",
                                       bytes_, most_));
  }
}

size_t RegularFile::read(std::span<std::byte> into) {
  size_t filled = 0;
  while (filled < into.size()) {
    const ssize_t got = ::read(file_.get(), into.data() + filled, into.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError(path_, system_reason(errno));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  read_ += filled;
  if (read_ > most_) {
    throw FileError(path_, fmt::format("it grew beyond {} bytes while it was read", most_));
  }
  return filled;
}

std::string RegularFile::read_to_end() {
  constexpr size_t kPiece = size_t{64} << 10;
  try {
    std::string text;
    // One byte more than the size, so that the end is reached without growing.
    size_t piece = std::max<size_t>(bytes_ > read_ ? bytes_ - read_ + 1 : 0, kPiece);
    while (true) {
      const size_t filled = text.size();
      text.resize(filled + piece);
      const size_t got = read(std::as_writable_bytes(std::span(text).subspan(filled)));
      text.resize(filled + got);
      if (got < piece) return text;
      piece = kPiece + text.size() / 2;
    }
  } catch (const std::bad_alloc&) {
    throw FileError(path_, fmt::format("there is no memory for its {} bytes", bytes_));
  }
}

std::string read_whole_file(const std::filesystem::path& path, uint64_t most) {
  return RegularFile(path, most).read_to_end();
}

std::vector<std::byte> read_whole_bytes(const std::filesystem::path& path, uint64_t most) {
  RegularFile file(path, most);
  try {
    std::vector<std::byte> contents(file.bytes());
    const size_t got = file.read(contents);
    if (got < contents.size()) {
      throw FileError(path, fmt::format("it ended after {} of {} bytes: it was made shorter while "
                                        "it was read",
                                        got, contents.size()));
    }
    return contents;
  } catch (const std::bad_alloc&) {
    throw FileError(path, fmt::format("there is no memory for its {} bytes", file.bytes()));
  }
}

bool is_file_name(std::string_view name) {
  constexpr std::string_view kSeparators("/\\\0", 3);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kSeparators) == std::string_view::npos;
}

}  // namespace lockstep
