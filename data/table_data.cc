#include "data/table_data.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/regular_file.h"
#include "data/epoch_order.h"
#include "data/random_draw.h"
#include "data/table_reader.h"

namespace lockstep::train {
namespace {

constexpr int64_t kMostClasses = 1 << 24;

/// Validates and returns the label of a row; `classes` 0 accepts any number of classes.
int64_t label_of(double value, int64_t classes, const TableReader& reader) {
  const int64_t most = (classes > 0 ? classes : kMostClasses) - 1;
  LS_CHECK(value >= 0 && value <= static_cast<double>(most) && value == std::floor(value),
           DataError, "[data] {}: the class is {}: expected an integer from 0 to {}.",
           reader.place(), value, most);
  return static_cast<int64_t>(value);
}

}  // namespace

TableData::TableData(const std::filesystem::path& path, TableDataOptions options)
    : TableData([file = std::make_shared<RegularFile>(path, kMostTextBytes)](
                    std::span<std::byte> into) { return file->read(into); },
                path.string(), options) {}

TableData::TableData(ByteSource source, const std::string& name, TableDataOptions options)
    : name_(name), options_(options) {
  LS_ASSERT(options.samples_per_step > 0 && options.held_out_rows >= 0);
  TableReader reader(gunzipped(std::move(source), name), name);
  for (std::vector<double> row; reader.next(row);) {
    features_ = std::ssize(row) - 1;
    LS_CHECK(options.features == 0 || features_ == options.features, DataError,
             "[data] {}: {} features and a class, got {} fields: the model takes {}.",
             reader.place(), features_, row.size(), options.features);
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      values_.push_back(static_cast<float>(options.scale * row[i]));
    }
    labels_.push_back(label_of(row.back(), options.classes, reader));
  }
  LS_CHECK(!labels_.empty(), DataError, "[data] {}: the table has no rows.", name);
  classes_ =
      options.classes > 0 ? options.classes : *std::max_element(labels_.begin(), labels_.end()) + 1;
  const int64_t held_out = options.held_out_rows > 0 ? options.held_out_rows : rows() / 10;
  LS_CHECK(held_out < rows(), DataError,
           "[data] {}: cannot hold out {} rows of a table of {}. Hold out fewer.", name, held_out,
           rows());
  training_rows_ = rows() - held_out;
}

int64_t TableData::read_row(int64_t row, std::span<float> features) const {
  LS_ASSERT(std::ssize(features) == features_);
  std::copy_n(values_.begin() + row * features_, features_, features.begin());
  return labels_[static_cast<size_t>(row)];
}

/// The row of a training sample.
int64_t TableData::row_of(int64_t step, int64_t index) const {
  if (options_.order == WindowOrder::kRandom) {
    // 64 random bits make the remainder uniform to within the number of rows / 2^64.
    const uint64_t bits = random_draw(options_.seed, DrawStream::kTableRow, step, index, 0)[0];
    return static_cast<int64_t>(bits % static_cast<uint64_t>(training_rows_));
  }
  const int64_t number = step * options_.samples_per_step + index;
  return shuffled(options_.seed, number / training_rows_, training_rows_, number % training_rows_);
}

int64_t TableData::sample(int64_t step, int64_t index, std::span<float> features) const {
  return read_row(row_of(step, index), features);
}

std::vector<SampleOrigin> TableData::origins(int64_t step, int64_t count) const {
  std::vector<SampleOrigin> origins;
  for (int64_t i = 0; i < count; ++i) {
    origins.push_back({.file = name_, .unit = "row", .first = row_of(step, i)});
  }
  return origins;
}

int64_t TableData::held_out_sample(int64_t index, std::span<float> features) const {
  LS_ASSERT(index >= 0 && index < held_out_samples());
  return read_row(training_rows_ + index, features);
}

ContentHash TableData::identity() const {
  return ContentHasher()
      .add(static_cast<uint64_t>(training_rows_))
      .add(std::as_bytes(std::span(values_)))
      .add(std::as_bytes(std::span(labels_)))
      .result();
}

ContentHash TableData::fingerprint() const {
  const auto training = static_cast<size_t>(training_rows_);
  return ContentHasher()
      .add(std::as_bytes(std::span(values_).first(training * static_cast<size_t>(features_))))
      .add(std::as_bytes(std::span(labels_).first(training)))
      .result();
}

RandomSamples::RandomSamples(int64_t features, int64_t classes, uint64_t seed)
    : features_(features), classes_(classes), seed_(seed) {
  LS_CHECK(features >= 1 && classes >= 1, DataError,
           "[data] random samples of {} features and {} classes: expected at least one of each.",
           features, classes);
}

int64_t RandomSamples::sample(int64_t step, int64_t index, std::span<float> features) const {
  LS_ASSERT(std::ssize(features) == features_);
  const auto draw = [&](uint32_t block) {
    return random_draw(seed_, DrawStream::kRandomSample, step, index, block);
  };
  for (size_t i = 0; i < features.size(); i += 2) {
    // Box and Muller 1958: two uniform draws give two normal ones; + 1 keeps log's argument above
    // 0.
    const auto [a, b] = draw(static_cast<uint32_t>(i / 2 + 1));
    const double radius = std::sqrt(-2 * std::log((static_cast<double>(a >> 11) + 1) * 0x1p-53));
    const double angle = 2 * std::numbers::pi * static_cast<double>(b >> 11) * 0x1p-53;
    features[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < features.size()) features[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return static_cast<int64_t>(draw(0)[0] % static_cast<uint64_t>(classes_));
}

int64_t RandomSamples::held_out_sample(int64_t, std::span<float>) const {
  throw InternalError("[data] random samples have no held-out part.");
}

ContentHash RandomSamples::fingerprint() const {
  return ContentHasher()
      .add(static_cast<uint64_t>(features_))
      .add(static_cast<uint64_t>(classes_))
      .add(seed_)
      .result();
}

}  // namespace lockstep::train
