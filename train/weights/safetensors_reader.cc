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
  places_ = NameIndex(tensors_.size());
  for (const TensorEntry& tensor : tensors_) places_.add(tensor.name);
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const std::optional<size_t> place =
      places_.find(name, [&](size_t i) -> std::string_view { return tensors_[i].name; });
  return place ? &tensors_[*place] : nullptr;
}

void SafetensorsReader::read(const TensorEntry& tensor, uint64_t first,
                             std::span<std::byte> into) const {
  LS_ASSERT(first + into.size() <= tensor.end - tensor.begin);
  read_data(tensor.begin + first, into);
}

void SafetensorsReader::read_data(uint64_t first, std::span<std::byte> into) const {
  read_at(header_.size() + first, into);
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
  const uint64_t data_bytes = file.tensors().empty() ? 0 : file.tensors().back().end;
  std::vector<std::byte> buffer(std::min<uint64_t>(data_bytes, kPiece));
  uint64_t buffer_end = 0;  // in the data; the buffer ends there
  std::span<const std::byte> unread;
  for (const TensorEntry& tensor : file.tensors()) {
    ContentHasher hasher;
    hasher.add(tensor.end - tensor.begin);
    for (uint64_t left = tensor.end - tensor.begin; left > 0;) {
      if (unread.empty()) {
        const std::span<std::byte> piece =
            std::span(buffer).first(std::min<uint64_t>(data_bytes - buffer_end, buffer.size()));
        file.read_data(buffer_end, piece);
        buffer_end += piece.size();
        unread = piece;
      }
      const size_t bytes = std::min<uint64_t>(left, unread.size());
      hasher.append(unread.first(bytes));
      unread = unread.subspan(bytes);
      left -= bytes;
    }
    // In the order of their bytes most files have their tensors in the order of their names.
    digest.tensors.insert_or_assign(digest.tensors.end(), tensor.name, hasher.result());
  }
  digest.bytes += data_bytes;
  return digest;
}

}  // namespace lockstep::train
