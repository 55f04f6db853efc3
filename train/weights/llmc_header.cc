#include "train/weights/llmc_header.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.h"

namespace lockstep::train {

namespace {

static_assert(std::endian::native == std::endian::little,
              "headers are read as they lie in the file");

int32_t version_of(DType dtype) { return dtype == DType::kF32 ? 3 : 5; }

}  // namespace

int64_t LlmcHeader::padding_bytes() const {
  return (padded_vocabulary - vocabulary) * width * static_cast<int64_t>(size_of(dtype));
}

int64_t LlmcHeader::file_bytes() const {
  const int64_t c = width;
  const int64_t per_layer = 12 * c * c + 13 * c;
  const int64_t elements = (padded_vocabulary + positions) * c + layers * per_layer + 2 * c;
  return static_cast<int64_t>(sizeof(LlmcHeaderWords)) +
         elements * static_cast<int64_t>(size_of(dtype));
}

LlmcHeaderWords LlmcHeader::words() const {
  LlmcHeaderWords words{};
  words[0] = kLlmcModelMagic;
  words[1] = version_of(dtype);
  const std::array values = {positions, vocabulary, layers, heads, width, padded_vocabulary};
  std::ranges::transform(values, words.begin() + 2,
                         [](int64_t value) { return static_cast<int32_t>(value); });
  return words;
}

LlmcHeader parse_llmc_header(const LlmcHeaderWords& words, const std::string& file) {
  LS_CHECK(words[0] == kLlmcModelMagic, CheckpointError,
           "[llmc] {}: wrong magic at byte 0: expected {}, got {}. It is no model of llm.c.", file,
           kLlmcModelMagic, words[0]);
  LS_CHECK(words[1] == version_of(DType::kF32) || words[1] == version_of(DType::kBF16),
           CheckpointError,
           "[llmc] {}: wrong version at byte 4: expected 3 (float32) or 5 (bfloat16), got {}.",
           file, words[1]);
  const auto field = [&](size_t index, const char* name, int64_t from, int64_t to) {
    const int64_t value = words[index];
    LS_CHECK(value >= from && value <= to, CheckpointError,
             "[llmc] {}: {} at byte {}: expected {} to {}, got {}.", file, name,
             index * sizeof(int32_t), from, to, value);
    return value;
  };
  constexpr int64_t kMaxVocabulary = 1 << 24;
  LlmcHeader found;
  found.dtype = words[1] == version_of(DType::kF32) ? DType::kF32 : DType::kBF16;
  found.positions = field(2, "positions", 1, 1 << 20);
  found.vocabulary = field(3, "vocabulary", 1, kMaxVocabulary);
  found.layers = field(4, "layers", 1, 10000);
  found.heads = field(5, "heads", 1, 1 << 16);
  found.width = field(6, "width", 1, 1 << 20);
  found.padded_vocabulary =
      field(7, "padded vocabulary", found.vocabulary, kMaxVocabulary + kLlmcPaddingMultiple);
  LS_CHECK(found.width % found.heads == 0, CheckpointError,
           "[llmc] {}: heads at byte 20: expected a divisor of the width {}, got {}.", file,
           found.width, found.heads);
  return found;
}

LlmcHeader parse_llmc_header(std::span<const std::byte> contents, const std::string& file) {
  LlmcHeaderWords words;
  LS_CHECK(contents.size() >= sizeof(words), CheckpointError,
           "[llmc] {}: expected a header of {} bytes, but the file ends at byte {}.", file,
           sizeof(words), contents.size());
  std::memcpy(words.data(), contents.data(), sizeof(words));
  const LlmcHeader found = parse_llmc_header(words, file);
  LS_CHECK(contents.size() == static_cast<size_t>(found.file_bytes()), CheckpointError,
           "[llmc] {}: the header asks for a file of {} bytes, but it has {}. It was cut short or "
           "damaged.",
           file, found.file_bytes(), contents.size());
  return found;
}

}  // namespace lockstep::train
