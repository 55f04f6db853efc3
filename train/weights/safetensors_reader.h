#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/files/regular_file.h"
#include "train/weights/name_index.h"
#include "train/weights/safetensors_header.h"
#include "train/weights/tensor_file.h"

namespace lockstep::train {

/// A safetensors file of which only the header is in memory: bytes of tensors are read from the
/// disk as they are asked for. Safe to read from many threads.
class SafetensorsReader {
 public:
  /// Validates the header as `parse_safetensors` does, and throws its errors; UnreadableError with
  /// the system's reason.
  explicit SafetensorsReader(const std::filesystem::path& path);
  SafetensorsReader(const SafetensorsReader&) = delete;
  SafetensorsReader& operator=(const SafetensorsReader&) = delete;

  /// The bytes before the data: the length of the JSON, and the JSON.
  std::span<const std::byte> header() const { return header_; }
  /// Tensors in the order of their bytes.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  /// Returns the tensor of that name, or null if there is none.
  const TensorEntry* find(std::string_view name) const;
  /// Fills `into` with the bytes of a tensor from its byte `first` on. Throws UnreadableError.
  void read(const TensorEntry& tensor, uint64_t first, std::span<std::byte> into) const;
  /// Fills `into` with the bytes of the file's data from `first` on, in which the tensors follow
  /// each other. Throws UnreadableError.
  void read_data(uint64_t first, std::span<std::byte> into) const;
  /// Calls `visit` with the bytes of a tensor, in pieces.
  void each_piece(const TensorEntry& tensor,
                  const std::function<void(std::span<const std::byte>)>& visit) const;

 private:
  void read_at(uint64_t offset, std::span<std::byte> into) const;

  RegularFile file_;
  std::vector<std::byte> header_;
  std::vector<TensorEntry> tensors_;
  NameIndex places_;  ///< of the tensors
};

/// Computes the digest of a file by reading each of its bytes once.
FileDigest digest_of(const SafetensorsReader& file);

}  // namespace lockstep::train
