#include "data/token_array.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/files/mapped_file.h"

namespace lockstep::train {
namespace {

template <class T>
TokenArray own(std::span<const uint32_t> tokens) {
  auto stored = std::make_shared<const std::vector<T>>(tokens.begin(), tokens.end());
  const std::span<const T> view(*stored);
  return {std::as_bytes(view), static_cast<int>(sizeof(T)), std::move(stored)};
}

}  // namespace

TokenArray::TokenArray(std::span<const std::byte> bytes, int width,
                       std::shared_ptr<const void> owner)
    : bytes_(bytes), width_(width), owner_(std::move(owner)) {
  LS_ASSERT(width == 1 || width == 2 || width == 4);
  LS_ASSERT(bytes.size() % static_cast<size_t>(width) == 0);
}

TokenArray TokenArray::copy_of(std::span<const uint32_t> tokens) {
  const bool narrow = std::ranges::all_of(tokens, [](uint32_t t) { return t <= 0xffff; });
  return narrow ? own<uint16_t>(tokens) : own<uint32_t>(tokens);
}

std::span<const std::byte> TokenArray::stored(std::vector<uint16_t>& room) const {
  if (width_ != 1) return bytes_;
  room.resize(bytes_.size());
  std::ranges::transform(bytes_, room.begin(), std::to_integer<uint16_t>);
  return std::as_bytes(std::span(room));
}

template <class T>
int64_t TokenArray::read_as(int64_t first, std::span<int64_t> out) const {
  int64_t largest = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = load<T>(first + static_cast<int64_t>(i));
    largest = std::max(largest, out[i]);
  }
  return largest;
}

int64_t TokenArray::read(int64_t first, std::span<int64_t> out) const {
  LS_ASSERT(first >= 0 && first + std::ssize(out) <= size());
  const int64_t largest = width_ == 1   ? read_as<uint8_t>(first, out)
                          : width_ == 2 ? read_as<uint16_t>(first, out)
                                        : read_as<uint32_t>(first, out);
  check();
  return largest;
}

void TokenArray::check() const { check_mapped(bytes_.data()); }

TokenArray TokenArray::slice(int64_t first, int64_t count) const {
  LS_ASSERT(first >= 0 && count >= 0 && first + count <= size());
  const auto width = static_cast<size_t>(width_);
  return {bytes_.subspan(static_cast<size_t>(first) * width, static_cast<size_t>(count) * width),
          width_, owner_};
}

}  // namespace lockstep::train
