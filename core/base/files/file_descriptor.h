#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace lockstep {

/// An open file whose every operation is checked: failures throw DataError naming the path and the
/// system's reason. Owns the descriptor. The destructor closes it without reporting errors, so
/// writers that need them call `close()`. Not thread-safe.
class FileDescriptor {
 public:
  /// open(2) with `flags` (O_CLOEXEC is added) and, for O_CREAT, `mode`. Never waits: a FIFO
  /// without a reader is an error.
  FileDescriptor(std::filesystem::path path, int flags, unsigned mode = 0644);
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  /// Writes all of `bytes`, continuing after short writes and interruptions.
  void write(std::span<const std::byte> bytes);
  /// Reads from the current position to the end of the file.
  std::vector<std::byte> read_to_end();
  /// Sets the file's size to `bytes`.
  void truncate(uint64_t bytes);
  /// Asks the system to start writing back the data written since the last call. A hint: never
  /// throws.
  void start_writeback();
  /// Returns once the contents are on stable storage (fsync).
  void sync();
  /// Closes the file and reports errors that the system deferred until now. Idempotent.
  void close();

  int get() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t written_ = 0;
  uint64_t started_ = 0;  ///< part of written_ already passed to start_writeback
};

}  // namespace lockstep
