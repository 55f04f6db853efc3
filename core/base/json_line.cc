#include "core/base/json_line.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string number(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  std::array<char, 32> digits;  // the longest shortest form of a double has 24 characters
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), result.ptr};
}

}  // namespace

JsonLine& JsonLine::add(std::string_view name, std::string_view text) {
  return add_raw(name, quoted(text));
}

JsonLine& JsonLine::add(std::string_view name, std::span<const double> values) {
  std::string list;
  for (const double value : values) {
    list += list.empty() ? '[' : ',';
    list += number(value);
  }
  return add_raw(name, list.empty() ? "[]" : list + "]");
}

JsonLine& JsonLine::add_double(std::string_view name, double value) {
  return add_raw(name, number(value));
}

JsonLine& JsonLine::add_raw(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  members_ += quoted(name);
  members_ += ':';
  members_ += json;
  return *this;
}

}  // namespace lockstep
