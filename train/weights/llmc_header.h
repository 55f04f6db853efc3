#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/tensor/dtype.h"

namespace lockstep::train {

/// The first words of a model file of llm.c (llmc_model.h).
using LlmcHeaderWords = std::array<int32_t, 256>;

inline constexpr int32_t kLlmcModelMagic = 20240326;
/// Writers pad the vocabulary to a multiple of this.
inline constexpr int64_t kLlmcPaddingMultiple = 128;

/// What the header of a model file says.
struct LlmcHeader {
  DType dtype = DType::kF32;
  int64_t positions = 0;
  int64_t vocabulary = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t padded_vocabulary = 0;  ///< rows of the token embedding in the file

  /// Size of the rows that pad the token embedding.
  int64_t padding_bytes() const;
  /// Size of the whole file.
  int64_t file_bytes() const;
  LlmcHeaderWords words() const;
};

/// Reads a header. Throws CheckpointError naming `file` and the byte for another magic or version
/// and for values that are out of range or inconsistent: the sizes of an accepted header do not
/// overflow.
LlmcHeader parse_llmc_header(const LlmcHeaderWords& words, const std::string& file);
/// The same, of the contents of a file, whose length must match the header.
LlmcHeader parse_llmc_header(std::span<const std::byte> contents, const std::string& file);

}  // namespace lockstep::train
