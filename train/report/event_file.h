#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/base/files/file_descriptor.h"

namespace lockstep::train {

/// One number of one step. Tags with slashes are grouped by the part before the first.
struct Scalar {
  std::string_view tag;
  double value = 0;  ///< stored as f32, the format's only type for plain scalars
};

/// Appends scalars to a file that TensorBoard reads: records of protocol-buffer events, each framed
/// by its length and masked CRC-32C. Every call writes one whole record, so a reader that follows
/// the file sees it at once. Throws DataError on failure. Not thread-safe.
class EventFile {
 public:
  /// Creates `folder`/events.out.tfevents.TIME.HOST.PID.NUMBER, a name no other file there has.
  /// With `first_step` above 1 it begins with `restart(first_step)`.
  explicit EventFile(const std::filesystem::path& folder, int64_t first_step = 1);

  /// Writes the scalars of one step with the time of the call.
  void write(int64_t step, std::span<const Scalar> scalars);
  /// Makes readers discard the scalars of `step` and later ones, after training went back to it.
  void restart(int64_t step);
  /// Closes the file. Throws DataError for write errors that the system reports only now.
  void close() { file_.close(); }

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  void append(std::string_view event);

  FileDescriptor file_;
};

/// Parts of the format, exposed for tests. Events are encoded with `wall_time` in seconds since
/// 1970.
namespace events {

/// The first event of a file, "brain.Event:2".
std::string version(double wall_time);
/// The event that makes readers discard `step` and later ones: training (re)starts before it.
std::string session_start(double wall_time, int64_t step);
std::string scalars(double wall_time, int64_t step, std::span<const Scalar> scalars);
/// `event` as a record: u64 length, its masked CRC, the bytes, their masked CRC; little-endian.
std::string framed(std::string_view event);

}  // namespace events

}  // namespace lockstep::train
