#include "data/token_source.h"

#include <algorithm>
#include <optional>

#include "core/base/check.h"
#include "data/tokenizers/tokenizer.h"

namespace lockstep::train {
namespace {

int64_t rows(int64_t length, std::span<int64_t> inputs, std::span<int64_t> targets) {
  LS_CHECK(length > 0 && inputs.size() == targets.size() &&
               inputs.size() % static_cast<size_t>(length) == 0,
           DataError,
           "[data] buffers of {} inputs and {} targets do not hold whole sequences of length {}.",
           inputs.size(), targets.size(), length);
  return static_cast<int64_t>(inputs.size()) / length;
}

std::span<int64_t> row(std::span<int64_t> buffer, int64_t index, int64_t length) {
  return buffer.subspan(static_cast<size_t>(index * length), static_cast<size_t>(length));
}

/// Sizes of the documents of a row, each of which begins with `between`.
std::vector<int64_t> split_at(std::span<const int64_t> row, std::optional<uint32_t> between) {
  std::vector<int64_t> sizes = {0};
  for (const int64_t token : row) {
    if (between && token == int64_t{*between} && sizes.back() > 0) sizes.push_back(0);
    ++sizes.back();
  }
  return sizes;
}

std::optional<uint32_t> between_documents(const TokenSource& source) {
  return source.tokenizer() == nullptr ? std::nullopt : source.tokenizer()->end_of_text();
}

}  // namespace

std::vector<int64_t> TokenSource::documents(int64_t step, int64_t index, int64_t length) const {
  std::vector<int64_t> inputs(static_cast<size_t>(length)), targets(inputs.size());
  sequence(step, index, inputs, targets);
  return split_at(inputs, between_documents(*this));
}

std::vector<SampleOrigin> TokenSource::origins(int64_t step, int64_t count, int64_t length) const {
  std::vector<Place> places;
  for (int64_t i = 0; i < count; ++i) places.push_back({step, i});
  return origins_at(places, length);
}

std::vector<int64_t> TokenSource::validation_documents(int64_t index, int64_t length) const {
  std::vector<int64_t> inputs(static_cast<size_t>(length)), targets(inputs.size());
  validation_window(index, inputs, targets);
  return split_at(inputs, between_documents(*this));
}

std::vector<int64_t> documents_of_validation(const TokenSource& source, int64_t first,
                                             int64_t count, int64_t length) {
  const int64_t windows = source.validation_windows(length);
  std::vector<int64_t> sizes;
  for (int64_t i = first; i < first + count; ++i) {
    const std::vector<int64_t> of_row =
        i < windows ? source.validation_documents(i, length) : std::vector{length};
    sizes.insert(sizes.end(), of_row.begin(), of_row.end());
  }
  return sizes;
}

int64_t fill_validation(const TokenSource& source, int64_t first, int64_t length,
                        std::span<int64_t> inputs, std::span<int64_t> targets) {
  const int64_t count = rows(length, inputs, targets);
  const int64_t windows = source.validation_windows(length);
  int64_t real = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto input_row = row(inputs, i, length);
    const auto target_row = row(targets, i, length);
    if (first + i < windows) {
      real += source.validation_window(first + i, input_row, target_row);
    } else {
      std::ranges::fill(input_row, 0);
      std::ranges::fill(target_row, kIgnoredTarget);
    }
  }
  return real;
}

}  // namespace lockstep::train
