#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/atomic_file.h"
#include "core/tensor/dtype.h"
#include "train/weights/name_index.h"
#include "train/weights/safetensors_header.h"

namespace lockstep::train {

/// A named row-major array; it does not own its bytes. Scalars have an empty shape.
struct TensorRecord {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  /// Little-endian elements; product(shape) * size_of(dtype) bytes. Records read from a file need
  /// not be aligned to their element: copy them with memcpy.
  std::span<const std::byte> bytes;
};

/// The contents of a safetensors file: an 8-byte length N, N bytes of JSON, then the data.
struct SafetensorsContent {
  std::vector<TensorRecord> tensors;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Parses the format from memory; the records point into `contents`. Error messages begin with
/// `origin`, the file's name. Throws CheckpointError, naming the tensor if one is at fault, for: a
/// file that is too short, a header over 100,000,000 bytes or past the end, JSON that is malformed
/// or padded by anything but white space, duplicate keys, unknown or unsupported dtypes, sizes that
/// overflow, and offsets that are reversed, overlap, leave holes or disagree with shape or file
/// length.
SafetensorsContent parse_safetensors(std::span<const std::byte> contents, std::string_view origin);

/// A safetensors file read into memory, with its header (not the values) validated. Not mapped: a
/// mapped file that shrinks, or whose disk fails, would end the process (SIGBUS) where a read
/// returns an error. Immutable, so safe to read from many threads.
class SafetensorsFile {
 public:
  /// Throws CheckpointError as `parse_safetensors`, and UnreadableError with the system's reason.
  explicit SafetensorsFile(const std::filesystem::path& path);
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  /// The bytes before the data: the length of the JSON, and the JSON.
  std::span<const std::byte> header() const;
  /// Tensors in the order of their bytes; valid while this object exists.
  const std::vector<TensorRecord>& tensors() const { return content_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }
  /// Returns the tensor of that name, or null if there is none.
  const TensorRecord* find(std::string_view name) const;
  /// Returns the tensor of that name. Throws CheckpointError naming file and tensor if there is
  /// none.
  const TensorRecord& at(std::string_view name) const;

 private:
  std::string path_;
  std::vector<std::byte> contents_;
  SafetensorsContent content_;
  NameIndex places_;  ///< of the tensors
};

/// Description of a tensor to write.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

/// Writes a file as the reference implementation does: ordered by element size class, then by name;
/// header padded with spaces to a multiple of 8; `__metadata__` always holds {"format":"pt"},
/// without which some readers refuse the file. Tensors are passed one after the other, so only one
/// of them need be in memory. Failed writes throw CheckpointError naming the file.
class SafetensorsWriter {
 public:
  /// Writes the header. Throws CheckpointError, naming file and tensor, for names used twice or
  /// reserved and names that are not UTF-8.
  SafetensorsWriter(const std::filesystem::path& path, std::span<const TensorSpec> tensors,
                    std::map<std::string, std::string> metadata = {});

  /// The order in which the tensors' bytes are expected, as indices into the constructor's list.
  const std::vector<size_t>& order() const { return order_; }
  /// The bytes before the first tensor: the length of the JSON, and the JSON.
  const std::string& header() const { return header_; }
  /// Writes the next tensor. Throws CheckpointError if its size does not match its shape.
  void write(std::span<const std::byte> bytes);
  /// Makes the file appear under its name (AtomicFile). Throws CheckpointError if a tensor is
  /// missing.
  void publish();

 private:
  std::string path_;
  std::vector<size_t> order_;
  SafetensorsHeader layout_;
  std::string header_;
  size_t written_ = 0;
  std::optional<AtomicFile> file_;
};

/// Writes tensors that are in memory already. Throws what SafetensorsWriter throws.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorRecord> tensors,
                       std::map<std::string, std::string> metadata = {});

}  // namespace lockstep::train
