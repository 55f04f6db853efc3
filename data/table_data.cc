#include "data/table_data.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <string_view>

#include "core/base/check.h"
#include "core/base/file_descriptor.h"
#include "core/base/gzip.h"
#include "data/epoch_order.h"
#include "data/random_draw.h"

namespace lockstep::train {
namespace {

constexpr int64_t kMostClasses = 1 << 24;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// Parses a finite number; returns nothing if `field` is not one.
std::optional<double> number_of(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// The first 40 characters of a field, for error messages.
std::string_view shown(std::string_view field) { return field.substr(0, 40); }

/// Reads a table's text line by line; errors name file and line.
class TableReader {
 public:
  TableReader(const std::filesystem::path& path, std::string_view text)
      : path_(path.string()), rest_(text) {
    while (rest_.ends_with('\n') || rest_.ends_with('\r') || rest_.ends_with(' ')) {
      rest_.remove_suffix(1);
    }
  }

  /// Reads the next row into `row`, skipping a header; returns false at the end.
  bool next(std::vector<double>& row) {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view text = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++line_;
      LS_CHECK(text.find('\0') == std::string_view::npos, DataError,
               "[data] {}:{}: a zero byte: expected text.", path_, line_);
      if (line_ == 1 && is_header(text)) continue;
      read(text, row);
      return true;
    }
    return false;
  }
  std::string place() const { return fmt::format("{}:{}", path_, line_); }

 private:
  template <class Visit>
  static void for_each_field(std::string_view text, Visit visit) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      visit(trimmed(text.substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  static bool is_header(std::string_view text) {
    bool words = false;
    for_each_field(text, [&](std::string_view field) {
      words = words || (!field.empty() && !number_of(field).has_value());
    });
    return words;
  }
  void read(std::string_view text, std::vector<double>& row) {
    row.clear();
    for_each_field(text, [&](std::string_view field) {
      const std::optional<double> value = number_of(field);
      LS_CHECK(value.has_value(), DataError, "[data] {}: field {} is \"{}\": expected a number.",
               place(), row.size() + 1, shown(field));
      row.push_back(*value);
    });
    if (width_ == 0) {
      LS_CHECK(row.size() >= 2, DataError,
               "[data] {}: expected numbers and a class, separated by commas, got one field.",
               place());
      width_ = row.size();
      first_row_ = line_;
    }
    LS_CHECK(row.size() == width_, DataError,
             "[data] {}: expected {} fields as in line {}, got {}.", place(), width_, first_row_,
             row.size());
  }

  std::string path_;
  std::string_view rest_;
  int64_t line_ = 0;
  size_t width_ = 0;
  int64_t first_row_ = 0;
};

/// Validates and returns the label of a row; `classes` 0 accepts any number of classes.
int64_t label_of(double value, int64_t classes, const TableReader& reader) {
  const int64_t most = (classes > 0 ? classes : kMostClasses) - 1;
  LS_CHECK(value >= 0 && value <= static_cast<double>(most) && value == std::floor(value),
           DataError, "[data] {}: the class is {}: expected an integer from 0 to {}.",
           reader.place(), value, most);
  return static_cast<int64_t>(value);
}

std::vector<std::byte> contents(const std::filesystem::path& path) {
  std::vector<std::byte> bytes = FileDescriptor(path, O_RDONLY).read_to_end();
  return is_gzip(bytes) ? gunzip(bytes, path) : bytes;
}

}  // namespace

TableData::TableData(const std::filesystem::path& path, TableDataOptions options)
    : options_(options) {
  LS_ASSERT(options.samples_per_step > 0 && options.held_out_rows >= 0);
  const std::vector<std::byte> bytes = contents(path);
  TableReader reader(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
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
  LS_CHECK(!labels_.empty(), DataError, "[data] {}: the table has no rows.", path.string());
  classes_ =
      options.classes > 0 ? options.classes : *std::max_element(labels_.begin(), labels_.end()) + 1;
  const int64_t held_out = options.held_out_rows > 0 ? options.held_out_rows : rows() / 10;
  LS_CHECK(held_out < rows(), DataError,
           "[data] {}: cannot hold out {} rows of a table of {}. Hold out fewer.", path.string(),
           held_out, rows());
  training_rows_ = rows() - held_out;
}

int64_t TableData::read_row(int64_t row, std::span<float> features) const {
  LS_ASSERT(std::ssize(features) == features_);
  std::copy_n(values_.begin() + row * features_, features_, features.begin());
  return labels_[static_cast<size_t>(row)];
}

int64_t TableData::sample(int64_t step, int64_t index, std::span<float> features) const {
  if (options_.order == WindowOrder::kRandom) {
    // 64 random bits make the remainder uniform to within the number of rows / 2^64.
    const uint64_t bits = random_draw(options_.seed, DrawStream::kTableRow, step, index, 0)[0];
    return read_row(static_cast<int64_t>(bits % static_cast<uint64_t>(training_rows_)), features);
  }
  const int64_t number = step * options_.samples_per_step + index;
  return read_row(
      shuffled(options_.seed, number / training_rows_, training_rows_, number % training_rows_),
      features);
}

int64_t TableData::held_out_sample(int64_t index, std::span<float> features) const {
  LS_ASSERT(index >= 0 && index < held_out_samples());
  return read_row(training_rows_ + index, features);
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
