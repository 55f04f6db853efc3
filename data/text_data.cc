#include "data/text_data.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "data/random_draw.h"

namespace lockstep::train {
namespace {

int64_t token(std::byte byte) { return std::to_integer<int64_t>(byte); }

}  // namespace

ByteText::ByteText(const std::filesystem::path& path, int64_t held_out_bytes, uint64_t seed)
    : path_(path), text_(read_whole_file(path)), seed_(seed) {
  LS_CHECK(!text_.empty(), DataError, "[data] {}: the text is empty.", path.string());
  LS_CHECK(held_out_bytes >= 0 && static_cast<uint64_t>(held_out_bytes) < text_.size(), DataError,
           "[data] {}: cannot hold out {} bytes of a text of {}. Hold out fewer.", path.string(),
           held_out_bytes, text_.size());
  training_bytes_ = text_.size() - static_cast<size_t>(held_out_bytes);
}

/// Where a training sequence begins.
uint64_t ByteText::offset_of(int64_t step, int64_t index, size_t length) const {
  LS_CHECK(training_bytes_ > length, DataError,
           "[data] {}: the training part of {} bytes is too short for sequences of length {}: "
           "expected at least {} bytes. Hold out less or shorten the sequences.",
           path_.string(), training_bytes_, length, length + 1);
  // 64 random bits make the remainder uniform to within text size / 2^64.
  return random_draw(seed_, DrawStream::kWindowOffset, step, index, 0)[0] %
         (training_bytes_ - length);
}

std::vector<SampleOrigin> ByteText::origins_at(std::span<const Place> places,
                                               int64_t length) const {
  std::vector<SampleOrigin> origins;
  for (const Place& place : places) {
    const uint64_t offset = offset_of(place.step, place.index, static_cast<size_t>(length));
    origins.push_back(
        {.file = path_.string(), .unit = "byte", .first = static_cast<int64_t>(offset)});
  }
  return origins;
}

void ByteText::sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                        std::span<int64_t> targets) const {
  LS_ASSERT(inputs.size() == targets.size());
  const size_t length = inputs.size();
  const auto window = training().subspan(offset_of(step, index, length), length + 1);
  std::ranges::transform(window.first(length), inputs.begin(), token);
  std::ranges::transform(window.last(length), targets.begin(), token);
}

int64_t ByteText::validation_windows(int64_t length) const {
  LS_ASSERT(length > 0);
  return (static_cast<int64_t>(held_out().size()) + length - 1) / length;
}

int64_t ByteText::validation_window(int64_t index, std::span<int64_t> inputs,
                                    std::span<int64_t> targets) const {
  LS_ASSERT(inputs.size() == targets.size() && !inputs.empty());
  LS_ASSERT(index >= 0 && index < validation_windows(static_cast<int64_t>(inputs.size())));
  const size_t begin = training_bytes_ + static_cast<size_t>(index) * inputs.size();
  const size_t count = std::min(inputs.size(), text_.size() - begin);
  const std::span<const std::byte> text = bytes();
  std::ranges::fill(inputs, 0);
  std::ranges::fill(targets, kIgnoredTarget);
  // The constructor keeps at least one training byte, so begin - 1 is in the text.
  std::ranges::transform(text.subspan(begin - 1, count), inputs.begin(), token);
  std::ranges::transform(text.subspan(begin, count), targets.begin(), token);
  return static_cast<int64_t>(count);
}

ContentHash ByteText::fingerprint() const { return ContentHasher().add(training()).result(); }

ContentHash ByteText::identity() const {
  return ContentHasher().add(training()).add(held_out()).result();
}

RandomTokens::RandomTokens(int64_t vocabulary, uint64_t seed)
    : vocabulary_(vocabulary), seed_(seed) {
  LS_CHECK(vocabulary >= 1 && vocabulary <= int64_t{1} << 32, DataError,
           "[data] a vocabulary of {}: expected 1 to 2^32 tokens.", vocabulary);
}

void RandomTokens::sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                            std::span<int64_t> targets) const {
  LS_ASSERT(inputs.size() == targets.size());
  const size_t length = inputs.size();
  std::array<uint64_t, 2> draws{};
  for (size_t t = 0; t <= length; ++t) {
    if (t % 2 == 0) {
      draws =
          random_draw(seed_, DrawStream::kRandomToken, step, index, static_cast<uint32_t>(t / 2));
    }
    const auto value = static_cast<int64_t>(draws[t % 2] % static_cast<uint64_t>(vocabulary_));
    if (t < length) inputs[t] = value;
    if (t > 0) targets[t - 1] = value;
  }
}

ContentHash RandomTokens::fingerprint() const {
  return ContentHasher().add(static_cast<uint64_t>(vocabulary_)).add(seed_).result();
}

int64_t RandomTokens::validation_window(int64_t, std::span<int64_t>, std::span<int64_t>) const {
  throw InternalError("[data] random tokens have no validation windows.");
}

}  // namespace lockstep::train
