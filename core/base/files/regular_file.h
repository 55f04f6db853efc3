#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/owned_fd.h"

namespace lockstep {

/// A file that cannot be read. The message is "[open] PATH: REASON."
class FileError : public DataError {
 public:
  FileError(const std::filesystem::path& path, std::string reason);
  /// "No such file or directory", for messages of another form.
  const std::string& reason() const noexcept { return reason_; }

 private:
  std::string reason_;
};

/// Largest text that is read into memory: texts to train on, metrics, traces.
inline constexpr uint64_t kMostTextBytes = uint64_t{64} << 30;
/// Largest file of a tokenizer.
inline constexpr uint64_t kMostVocabularyBytes = uint64_t{1} << 30;
/// Largest file that is mapped: weights and tokens.
inline constexpr uint64_t kMostMappedBytes = uint64_t{1} << 44;

/// A file whose contents come from elsewhere, opened for reading. All such files are opened here,
/// so that none is a FIFO that blocks or a device that never ends, and none is read or mapped
/// beyond a limit. Not thread-safe.
class RegularFile {
 public:
  /// Throws FileError if the file is missing, unreadable, not a regular file or larger than `most`
  /// bytes. Never waits: a FIFO is refused whether or not it has a writer.
  RegularFile(std::filesystem::path path, uint64_t most);

  const std::filesystem::path& path() const { return path_; }
  /// Size when the file was opened. Files of /proc and /sys have 0.
  uint64_t bytes() const { return bytes_; }
  int descriptor() const { return file_.get(); }

  /// Fills `into` from the current position on and returns the number of bytes read, which is
  /// smaller only at the end of the file. Throws FileError if reading fails, or if a file that
  /// grows exceeds the limit.
  size_t read(std::span<std::byte> into);
  /// Returns the bytes from the current position to the end. Throws FileError as `read`, and if
  /// there is no memory for them.
  std::string read_to_end();

 private:
  std::filesystem::path path_;
  uint64_t most_;
  uint64_t bytes_ = 0;
  uint64_t read_ = 0;
  OwnedFd file_;
};

/// Returns the bytes of a regular file. Throws FileError as RegularFile.
std::string read_whole_file(const std::filesystem::path& path, uint64_t most = kMostTextBytes);
/// The same, for files of numbers: read rather than mapped, so that a file that shrinks or a disk
/// that fails meanwhile is an error here.
std::vector<std::byte> read_whole_bytes(const std::filesystem::path& path,
                                        uint64_t most = kMostMappedBytes);

/// Whether `name` names a file within a folder, without leaving it: not empty, "." or "..", and
/// without '/', '\\' or a zero byte. For names that a manifest gives.
bool is_file_name(std::string_view name);

}  // namespace lockstep
