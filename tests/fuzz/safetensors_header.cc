#include "train/weights/safetensors_header.h"

#include <algorithm>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"
#include "train/weights/safetensors.h"

namespace lockstep::fuzz {
namespace {

/// Checks that records follow each other without gap or overlap up to the end of the file.
void check_tiling(std::span<const std::byte> file, const train::SafetensorsContent& content) {
  size_t data_bytes = 0;
  for (const train::TensorRecord& tensor : content.tensors) data_bytes += tensor.bytes.size();
  require(data_bytes <= file.size(), "the records fit into the file");
  const std::byte* position = file.data() + (file.size() - data_bytes);
  for (const train::TensorRecord& tensor : content.tensors) {
    require(tensor.bytes.data() == position, "each record starts where the one before ends");
    require(
        tensor.bytes.size() == train::byte_count(tensor.dtype, tensor.shape, "fuzzed", tensor.name),
        "a record has the bytes its shape needs");
    position += tensor.bytes.size();
  }
}

/// Checks that the header written for the same tensors reads back to them.
void check_header_round_trip(const train::SafetensorsContent& content) {
  train::SafetensorsHeader header{{}, content.metadata};
  uint64_t begin = 0;
  for (const train::TensorRecord& tensor : content.tensors) {
    const uint64_t end = begin + tensor.bytes.size();
    header.entries.push_back({tensor.name, tensor.dtype, tensor.shape, begin, end});
    begin = end;
  }
  const std::string json = train::format_safetensors_header(header, "fuzzed");
  require(json.size() % 8 == 0, "the header is padded to a multiple of 8 bytes");
  const train::SafetensorsHeader again = train::parse_safetensors_header(json, "fuzzed");
  require(again.metadata == header.metadata, "metadata reads back");
  require(std::ranges::equal(again.entries, header.entries,
                             [](const train::TensorEntry& a, const train::TensorEntry& b) {
                               return a.name == b.name && a.dtype == b.dtype &&
                                      a.shape == b.shape && a.begin == b.begin && a.end == b.end;
                             }),
          "entries read back");
}

}  // namespace

Outcome fuzz_safetensors_header(Input input) {
  const std::span<const std::byte> file = std::as_bytes(input);
  train::SafetensorsContent content;
  try {
    content = train::parse_safetensors(file, "fuzzed");
  } catch (const CheckpointError&) {
    return Outcome::kRefused;
  }
  check_tiling(file, content);
  check_header_round_trip(content);
  return Outcome::kAccepted;
}

}  // namespace lockstep::fuzz
