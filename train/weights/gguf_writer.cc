#include "train/weights/gguf_writer.h"

#include <algorithm>
#include <iterator>

namespace lockstep::train {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF", little-endian
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;  // the format's default

/// Types of values, with the numbers of the format.
enum class Kind : uint32_t { kI32 = 5, kU32 = 4, kF32 = 6, kBool = 7, kText = 8, kArray = 9 };

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& into, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  into.insert(into.end(), bytes.begin(), bytes.end());
}

void put_text(Bytes& into, std::string_view text) {
  put(into, uint64_t{text.size()});
  const auto bytes = std::as_bytes(std::span(text));
  into.insert(into.end(), bytes.begin(), bytes.end());
}

void put_key(Bytes& into, std::string_view key, Kind kind) {
  put_text(into, key);
  put(into, kind);
}

template <class T>
void put_array(Bytes& into, std::string_view key, Kind kind, std::span<const T> values) {
  put_key(into, key, Kind::kArray);
  put(into, kind);
  put(into, uint64_t{values.size()});
  for (const T& value : values) put(into, value);
}

}  // namespace

void GgufHeader::add(std::string_view key, uint32_t value) {
  put_key(metadata_, key, Kind::kU32);
  put(metadata_, value);
  ++entries_;
}

void GgufHeader::add(std::string_view key, float value) {
  put_key(metadata_, key, Kind::kF32);
  put(metadata_, value);
  ++entries_;
}

void GgufHeader::add(std::string_view key, bool value) {
  put_key(metadata_, key, Kind::kBool);
  put(metadata_, static_cast<uint8_t>(value));
  ++entries_;
}

void GgufHeader::add(std::string_view key, std::string_view value) {
  put_key(metadata_, key, Kind::kText);
  put_text(metadata_, value);
  ++entries_;
}

void GgufHeader::add(std::string_view key, const std::vector<std::string>& values) {
  put_key(metadata_, key, Kind::kArray);
  put(metadata_, Kind::kText);
  put(metadata_, uint64_t{values.size()});
  for (const std::string& value : values) put_text(metadata_, value);
  ++entries_;
}

void GgufHeader::add(std::string_view key, std::span<const float> values) {
  put_array(metadata_, key, Kind::kF32, values);
  ++entries_;
}

void GgufHeader::add(std::string_view key, std::span<const int32_t> values) {
  put_array(metadata_, key, Kind::kI32, values);
  ++entries_;
}

void GgufHeader::add_tensor(std::string_view name, std::span<const int64_t> sizes, GgufType type,
                            uint64_t bytes) {
  put_text(infos_, name);
  put(infos_, static_cast<uint32_t>(sizes.size()));
  // The format counts dimensions from the contiguous one on.
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    put(infos_, static_cast<uint64_t>(*size));
  }
  put(infos_, type);
  put(infos_, offset_);
  offset_ += bytes + padding_after(bytes);
  ++tensors_;
}

std::vector<std::byte> GgufHeader::bytes() const {
  Bytes all;
  put(all, kMagic);
  put(all, kVersion);
  put(all, tensors_);
  put(all, entries_);
  std::ranges::copy(metadata_, std::back_inserter(all));
  std::ranges::copy(infos_, std::back_inserter(all));
  all.resize(all.size() + padding_after(all.size()));
  return all;
}

uint64_t GgufHeader::padding_after(uint64_t bytes) {
  return (kAlignment - bytes % kAlignment) % kAlignment;
}

}  // namespace lockstep::train
