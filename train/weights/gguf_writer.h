#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::train {

/// Types of a GGUF file's tensors, with the numbers of the format.
enum class GgufType : uint32_t { kF32 = 0, kF16 = 1, kBF16 = 30 };

/// Builds the part of a GGUF file before the elements: metadata and the list of tensors.
class GgufHeader {
 public:
  void add(std::string_view key, uint32_t value);
  void add(std::string_view key, float value);
  void add(std::string_view key, bool value);
  void add(std::string_view key, std::string_view value);
  void add(std::string_view key, const std::vector<std::string>& values);
  void add(std::string_view key, std::span<const float> values);
  void add(std::string_view key, std::span<const int32_t> values);
  /// `sizes` as tensors here have them, the last dimension contiguous. The elements follow each
  /// other in the order of these calls, each tensor padded by `padding_after`.
  void add_tensor(std::string_view name, std::span<const int64_t> sizes, GgufType type,
                  uint64_t bytes);

  /// The header, padded to where the first tensor begins.
  std::vector<std::byte> bytes() const;
  /// Zero bytes that follow a tensor of so many bytes.
  static uint64_t padding_after(uint64_t bytes);

 private:
  uint64_t entries_ = 0;
  uint64_t tensors_ = 0;
  uint64_t offset_ = 0;
  std::vector<std::byte> metadata_;
  std::vector<std::byte> infos_;
};

}  // namespace lockstep::train
