#include "train/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>
#include <unordered_set>

#include "core/check.h"
#include "train/atomic_file.h"
#include "train/file_descriptor.h"
#include "train/safetensors_header.h"

namespace lockstep::train {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

std::span<const std::byte> map_file(const std::filesystem::path& path) {
  const FileDescriptor file(path, O_RDONLY);
  struct stat status {};
  LS_CHECK(::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode), CheckpointError,
           "[safetensors] {}: not a regular file.", path.string());
  if (status.st_size == 0) return {};  // mmap refuses length zero
  const size_t size = static_cast<size_t>(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  const int code = errno;
  LS_CHECK(address != MAP_FAILED, CheckpointError, "[safetensors] {}: cannot be mapped: {}.",
           path.string(), std::generic_category().message(code));
  return {static_cast<const std::byte*>(address), size};
}

void unmap(std::span<const std::byte> mapping) {
  if (!mapping.empty()) ::munmap(const_cast<std::byte*>(mapping.data()), mapping.size());
}

/// The header of a file with `tensors`, and their order in it.
struct Layout {
  SafetensorsHeader header;
  std::vector<const TensorRecord*> order;
};

Layout lay_out(std::span<const TensorRecord> tensors, std::string_view origin) {
  Layout layout;
  std::unordered_set<std::string_view> names = {"__metadata__"};
  for (const TensorRecord& tensor : tensors) {
    LS_CHECK(names.insert(tensor.name).second, CheckpointError,
             "[safetensors] {}: the name \"{}\" is reserved or used twice.", origin, tensor.name);
    const uint64_t bytes = byte_count(tensor.dtype, tensor.shape, origin, tensor.name);
    LS_CHECK(bytes == tensor.bytes.size(), CheckpointError,
             "[safetensors] {}: tensor \"{}\" has {} bytes where its shape needs {}.", origin,
             tensor.name, tensor.bytes.size(), bytes);
    layout.order.push_back(&tensor);
  }
  std::ranges::sort(layout.order, [](const TensorRecord* a, const TensorRecord* b) {
    return std::tuple(-safetensors_rank(a->dtype), std::string_view(a->name)) <
           std::tuple(-safetensors_rank(b->dtype), std::string_view(b->name));
  });
  uint64_t begin = 0;
  for (const TensorRecord* tensor : layout.order) {
    const uint64_t end = begin + tensor->bytes.size();
    layout.header.entries.push_back({tensor->name, tensor->dtype, tensor->shape, begin, end});
    begin = end;
  }
  return layout;
}

}  // namespace

SafetensorsContent parse_safetensors(std::span<const std::byte> contents, std::string_view origin) {
  uint64_t header_bytes = 0;
  LS_CHECK(contents.size() >= sizeof(header_bytes), CheckpointError,
           "[safetensors] {}: {} bytes are too few for a safetensors file.", origin,
           contents.size());
  std::memcpy(&header_bytes, contents.data(), sizeof(header_bytes));
  contents = contents.subspan(sizeof(header_bytes));
  LS_CHECK(
      header_bytes <= kMaxSafetensorsHeaderBytes, CheckpointError,
      "[safetensors] {}: a header of {} bytes: expected at most {}. Is this a safetensors file?",
      origin, header_bytes, kMaxSafetensorsHeaderBytes);
  LS_CHECK(header_bytes <= contents.size(), CheckpointError,
           "[safetensors] {}: the header of {} bytes ends past the file. The file is truncated.",
           origin, header_bytes);
  const std::span<const std::byte> data = contents.subspan(header_bytes);

  SafetensorsHeader header = parse_safetensors_header(
      {reinterpret_cast<const char*>(contents.data()), header_bytes}, origin);
  std::ranges::sort(header.entries, [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });

  SafetensorsContent content{{}, std::move(header.metadata)};
  uint64_t position = 0;
  for (TensorEntry& entry : header.entries) {
    LS_CHECK(
        entry.begin == position && entry.end >= entry.begin, CheckpointError,
        "[safetensors] {}: tensor \"{}\" lies at bytes {} to {} where the next free byte is {}: "
        "offsets may neither overlap nor leave holes.",
        origin, entry.name, entry.begin, entry.end, position);
    LS_CHECK(
        entry.end <= data.size(), CheckpointError,
        "[safetensors] {}: tensor \"{}\" ends at byte {} of the data, which has {}. The file is "
        "truncated.",
        origin, entry.name, entry.end, data.size());
    const uint64_t bytes = byte_count(entry.dtype, entry.shape, origin, entry.name);
    LS_CHECK(entry.end - entry.begin == bytes, CheckpointError,
             "[safetensors] {}: tensor \"{}\" has {} bytes where its shape needs {}.", origin,
             entry.name, entry.end - entry.begin, bytes);
    content.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                               data.subspan(entry.begin, bytes)});
    position = entry.end;
  }
  LS_CHECK(position == data.size(), CheckpointError,
           "[safetensors] {}: {} bytes follow the last tensor: expected none.", origin,
           data.size() - position);
  return content;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path.string()) {
  try {
    mapping_ = map_file(path);
    content_ = parse_safetensors(mapping_, path_);
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  } catch (...) {
    unmap(mapping_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { unmap(mapping_); }

const TensorRecord* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(content_.tensors, name, &TensorRecord::name);
  return found == content_.tensors.end() ? nullptr : &*found;
}

const TensorRecord& SafetensorsFile::at(std::string_view name) const {
  const TensorRecord* tensor = find(name);
  LS_CHECK(tensor != nullptr, CheckpointError,
           "[safetensors] {}: there is no tensor \"{}\" among its {}.", path_, name,
           content_.tensors.size());
  return *tensor;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorRecord> tensors,
                       std::map<std::string, std::string> metadata) {
  Layout layout = lay_out(tensors, path.string());
  layout.header.metadata = std::move(metadata);
  layout.header.metadata["format"] = "pt";
  const std::string header = format_safetensors_header(layout.header, path.string());
  const uint64_t header_bytes = header.size();
  LS_CHECK(header_bytes <= kMaxSafetensorsHeaderBytes, CheckpointError,
           "[safetensors] {}: the header has {} bytes: expected at most {}.", path.string(),
           header_bytes, kMaxSafetensorsHeaderBytes);
  try {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(&header_bytes, 1)));
    file.write(std::as_bytes(std::span(header)));
    for (const TensorRecord* tensor : layout.order) file.write(tensor->bytes);
    file.publish();
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace lockstep::train
