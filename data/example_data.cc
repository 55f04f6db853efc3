#include "data/example_data.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "data/epoch_order.h"
#include "data/random_draw.h"

namespace lockstep::train {
namespace {

ExampleRows rows_of(const ExampleSet& examples, const ExampleDataOptions& options) {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < examples.count(); ++i) sizes.push_back(std::ssize(examples.tokens(i)));
  if (options.packed) return pack_rows(sizes, options.length + 1, options.seed);
  ExampleRows rows;
  for (int64_t i = 0; i < examples.count(); ++i) rows.push_back({i});
  return rows;
}

/// Fills a row of inputs.size() + 1 tokens and returns its number of targets.
int64_t fill_row(const ExampleSet& examples, const std::vector<int64_t>& row,
                 std::span<int64_t> inputs, std::span<int64_t> targets) {
  std::ranges::fill(inputs, 0);
  std::ranges::fill(targets, kIgnoredTarget);
  size_t at = 0;
  int64_t count = 0;
  for (const int64_t example : row) {
    const std::span<const uint32_t> tokens = examples.tokens(example);
    const std::span<const uint8_t> counted = examples.counted(example);
    for (size_t i = 0; i < tokens.size(); ++i, ++at) {
      if (at < inputs.size()) inputs[at] = tokens[i];
      if (counted[i] == 0) continue;
      targets[at - 1] = tokens[i];  // the first of an example never counts
      ++count;
    }
  }
  return count;
}

/// Sizes of the examples of a row, of which the last may have a token that is only a target, and of
/// the padding.
std::vector<int64_t> sizes_of(const ExampleSet& examples, const std::vector<int64_t>& row,
                              int64_t length) {
  std::vector<int64_t> sizes;
  for (const int64_t example : row) {
    const int64_t size = std::min(std::ssize(examples.tokens(example)), length);
    if (size > 0) sizes.push_back(size);
    length -= size;
  }
  if (length > 0) sizes.push_back(length);
  return sizes;
}

/// Mean bytes of text of the tokens that count.
double bytes_per_counted(const ExampleSet& examples, const Tokenizer& tokenizer) {
  std::string text;
  for (int64_t example = 0; example < examples.count(); ++example) {
    const std::span<const uint32_t> tokens = examples.tokens(example);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (examples.counted(example)[i] != 0 && tokens[i] != tokenizer.end_of_text()) {
        tokenizer.decode(tokens[i], text);
      }
    }
  }
  const int64_t targets = examples.counted_tokens();
  return targets == 0 ? 0 : static_cast<double>(text.size()) / static_cast<double>(targets);
}

}  // namespace

ExampleRows pack_rows(std::span<const int64_t> sizes, int64_t capacity, uint64_t seed) {
  const int64_t count = std::ssize(sizes);
  const auto size = [&](int64_t example) { return sizes[static_cast<size_t>(example)]; };
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) order.push_back(shuffled(seed, 0, count, i));
  std::ranges::stable_sort(order, std::ranges::greater(), size);
  ExampleRows rows;
  std::multimap<int64_t, size_t> room;  // rows by the tokens that they have room for
  for (const int64_t example : order) {
    LS_ASSERT(size(example) <= capacity);
    const auto found = room.lower_bound(size(example));
    int64_t left = capacity;
    size_t row = rows.size();
    if (found == room.end()) {
      rows.emplace_back();
    } else {
      std::tie(left, row) = *found;
      room.erase(found);
    }
    rows[row].push_back(example);
    room.emplace(left - size(example), row);
  }
  return rows;
}

ExampleData::ExampleData(ExampleSet training, ExampleSet held_out, ExampleDataOptions options)
    : training_(std::move(training)),
      held_out_(std::move(held_out)),
      options_(std::move(options)),
      training_rows_(rows_of(training_, options_)),
      held_out_rows_(rows_of(held_out_, options_)) {
  LS_ASSERT(training_.count() > 0 && options_.vocabulary > 0 && options_.sequences_per_step > 0);
  if (options_.tokenizer) bytes_per_token_ = bytes_per_counted(held_out_, *options_.tokenizer);
}

