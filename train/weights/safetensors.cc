#include "train/weights/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// Runs `action` and rethrows its DataError as CheckpointError.
template <class Action>
void writing(Action&& action) {
  try {
    action();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace

SafetensorsContent parse_safetensors(std::span<const std::byte> contents, std::string_view origin) {
  uint64_t header_bytes = 0;
  LS_CHECK(contents.size() >= sizeof(header_bytes), CheckpointError,
           "[safetensors] {}: {} bytes are too few for a safetensors file.", origin,
           contents.size());
  std::memcpy(&header_bytes, contents.data(), sizeof(header_bytes));
  contents = contents.subspan(sizeof(header_bytes));
  check_header_bytes(header_bytes, contents.size(), origin);
  const std::span<const std::byte> data = contents.subspan(header_bytes);
  SafetensorsHeader header = parse_safetensors_header(
      {reinterpret_cast<const char*>(contents.data()), header_bytes}, origin);
  check_layout(header, data.size(), origin);
  SafetensorsContent content{{}, std::move(header.metadata)};
  content.tensors.reserve(header.entries.size());
  for (TensorEntry& entry : header.entries) {
    content.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                               data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return content;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path.string()),
      contents_(reading([&] { return read_whole_bytes(path); })),
      content_(parse_safetensors(contents_, path_)),
      places_(content_.tensors.size()) {
  for (const TensorRecord& tensor : content_.tensors) places_.add(tensor.name);
}

std::span<const std::byte> SafetensorsFile::header() const {
  uint64_t json_bytes = 0;
  std::memcpy(&json_bytes, contents_.data(), sizeof(json_bytes));
  return std::span(contents_).first(sizeof(json_bytes) + json_bytes);
}

const TensorRecord* SafetensorsFile::find(std::string_view name) const {
  const std::optional<size_t> place =
      places_.find(name, [&](size_t i) -> std::string_view { return content_.tensors[i].name; });
  return place ? &content_.tensors[*place] : nullptr;
}

const TensorRecord& SafetensorsFile::at(std::string_view name) const {
  const TensorRecord* tensor = find(name);
  LS_CHECK(tensor != nullptr, CheckpointError,
           "[safetensors] {}: there is no tensor \"{}\" among its {}.", path_, name,
           content_.tensors.size());
  return *tensor;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::span<const TensorSpec> tensors,
                                     std::map<std::string, std::string> metadata)
    : path_(path.string()), order_(tensors.size()) {
  NameIndex names(tensors.size());
  const auto name_at = [&](size_t i) -> std::string_view { return tensors[i].name; };
  for (const TensorSpec& tensor : tensors) {
    LS_CHECK(tensor.name != "__metadata__" && !names.find(tensor.name, name_at), CheckpointError,
             "[safetensors] {}: the name \"{}\" is reserved or used twice.", path_, tensor.name);
    names.add(tensor.name);
  }
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::ranges::sort(order_, {}, [&](size_t i) {
    return std::tuple(-safetensors_rank(tensors[i].dtype), std::string_view(tensors[i].name));
  });
  uint64_t begin = 0;
  layout_.entries.reserve(tensors.size());
  for (const size_t i : order_) {
    const TensorSpec& tensor = tensors[i];
    const uint64_t end = begin + byte_count(tensor.dtype, tensor.shape, path_, tensor.name);
    layout_.entries.push_back({tensor.name, tensor.dtype, tensor.shape, begin, end});
    begin = end;
  }
  layout_.metadata = std::move(metadata);
  layout_.metadata["format"] = "pt";
  const std::string json = format_safetensors_header(layout_, path_);
  const uint64_t json_bytes = json.size();
  LS_CHECK(json_bytes <= kMaxSafetensorsHeaderBytes, CheckpointError,
           "[safetensors] {}: the header has {} bytes: expected at most {}.", path_, json_bytes,
           kMaxSafetensorsHeaderBytes);
  header_.assign(reinterpret_cast<const char*>(&json_bytes), sizeof(json_bytes));
  header_ += json;
  writing([&] {
    file_.emplace(path);
    file_->write(std::as_bytes(std::span(header_)));
  });
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  LS_ASSERT(written_ < layout_.entries.size());
  const TensorEntry& entry = layout_.entries[written_++];
  LS_CHECK(bytes.size() == entry.end - entry.begin, CheckpointError,
           "[safetensors] {}: tensor \"{}\" has {} bytes where its shape needs {}.", path_,
           entry.name, bytes.size(), entry.end - entry.begin);
  writing([&] { file_->write(bytes); });
}

void SafetensorsWriter::publish() {
  LS_CHECK(written_ == layout_.entries.size(), CheckpointError,
           "[safetensors] {}: {} tensors were promised and {} written.", path_,
           layout_.entries.size(), written_);
  writing([&] { file_->publish(); });
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorRecord> tensors,
                       std::map<std::string, std::string> metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorRecord& tensor : tensors) {
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  SafetensorsWriter writer(path, specs, std::move(metadata));
  for (const size_t i : writer.order()) writer.write(tensors[i].bytes);
  writer.publish();
}

}  // namespace lockstep::train
