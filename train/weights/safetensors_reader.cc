#include "train/weights/safetensors_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "train/weights/read_errors.h"

namespace lockstep::train {

namespace {

/// Bytes that are read at once: a disk is as fast as with more, and the processor's cache holds
/// them.
constexpr size_t kPiece = size_t{1} << 20;

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : file_(reading([&] { return RegularFile(path, kMostMappedBytes); })) {
  const std::string origin = path.string();
  uint64_t json_bytes = 0;
  LS_CHECK(file_.bytes() >= sizeof(json_bytes), CheckpointError,
           "[safetensors] {}: {} bytes are too few for a safetensors file.", origin, file_.bytes());
  read_at(0, std::as_writable_bytes(std::span(&json_bytes, 1)));
  check_header_bytes(json_bytes, file_.bytes() - sizeof(json_bytes), origin);
  header_.resize(sizeof(json_bytes) + json_bytes);
  read_at(0, header_);
  SafetensorsHeader header = parse_safetensors_header(
      {reinterpret_cast<const char*>(header_.data()) + sizeof(json_bytes), json_bytes}, origin);
  check_layout(header, file_.bytes() - header_.size(), origin);
  tensors_ = std::move(header.entries);
  by_name_.reserve(tensors_.size());
  for (const TensorEntry& tensor : tensors_) by_name_.emplace(tensor.name, &tensor);
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void SafetensorsReader::read(const TensorEntry& tensor, uint64_t first,
                             std::span<std::byte> into) const {
  LS_ASSERT(first + into.size() <= tensor.end - tensor.begin);
  read_at(header_.size() + tensor.begin + first, into);
}

void SafetensorsReader::each_piece(
    const TensorEntry& tensor, const std::function<void(std::span<const std::byte>)>& visit) const {
  const uint64_t bytes = tensor.end - tensor.begin;
  std::vector<std::byte> piece(std::min<uint64_t>(bytes, kPiece));
  for (uint64_t first = 0; first < bytes; first += piece.size()) {
    const std::span<std::byte> part =
        std::span(piece).first(std::min<uint64_t>(bytes - first, piece.size()));
    read(tensor, first, part);
    visit(part);
  }
}

void SafetensorsReader::read_at(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t got =
        ::pread(file_.descriptor(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw UnreadableError(fmt::format("[safetensors] {}: {}.", file_.path().string(),
                                        std::generic_category().message(errno)));
    }
    if (got == 0) {
      throw UnreadableError(fmt::format(
          "[safetensors] {}: it ended at byte {}: it was made shorter while it was read.",
          file_.path().string(), offset));
    }
    offset += static_cast<uint64_t>(got);
    into = into.subspan(static_cast<size_t>(got));
  }
}

FileDigest digest_of(const SafetensorsReader& file) {
  FileDigest digest;
  digest.bytes = file.header().size();
  digest.header = ContentHasher().add(file.header()).result();
  for (const TensorEntry& tensor : file.tensors()) {
    const uint64_t bytes = tensor.end - tensor.begin;
    ContentHasher hasher;
    hasher.add(bytes);
    file.each_piece(tensor, [&](std::span<const std::byte> piece) { hasher.append(piece); });
    digest.tensors[tensor.name] = hasher.result();
    digest.bytes += bytes;
  }
  return digest;
}

}  // namespace lockstep::train