const std::vector<int64_t>& ExampleData::training_row(int64_t step, int64_t index) const {
  const int64_t rows = std::ssize(training_rows_);
  int64_t chosen;
  if (options_.order == WindowOrder::kRandom) {
    // 64 random bits make the remainder uniform to within the number of rows / 2^64.
    const uint64_t bits = random_draw(options_.seed, DrawStream::kWindowOffset, step, index, 0)[0];
    chosen = static_cast<int64_t>(bits % static_cast<uint64_t>(rows));
  } else {
    const int64_t number = step * options_.sequences_per_step + index;
    chosen = shuffled(options_.seed, number / rows, rows, number % rows);
  }
  return training_rows_[static_cast<size_t>(chosen)];
}

void ExampleData::sequence(int64_t step, int64_t index, std::span<int64_t> inputs,
                           std::span<int64_t> targets) const {
  LS_ASSERT(std::ssize(inputs) == options_.length && inputs.size() == targets.size());
  fill_row(training_, training_row(step, index), inputs, targets);
}

std::vector<int64_t> ExampleData::documents(int64_t step, int64_t index, int64_t length) const {
  return sizes_of(training_, training_row(step, index), length);
}

std::vector<int64_t> ExampleData::validation_documents(int64_t index, int64_t length) const {
  return sizes_of(held_out_, held_out_rows_[static_cast<size_t>(index)], length);
}

std::vector<SampleOrigin> ExampleData::origins_at(std::span<const Place> places, int64_t) const {
  std::vector<SampleOrigin> origins;
  for (const Place& place : places) {
    const std::vector<int64_t>& row = training_row(place.step, place.index);
    origins.push_back(training_.origin(row.front()));
    origins.back().others = std::ssize(row) - 1;
  }
  return origins;
}

int64_t ExampleData::validation_windows(int64_t length) const {
  LS_ASSERT(length == options_.length);
  return std::ssize(held_out_rows_);
}

int64_t ExampleData::validation_window(int64_t index, std::span<int64_t> inputs,
                                       std::span<int64_t> targets) const {
  LS_ASSERT(std::ssize(inputs) == options_.length && inputs.size() == targets.size());
  LS_ASSERT(index >= 0 && index < std::ssize(held_out_rows_));
  return fill_row(held_out_, held_out_rows_[static_cast<size_t>(index)], inputs, targets);
}

ContentHash ExampleData::identity() const {
  return ContentHasher().add(training_.hash()).add(held_out_.hash()).result();
}

std::vector<uint32_t> ExampleData::sample_start(uint64_t seed) const {
  const ExampleSet& examples = held_out_.count() > 0 ? held_out_ : training_;
  const auto example = static_cast<int64_t>(seed % static_cast<uint64_t>(examples.count()));
  const std::span<const uint32_t> tokens = examples.tokens(example);
  const auto first = std::ranges::find(examples.counted(example), 1);
  return {tokens.begin(), tokens.begin() + (first - examples.counted(example).begin())};
}

std::vector<std::string> ExampleData::notes() const {
  const auto share = [](int64_t part, int64_t of) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(of);
  };
  const int64_t rows = std::ssize(training_rows_);
  std::vector<std::string> notes = {fmt::format(
      "{} examples to train on, {} held out; {:.0f} % of the {} tokens to train on count in the "
      "loss, and {} rows are {:.0f} % full",
      training_.count(), held_out_.count(), share(training_.counted_tokens(), training_.tokens()),
      training_.tokens(), rows, share(training_.tokens(), rows * (options_.length + 1)))};
  for (const ExampleSet* set : {&training_, &held_out_}) {
    notes.insert(notes.end(), set->notes().begin(), set->notes().end());
  }
  return notes;
}

}  // namespace lockstep::train
