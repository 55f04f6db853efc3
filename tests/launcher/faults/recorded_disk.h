#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// A change of files as recorded by libfile_faults.so.
struct DiskChange {
  std::string operation;  ///< create, truncate, write, fsync, rename, exchange, mkdir, remove
  std::string path;
  std::string other;  ///< the new path of a rename
  int64_t offset = 0;
  std::string bytes;
};

std::vector<DiskChange> read_changes(const std::filesystem::path& record);

/// How much of what was not synced a power cut may lose.
enum class DiskModel {
  kStrict,  ///< POSIX: any of the writes, and any of the names of a folder, each by itself
  kJournal  ///< as ext4: changes of names reach the disk in order, and a file's bytes before its
            ///< name
};

/// A file system in memory whose power is cut: applies recorded changes, and knows what a disk
/// holds at the least. Paths are absolute; `root` itself is on the disk from the start.
class RecordedDisk {
 public:
  RecordedDisk(std::filesystem::path root, DiskModel model);
  ~RecordedDisk();

  void apply(const DiskChange& change);
  /// Writes to `destination` what a disk may hold after a power cut now.
  void cut_power(const std::filesystem::path& destination, std::mt19937& random) const;

 private:
  struct Node;
  using Nodes = std::shared_ptr<Node>;

  Nodes find(const std::filesystem::path& path) const;
  void change_name(const std::filesystem::path& path, const Nodes& node);
  void write_out(const Node& node, const std::filesystem::path& destination, size_t journal,
                 std::mt19937& random) const;

  std::filesystem::path root_;
  DiskModel model_;
  Nodes top_;
  size_t time_ = 0;       ///< number of changes of names so far
  size_t committed_ = 0;  ///< kJournal: those that are on the disk for certain
};

}  // namespace lockstep::launcher
