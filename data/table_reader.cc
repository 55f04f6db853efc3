#include "data/table_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/check.h"

namespace lockstep::train {
namespace {

/// Longest line: 2^24 numbers, the most features that a model takes, of 16 characters.
constexpr size_t kLongestLine = size_t{256} << 20;

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

template <class Visit>
void for_each_field(std::string_view text, Visit visit) {
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    visit(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}
bool is_header(std::string_view text) {
  bool words = false;
  for_each_field(text, [&](std::string_view field) {
    words = words || (!field.empty() && !number_of(field).has_value());
  });
  return words;
}

bool is_blank(std::string_view text) { return text.find_first_not_of("\r ") == text.npos; }

}  // namespace

TableReader::TableReader(ByteSource text, std::string file)
    : file_(file), lines_(std::move(text), std::move(file), kLongestLine) {}

std::string TableReader::place() const { return fmt::format("{}:{}", file_, line_); }

bool TableReader::next(std::vector<double>& row) {
  while (next_line()) {
    if (is_blank(line_text_)) {
      // Blank lines are the end of the table, or an error at the first of them.
      const int64_t first = line_;
      while (is_blank(line_text_)) {
        if (!next_line()) return false;
      }
      line_ = first;
      line_text_ = "";
    }
    if (line_ == 1 && is_header(line_text_)) continue;
    read(line_text_, row);
    return true;
  }
  return false;
}

/// Makes the next line the current one; returns false at the end.
bool TableReader::next_line() {
  if (!lines_.next()) return false;
  line_text_ = lines_.text();
  line_ = lines_.line();
  LS_CHECK(line_text_.find('\0') == std::string_view::npos, DataError,
           "[data] {}: a zero byte: expected text.", place());
  return true;
}

void TableReader::read(std::string_view text, std::vector<double>& row) {
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
  LS_CHECK(row.size() == width_, DataError, "[data] {}: expected {} fields as in line {}, got {}.",
           place(), width_, first_row_, row.size());
}

}  // namespace lockstep::train
